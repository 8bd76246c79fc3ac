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
  role text NOT NULL DEFAULT 'authenticated'
    CONSTRAINT users_role_known CHECK (role IN ('authenticated', 'administrator')),
  confirmed boolean NOT NULL DEFAULT true,
  blocked boolean NOT NULL DEFAULT false,
  -- timezone() fails for a name that this server does not know: whatever is stored works in every later statement.
  time_zone text NOT NULL DEFAULT 'UTC' CONSTRAINT users_time_zone_length CHECK (char_length(time_zone) <= 64)
    CONSTRAINT users_time_zone_known CHECK (timezone(time_zone, timestamptz 'epoch') IS NOT NULL),
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
  -- Raised by every rotation; refresh tokens of the present generation are good, those of the former within a grace.
  generation integer NOT NULL DEFAULT 0,
  rotated_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  revoked_at timestamptz
);
CREATE INDEX sessions_user_id ON sessions (user_id) WHERE revoked_at IS NULL;
CREATE INDEX sessions_expires_at ON sessions (expires_at);

-- Every refresh token a family was given, by its SHA-256: replays of used ones are recognised. A client that asks in
-- parallel, or asks again because it lost an answer, gets several of one generation.
CREATE TABLE session_refresh_tokens (
  hash bytea CONSTRAINT session_refresh_tokens_pkey PRIMARY KEY
    CONSTRAINT session_refresh_tokens_hash_length CHECK (octet_length(hash) = 32),
  session_id bigint NOT NULL
    CONSTRAINT session_refresh_tokens_session_id_fkey REFERENCES sessions ON DELETE CASCADE,
  generation integer NOT NULL
);
CREATE INDEX session_refresh_tokens_session_id ON session_refresh_tokens (session_id, generation);

-- Append-only: every process keeps the live rows in memory and reads on from a bound of transactions, because ids
-- commit out of order (tx is compared with pg_snapshot_xmin).
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
DROP TABLE audit_log, session_revocations, session_refresh_tokens, sessions, users;
