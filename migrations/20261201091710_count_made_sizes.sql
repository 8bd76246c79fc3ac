-- migrate:up
-- What one person's files take has in it what was made of their pictures.
CREATE INDEX media_variants_stored_bytes ON media_variants (media_id) INCLUDE (bytes);

-- migrate:down
DROP INDEX media_variants_stored_bytes;
