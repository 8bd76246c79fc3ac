-- migrate:up
CREATE TABLE users (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT users_pkey PRIMARY KEY,
  username text NOT NULL CONSTRAINT users_username_length CHECK (char_length(username) BETWEEN 3 AND 50),
  email text NOT NULL CONSTRAINT users_email_length CHECK (char_length(email) BETWEEN 6 AND 254)
    CONSTRAINT users_email_lower CHECK (email = lower(email)),
  provider text NOT NULL DEFAULT 'local',
  password_hash text,
  first_name text NOT NULL DEFAULT '' CONSTRAINT users_first_name_length CHECK (char_length(first_name) <= 255),
  last_name text NOT NULL DEFAULT '' CONSTRAINT users_last_name_length CHECK (char_length(last_name) <= 255),
  phone_number text NOT NULL DEFAULT '' CONSTRAINT users_phone_number_length CHECK (char_length(phone_number) <= 255),
  role text NOT NULL DEFAULT 'authenticated' CONSTRAINT users_role_known CHECK (role IN ('authenticated', 'administrator')),
  confirmed boolean NOT NULL DEFAULT true,
  blocked boolean NOT NULL DEFAULT false,
  time_zone text NOT NULL DEFAULT 'UTC' CONSTRAINT users_time_zone_length CHECK (char_length(time_zone) <= 64),
  profile_media_id bigint,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT users_email_key UNIQUE (email)
);
-- Two people whose names differ in case only could be taken for each other in a chat.
CREATE UNIQUE INDEX users_username_key ON users (lower(username));

CREATE TABLE sessions (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT sessions_pkey PRIMARY KEY,
  user_id bigint NOT NULL CONSTRAINT sessions_user_id_fkey REFERENCES users ON DELETE CASCADE,
  -- long: the stock client's 30-day token; family: short access tokens and one rotating refresh token.
  kind text NOT NULL CONSTRAINT sessions_kind_known CHECK (kind IN ('long', 'family')),
  generation integer NOT NULL DEFAULT 0,
  refresh_hash bytea,
  previous_refresh_hash bytea,
  rotated_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX sessions_user_id ON sessions (user_id) WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX sessions_refresh_hash_key ON sessions (refresh_hash) WHERE refresh_hash IS NOT NULL;
CREATE INDEX sessions_previous_refresh_hash ON sessions (previous_refresh_hash) WHERE previous_refresh_hash IS NOT NULL;

-- Append-only: every process keeps the live rows in memory and reads on from a bound of transactions, because ids commit
-- out of order (tx is compared with pg_snapshot_xmin).
CREATE TABLE session_revocations (
  session_id bigint NOT NULL,
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  expires_at timestamptz NOT NULL
);
CREATE INDEX session_revocations_tx ON session_revocations (tx);
CREATE INDEX session_revocations_expires_at ON session_revocations (expires_at);

CREATE TABLE audit_log (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT audit_log_pkey PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor_id bigint,
  action text NOT NULL,
  subject text NOT NULL,
  subject_id bigint NOT NULL,
  detail jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_log_subject ON audit_log (subject, subject_id, id);

-- migrate:down
DROP TABLE audit_log, session_revocations, sessions, users;
