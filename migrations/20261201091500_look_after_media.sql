-- migrate:up
-- What one person's files take is summed up whenever they send another one.
CREATE INDEX media_stored_bytes ON media (owner_id) INCLUDE (bytes) WHERE state <> 'rejected';

-- The keys of a part of the object store, in the order in which an S3 lists them.
CREATE INDEX media_storage_key_bytewise ON media (storage_key COLLATE "C");
CREATE INDEX media_variants_storage_key_bytewise ON media_variants (storage_key COLLATE "C");

-- migrate:down
DROP INDEX media_stored_bytes, media_storage_key_bytewise, media_variants_storage_key_bytewise;
