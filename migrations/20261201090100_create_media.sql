-- migrate:up
CREATE TABLE media (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT media_pkey PRIMARY KEY,
  owner_id bigint NOT NULL CONSTRAINT media_owner_id_fkey REFERENCES users ON DELETE CASCADE,
  kind text NOT NULL CONSTRAINT media_kind_known CHECK (kind IN ('cv', 'logo', 'profile', 'attachment')),
  state text NOT NULL DEFAULT 'pending' CONSTRAINT media_state_known CHECK (state IN ('pending', 'ready', 'rejected')),
  rejection text,
  rejection_message text,
  name text NOT NULL CONSTRAINT media_name_length CHECK (char_length(name) <= 255),
  declared_type text NOT NULL DEFAULT ''
    CONSTRAINT media_declared_type_length CHECK (char_length(declared_type) <= 255),
  mime text,
  ext text,
  hash text NOT NULL CONSTRAINT media_hash_key UNIQUE,
  bytes bigint NOT NULL CONSTRAINT media_bytes_positive CHECK (bytes >= 0),
  sha256 bytea NOT NULL,
  storage_key text NOT NULL CONSTRAINT media_storage_key_key UNIQUE,
  width integer,
  height integer,
  page_count integer,
  text text,
  text_pages jsonb,
  note text,
  -- Raised to make every capability URL given out so far worthless.
  url_generation integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX media_owner_id ON media (owner_id);

CREATE TABLE media_variants (
  media_id bigint NOT NULL CONSTRAINT media_variants_media_id_fkey REFERENCES media ON DELETE CASCADE,
  name text NOT NULL
    CONSTRAINT media_variants_name_known CHECK (name IN ('thumbnail', 'small', 'medium', 'large', 'upright')),
  storage_key text NOT NULL CONSTRAINT media_variants_storage_key_key UNIQUE,
  hash text NOT NULL,
  mime text NOT NULL,
  ext text NOT NULL,
  bytes bigint NOT NULL,
  width integer NOT NULL,
  height integer NOT NULL,
  CONSTRAINT media_variants_pkey PRIMARY KEY (media_id, name)
);
CREATE UNIQUE INDEX media_variants_hash_key ON media_variants (hash);

ALTER TABLE users ADD CONSTRAINT users_profile_media_id_fkey
  FOREIGN KEY (profile_media_id) REFERENCES media ON DELETE SET NULL;
CREATE INDEX users_profile_media_id ON users (profile_media_id) WHERE profile_media_id IS NOT NULL;

-- migrate:down
DROP INDEX users_profile_media_id;
ALTER TABLE users DROP CONSTRAINT users_profile_media_id_fkey;
DROP TABLE media_variants, media;
