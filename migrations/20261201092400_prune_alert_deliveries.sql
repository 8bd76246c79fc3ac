-- migrate:up
-- How far the alerts' ledger is forgotten, and how far it was walked. Always one row.
CREATE TABLE alert_ledger (
  is_only boolean NOT NULL DEFAULT true CONSTRAINT alert_ledger_pkey PRIMARY KEY
    CONSTRAINT alert_ledger_one_row CHECK (is_only),
  -- Postings first published before this are matched no more: rows of theirs may be gone. It never goes back.
  forgotten_before timestamptz,
  -- When it was moved. Rows go only when every match that may not have seen it has ended.
  moved_at timestamptz NOT NULL DEFAULT '-infinity',
  -- The block of every partition where the walk goes on.
  next_block bigint NOT NULL DEFAULT 0 CONSTRAINT alert_ledger_block_positive CHECK (next_block >= 0)
);
INSERT INTO alert_ledger DEFAULT VALUES;

-- As it was, but for postings whose rows may be gone: whoever opens one of them again would have it told twice. In here
-- and not in the services, so that the last release's workers keep to it as well. What an import has found is as old as
-- its row, as its date is the source's and may move; anything else keeps the date of its first publication.
CREATE OR REPLACE FUNCTION match_postings(ids bigint[], at timestamptz) RETURNS TABLE (posting_id bigint, group_id int)
LANGUAGE sql STABLE ROWS 1000
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_seqscan = off AS $$
  WITH p AS MATERIALIZED (
    SELECT n.posting_id, n.kind, n.remote, n.salary_max, n.company_id, n.lat, n.lng, n.tsv || ''::tsvector AS tsv,
           ARRAY(SELECT hashtextextended(l, s)
                   FROM unnest(tsvector_to_array(n.tsv)) l,
                        unnest(ARRAY[0] || CASE WHEN n.remote = 2 THEN ARRAY[12] ELSE '{}'::int[] END
                          || CASE WHEN n.lat IS NULL THEN '{}'::int[] ELSE ARRAY[place_cell(n.lat, n.lng)] END) s
                 UNION ALL
                 SELECT hashtextextended('', s)
                   FROM unnest(ARRAY[10 + n.remote, company_tag(n.company_id)]
                          || CASE WHEN n.lat IS NULL THEN '{}'::int[] ELSE ARRAY[place_cell(n.lat, n.lng)] END) s
           ) AS keys
      FROM posting_search n WHERE n.posting_id = ANY (ids) AND n.expires_at > at
       AND NOT EXISTS (
         SELECT FROM job_postings j
          WHERE j.id = n.posting_id AND CASE WHEN j.source IS NULL THEN j.published_at ELSE j.created_at END
                < (SELECT l.forgotten_before FROM alert_ledger l WHERE l.is_only)))
  SELECT DISTINCT p.posting_id, g.group_id
    FROM p CROSS JOIN LATERAL unnest(p.keys) k JOIN alert_anchors g ON g.anchor_key = k
   WHERE (g.kind IS NULL OR g.kind = p.kind) AND (g.remote IS NULL OR g.remote = p.remote)
     AND (g.min_salary IS NULL OR p.salary_max >= g.min_salary)
     AND (g.company_id IS NULL OR g.company_id = p.company_id)
     AND (g.radius_km IS NULL OR km(p.lat, p.lng, g.lat, g.lng) <= g.radius_km)
     AND (g.query IS NULL OR p.tsv @@ g.query)
$$;

-- migrate:down
CREATE OR REPLACE FUNCTION match_postings(ids bigint[], at timestamptz) RETURNS TABLE (posting_id bigint, group_id int)
LANGUAGE sql STABLE ROWS 1000
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off SET enable_seqscan = off AS $$
  WITH p AS MATERIALIZED (
    SELECT n.posting_id, n.kind, n.remote, n.salary_max, n.company_id, n.lat, n.lng, n.tsv || ''::tsvector AS tsv,
           ARRAY(SELECT hashtextextended(l, s)
                   FROM unnest(tsvector_to_array(n.tsv)) l,
                        unnest(ARRAY[0] || CASE WHEN n.remote = 2 THEN ARRAY[12] ELSE '{}'::int[] END
                          || CASE WHEN n.lat IS NULL THEN '{}'::int[] ELSE ARRAY[place_cell(n.lat, n.lng)] END) s
                 UNION ALL
                 SELECT hashtextextended('', s)
                   FROM unnest(ARRAY[10 + n.remote, company_tag(n.company_id)]
                          || CASE WHEN n.lat IS NULL THEN '{}'::int[] ELSE ARRAY[place_cell(n.lat, n.lng)] END) s
           ) AS keys
      FROM posting_search n WHERE n.posting_id = ANY (ids) AND n.expires_at > at)
  SELECT DISTINCT p.posting_id, g.group_id
    FROM p CROSS JOIN LATERAL unnest(p.keys) k JOIN alert_anchors g ON g.anchor_key = k
   WHERE (g.kind IS NULL OR g.kind = p.kind) AND (g.remote IS NULL OR g.remote = p.remote)
     AND (g.min_salary IS NULL OR p.salary_max >= g.min_salary)
     AND (g.company_id IS NULL OR g.company_id = p.company_id)
     AND (g.radius_km IS NULL OR km(p.lat, p.lng, g.lat, g.lng) <= g.radius_km)
     AND (g.query IS NULL OR p.tsv @@ g.query)
$$;
DROP TABLE alert_ledger;
