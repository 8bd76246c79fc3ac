-- migrate:up
-- What was read out of a CV, as the Resume module writes it: suggestions beside what its owner typed. Null for other
-- files, and for CVs of before. Who does not know the column goes on as before.
ALTER TABLE media ADD COLUMN resume jsonb CONSTRAINT media_resume_size CHECK (octet_length(resume::text) <= 262144);

-- migrate:down
ALTER TABLE media DROP COLUMN resume;
