-- migrate:up
CREATE TABLE applications (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT applications_pkey PRIMARY KEY,
  posting_id bigint NOT NULL CONSTRAINT applications_posting_id_fkey REFERENCES job_postings ON DELETE CASCADE,
  applicant_id bigint NOT NULL CONSTRAINT applications_applicant_id_fkey REFERENCES users ON DELETE CASCADE,
  status text NOT NULL DEFAULT 'initiated'
    CONSTRAINT applications_status_known CHECK (status IN ('initiated', 'accepted', 'declined', 'withdrawn')),
  cv_media_id bigint NOT NULL CONSTRAINT applications_cv_media_id_fkey REFERENCES media,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT applications_posting_id_applicant_id_key UNIQUE (posting_id, applicant_id)
);
CREATE INDEX applications_applicant_id ON applications (applicant_id, id DESC);
CREATE INDEX applications_cv_media_id ON applications (cv_media_id);

-- History, append-only.
CREATE TABLE application_events (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT application_events_pkey PRIMARY KEY,
  application_id bigint NOT NULL
    CONSTRAINT application_events_application_id_fkey REFERENCES applications ON DELETE CASCADE,
  actor_id bigint CONSTRAINT application_events_actor_id_fkey REFERENCES users ON DELETE SET NULL,
  kind text NOT NULL CONSTRAINT application_events_kind_known
    CHECK (kind IN ('initiated', 'accepted', 'declined', 'withdrawn', 'cv_ready', 'cv_rejected')),
  note text NOT NULL DEFAULT '',
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX application_events_application_id ON application_events (application_id, id);

-- migrate:down
DROP TABLE application_events, applications;
