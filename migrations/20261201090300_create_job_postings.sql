-- migrate:up
CREATE TABLE job_postings (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT job_postings_pkey PRIMARY KEY,
  company_id bigint NOT NULL CONSTRAINT job_postings_company_id_fkey REFERENCES companies ON DELETE CASCADE,
  created_by bigint CONSTRAINT job_postings_created_by_fkey REFERENCES users ON DELETE SET NULL,
  title text NOT NULL CONSTRAINT job_postings_title_length CHECK (char_length(title) BETWEEN 1 AND 255),
  -- Safe HTML: written only by the sanitiser.
  description text NOT NULL DEFAULT ''
    CONSTRAINT job_postings_description_length CHECK (char_length(description) <= 100000),
  -- The client's own word for the type ("Long Term"), and what search understands by it.
  employment_type text NOT NULL DEFAULT ''
    CONSTRAINT job_postings_employment_type_length CHECK (char_length(employment_type) <= 255),
  kind smallint NOT NULL DEFAULT 9 CONSTRAINT job_postings_kind_known CHECK (kind BETWEEN 1 AND 9),
  environment text NOT NULL DEFAULT ''
    CONSTRAINT job_postings_environment_length CHECK (char_length(environment) <= 255),
  remote smallint NOT NULL DEFAULT 0 CONSTRAINT job_postings_remote_known CHECK (remote BETWEEN 0 AND 2),
  place text NOT NULL DEFAULT '' CONSTRAINT job_postings_place_length CHECK (char_length(place) <= 255),
  lat real CONSTRAINT job_postings_lat_range CHECK (lat BETWEEN -90 AND 90),
  lng real CONSTRAINT job_postings_lng_range CHECK (lng BETWEEN -180 AND 180),
  -- Minor units of the currency, per period.
  salary_min bigint CONSTRAINT job_postings_salary_min_positive CHECK (salary_min >= 0),
  salary_max bigint CONSTRAINT job_postings_salary_max_order CHECK (salary_max >= salary_min),
  salary_currency text CONSTRAINT job_postings_salary_currency_iso CHECK (salary_currency ~ '^[A-Z]{3}$'),
  salary_period text
    CONSTRAINT job_postings_salary_period_known CHECK (salary_period IN ('hour', 'day', 'week', 'month', 'year')),
  skills text[] NOT NULL DEFAULT '{}' CONSTRAINT job_postings_skills_count CHECK (cardinality(skills) <= 50),
  apply_url text NOT NULL DEFAULT '' CONSTRAINT job_postings_apply_url_length CHECK (char_length(apply_url) <= 2000),
  -- Expired is not a state anyone writes: a published posting whose valid_through has passed is expired in that second.
  state text NOT NULL DEFAULT 'draft'
    CONSTRAINT job_postings_state_known CHECK (state IN ('draft', 'published', 'closed')),
  published_at timestamptz,
  valid_through timestamptz,
  source text,
  external_id text,
  content_hash bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT job_postings_source_external_id_key UNIQUE (source, external_id),
  CONSTRAINT job_postings_published_has_date CHECK (state = 'draft' OR published_at IS NOT NULL),
  CONSTRAINT job_postings_place_pair CHECK ((lat IS NULL) = (lng IS NULL)),
  CONSTRAINT job_postings_salary_whole CHECK (
    (salary_currency IS NULL) = (salary_period IS NULL)
    AND ((salary_min IS NULL AND salary_max IS NULL) OR salary_currency IS NOT NULL))
);
CREATE INDEX job_postings_company_id ON job_postings (company_id, id DESC);
-- What the public list walks and counts without touching the table.
CREATE INDEX job_postings_published ON job_postings (id DESC) INCLUDE (valid_through) WHERE state = 'published';
CREATE INDEX job_postings_created_by ON job_postings (created_by) WHERE created_by IS NOT NULL;

-- migrate:down
DROP TABLE job_postings;
