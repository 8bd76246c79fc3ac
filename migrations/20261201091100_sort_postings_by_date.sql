-- migrate:up
-- Lists sorted by date read these from the end; without them each page sorts all open postings. Like the index of the
-- public list they hold what its condition asks for, so that the table is not touched.
CREATE INDEX job_postings_created_at ON job_postings (created_at, id) INCLUDE (valid_through)
  WHERE state = 'published';
CREATE INDEX job_postings_published_at ON job_postings (published_at, id) INCLUDE (valid_through)
  WHERE state = 'published';

-- migrate:down
DROP INDEX job_postings_published_at, job_postings_created_at;
