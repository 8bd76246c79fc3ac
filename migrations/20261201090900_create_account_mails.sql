-- migrate:up
-- Mails about an account, asked for by a person and sent once. The address is what somebody wrote into a form: whether
-- it is anybody's is looked up by the worker, so that the answer to the form cannot tell. The token in a mail is made
-- from the seed with a secret that is not in the database; here is only its SHA-256.
CREATE TABLE account_mails (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT account_mails_pkey PRIMARY KEY,
  message_id text NOT NULL CONSTRAINT account_mails_message_id_key UNIQUE,
  kind text NOT NULL
    CONSTRAINT account_mails_kind_known CHECK (kind IN ('reset', 'confirm', 'change', 'change_notice')),
  -- Who asked, where somebody was signed in.
  user_id bigint CONSTRAINT account_mails_user_id_fkey REFERENCES users ON DELETE CASCADE,
  address text NOT NULL CONSTRAINT account_mails_address_length CHECK (char_length(address) <= 254),
  -- What a notice is about.
  new_address text CONSTRAINT account_mails_new_address_length CHECK (char_length(new_address) <= 254),
  -- Gone once the mail is.
  seed bytea CONSTRAINT account_mails_seed_length CHECK (octet_length(seed) = 32),
  hash bytea CONSTRAINT account_mails_hash_length CHECK (octet_length(hash) = 32),
  state text NOT NULL DEFAULT 'queued'
    CONSTRAINT account_mails_state_known CHECK (state IN ('queued', 'sent', 'suppressed', 'dropped')),
  created_at timestamptz NOT NULL,
  -- When its token expires; later it is not sent.
  expires_at timestamptz NOT NULL,
  ended_at timestamptz
);
CREATE INDEX account_mails_address ON account_mails (address, kind, created_at);
CREATE INDEX account_mails_user_id ON account_mails (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX account_mails_created_at ON account_mails (created_at);

-- The latest token of a person for a purpose, written when its mail is sent. One that was used stays until it would
-- have expired, so that a mail that is sent again does not bring it back.
CREATE TABLE account_tokens (
  user_id bigint NOT NULL CONSTRAINT account_tokens_user_id_fkey REFERENCES users ON DELETE CASCADE,
  purpose text NOT NULL CONSTRAINT account_tokens_purpose_known CHECK (purpose IN ('reset', 'confirm', 'change')),
  -- Where it was sent: what its use proves.
  email text NOT NULL CONSTRAINT account_tokens_email_length CHECK (char_length(email) <= 254),
  hash bytea NOT NULL CONSTRAINT account_tokens_hash_length CHECK (octet_length(hash) = 32)
    CONSTRAINT account_tokens_hash_key UNIQUE,
  -- Of two mails the one asked for later counts, in whatever order they are sent.
  mail_id bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  used_at timestamptz,
  CONSTRAINT account_tokens_pkey PRIMARY KEY (user_id, purpose)
);
CREATE INDEX account_tokens_expires_at ON account_tokens (expires_at);

-- migrate:down
DROP TABLE account_tokens, account_mails;
