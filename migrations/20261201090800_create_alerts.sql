-- migrate:up
-- People who save the same search share one group: it is matched once, then fanned out.
CREATE TABLE alert_groups (
  id int GENERATED ALWAYS AS IDENTITY CONSTRAINT alert_groups_pkey PRIMARY KEY,
  canon text NOT NULL CONSTRAINT alert_groups_canon_key UNIQUE,
  query tsquery,
  kind smallint,
  remote smallint,
  min_salary int,
  company_id bigint,
  lat real,
  lng real,
  radius_km real
);

CREATE TABLE job_alerts (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT job_alerts_pkey PRIMARY KEY,
  user_id bigint NOT NULL CONSTRAINT job_alerts_user_id_fkey REFERENCES users ON DELETE CASCADE,
  group_id int NOT NULL CONSTRAINT job_alerts_group_id_fkey REFERENCES alert_groups,
  name text NOT NULL CONSTRAINT job_alerts_name_length CHECK (char_length(name) <= 100),
  q text NOT NULL CONSTRAINT job_alerts_q_length CHECK (char_length(q) <= 400),
  place_name text NOT NULL CONSTRAINT job_alerts_place_name_length CHECK (char_length(place_name) <= 100),
  cadence text NOT NULL CONSTRAINT job_alerts_cadence_known CHECK (cadence IN ('instant', 'daily', 'weekly')),
  state text NOT NULL DEFAULT 'active' CONSTRAINT job_alerts_state_known CHECK (state IN ('active', 'unsubscribed')),
  -- When the next digest is due, in the person's time zone; NULL for instant ones.
  next_digest_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT job_alerts_user_id_group_id_key UNIQUE (user_id, group_id),
  CONSTRAINT job_alerts_digest_time CHECK ((cadence = 'instant') = (next_digest_at IS NULL))
);
CREATE INDEX job_alerts_group ON job_alerts (group_id) INCLUDE (id);
CREATE INDEX job_alerts_digest ON job_alerts (next_digest_at) WHERE state = 'active';

-- One row per anchor: a term (the rarest of the cheapest clause, every branch of an OR) in a slot (0 anywhere, 12
-- remote only, a place cell). Without terms the term is empty and the slot is a company's tag, a cell or a remoteness.
-- The other filters are in the same row, so that matching reads one index.
CREATE TABLE alert_anchors (
  anchor_key bigint NOT NULL,
  group_id int NOT NULL CONSTRAINT alert_anchors_group_id_fkey REFERENCES alert_groups ON DELETE CASCADE,
  kind smallint,
  remote smallint,
  min_salary int,
  company_id bigint,
  lat real,
  lng real,
  radius_km real,
  query tsquery,
  CONSTRAINT alert_anchors_pkey PRIMARY KEY (anchor_key, group_id)
);
CREATE INDEX alert_anchors_cover ON alert_anchors (anchor_key)
  INCLUDE (group_id, kind, remote, min_salary, company_id, lat, lng, radius_km, query);
CREATE INDEX alert_anchors_group ON alert_anchors (group_id);

-- The ledger: what was told to whom, once a channel (1 mail). Written in bulk, so without foreign keys; a trigger
-- clears away what belongs to a deleted alert. Ready to be partitioned by HASH (alert_id).
CREATE TABLE alert_deliveries (
  alert_id bigint NOT NULL,
  posting_id bigint NOT NULL,
  channel smallint NOT NULL DEFAULT 1,
  -- Waits for its digest.
  pending boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT alert_deliveries_once PRIMARY KEY (alert_id, posting_id, channel)
);
CREATE INDEX alert_deliveries_pending ON alert_deliveries (alert_id) WHERE pending;

CREATE FUNCTION forget_alert_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM alert_deliveries d USING gone WHERE d.alert_id = gone.id;
  RETURN NULL;
END $$;
CREATE TRIGGER job_alerts_deleted AFTER DELETE ON job_alerts REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION forget_alert_deliveries();

-- Mails to be sent once. What they say is read when they are sent, so that no expired posting goes out; the Message-ID
-- is fixed here.
CREATE TABLE mails (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT mails_pkey PRIMARY KEY,
  message_id text NOT NULL CONSTRAINT mails_message_id_key UNIQUE,
  user_id bigint NOT NULL CONSTRAINT mails_user_id_fkey REFERENCES users ON DELETE CASCADE,
  alert_id bigint CONSTRAINT mails_alert_id_fkey REFERENCES job_alerts ON DELETE CASCADE,
  kind text NOT NULL CONSTRAINT mails_kind_known CHECK (kind IN ('alert_instant', 'alert_daily', 'alert_weekly')),
  posting_ids bigint[] NOT NULL DEFAULT '{}',
  state text NOT NULL DEFAULT 'queued'
    CONSTRAINT mails_state_known CHECK (state IN ('queued', 'sent', 'suppressed', 'dropped')),
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz
);
CREATE INDEX mails_user_id ON mails (user_id);
CREATE INDEX mails_alert_id ON mails (alert_id);
CREATE INDEX mails_ended_at ON mails (ended_at) WHERE state <> 'queued';

-- Addresses that servers refuse for good.
CREATE TABLE mail_suppressions (
  address text CONSTRAINT mail_suppressions_pkey PRIMARY KEY
    CONSTRAINT mail_suppressions_address_length CHECK (char_length(address) <= 254),
  reason text NOT NULL CONSTRAINT mail_suppressions_reason_length CHECK (char_length(reason) <= 500),
  created_at timestamptz NOT NULL DEFAULT now()
);

-- The first 08:00 after a time, each day or each Monday, where the person lives. Counted in local days, so it is 08:00
-- on both sides of a clock change. A zone that PostgreSQL does not know counts as UTC: one row must not stop others.
CREATE FUNCTION next_digest_at(cadence text, zone text, after timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE today date; due timestamptz;
BEGIN
  IF cadence = 'instant' THEN RETURN NULL; END IF;
  BEGIN
    today := (after AT TIME ZONE zone)::date;
  EXCEPTION WHEN invalid_parameter_value THEN
    zone := 'UTC'; today := (after AT TIME ZONE zone)::date;
  END;
  FOR n IN -1..8 LOOP
    CONTINUE WHEN cadence = 'weekly' AND extract(isodow FROM today + n) <> 1;
    due := (today + n + time '08:00') AT TIME ZONE zone;
    IF due > after THEN RETURN due; END IF;
  END LOOP;
  RAISE EXCEPTION 'no digest within nine days';
END $$;

-- Who moves to another time zone gets the next digest by the new one.
CREATE FUNCTION move_digests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE job_alerts SET next_digest_at = next_digest_at(cadence, NEW.time_zone, now())
   WHERE user_id = NEW.id AND cadence <> 'instant';
  RETURN NULL;
END $$;
CREATE TRIGGER users_time_zone_moved AFTER UPDATE OF time_zone ON users FOR EACH ROW
  WHEN (OLD.time_zone IS DISTINCT FROM NEW.time_zone) EXECUTE FUNCTION move_digests();

-- The group of a search, made with its anchors when it is new. Locks the group, so that nobody prunes it before the
-- alert is there. Raises MA001 for a search that nothing anchors: it would be looked at for every posting.
CREATE FUNCTION alert_group(
  p_q text, p_place text, p_kind smallint, p_remote smallint, p_salary int, p_company bigint,
  p_lat real, p_lng real, p_radius_km real) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  -- Anchors of one search: a wide circle in the far north touches many cells.
  anchors_max CONSTANT int := 400;
  words tsquery := search_words_query(p_q);
  place tsquery := place_query(p_place);
  all_words tsquery := CASE WHEN words IS NULL THEN place WHEN place IS NULL THEN words ELSE words && place END;
  salary int := nullif(p_salary, 0);
  cells int[] := CASE WHEN p_radius_km IS NOT NULL THEN place_cells(p_lat, p_lng, p_radius_km) END;
  key text; g int; is_new bool; terms text[]; slots int[];
BEGIN
  IF all_words IS NULL AND p_radius_km IS NULL AND p_remote IS NULL AND p_company IS NULL THEN
    RAISE EXCEPTION 'alert_needs_an_anchor' USING ERRCODE = 'MA001';
  END IF;
  key := jsonb_build_array(all_words::text, p_kind, p_remote, salary, p_company, p_lat, p_lng, p_radius_km)::text;
  INSERT INTO alert_groups (canon, query, kind, remote, min_salary, company_id, lat, lng, radius_km)
  VALUES (key, all_words, p_kind, p_remote, salary, p_company, p_lat, p_lng, p_radius_km)
  ON CONFLICT (canon) DO UPDATE SET canon = excluded.canon RETURNING id, xmax = 0 INTO g, is_new;
  IF NOT is_new THEN RETURN g; END IF;
  -- The cheapest clause by its rarest words; the words of a place are clauses like others.
  SELECT array_agg(DISTINCT term) INTO terms FROM (
    SELECT clause, (array_agg(l ORDER BY coalesce(t.df, 16), l))[1] AS term, min(coalesce(t.df, 16)) AS df
      FROM (SELECT c.clause, c.branch, l FROM search_clauses(p_q) c, unnest(c.lexemes) l WHERE NOT c.negated
            UNION ALL SELECT -row_number() OVER ()::int, 1, l FROM unnest(place_lexemes(p_place)) l) w
      LEFT JOIN search_terms t ON t.lexeme = w.l GROUP BY clause, branch) b
   GROUP BY clause ORDER BY sum(df), clause LIMIT 1;
  IF terms IS NULL THEN
    terms := '{""}';
    slots := CASE WHEN p_company IS NOT NULL THEN ARRAY[company_tag(p_company)]
                  WHEN cells IS NOT NULL THEN cells ELSE ARRAY[10 + p_remote] END;
  ELSE
    slots := CASE WHEN p_remote = 2 THEN ARRAY[12]
                  WHEN cardinality(cells) * cardinality(terms) <= anchors_max THEN cells ELSE ARRAY[0] END;
  END IF;
  INSERT INTO alert_anchors
    (anchor_key, group_id, kind, remote, min_salary, company_id, lat, lng, radius_km, query)
  SELECT DISTINCT hashtextextended(term, slot), g, p_kind, p_remote, salary, p_company, p_lat, p_lng, p_radius_km,
         all_words
    FROM unnest(terms) term, unnest(slots) slot;
  RETURN g;
END $$;

-- The groups that each of the postings matches at a time: found by their anchors, then held to the conditions of
-- search_condition. `tsv || ''` copies the vector out of TOAST once; nested loops on purpose (measured).
CREATE FUNCTION match_postings(ids bigint[], at timestamptz) RETURNS TABLE (posting_id bigint, group_id int)
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

-- A search's own words and phrases that a posting has, for telling why it matched.
CREATE FUNCTION words_found(q text, tsv tsvector) RETURNS text[]
LANGUAGE sql STABLE AS $$
  SELECT coalesce(array_agg(w.word ORDER BY w.n), '{}')
    FROM (SELECT coalesce(m[2], m[3]) AS word, CASE WHEN m[2] IS NULL THEN m[3] ELSE '"' || m[2] || '"' END AS asked, n
            FROM regexp_matches(left(q, 400), '(-?)(?:"([^"]*)"|([^\s"]+))', 'g') WITH ORDINALITY AS t (m, n)
           WHERE m[1] = '' AND lower(coalesce(m[3], '')) NOT IN ('or', '|')) w
   WHERE tsv @@ search_query(w.asked)
$$;

-- migrate:down
DROP FUNCTION words_found, match_postings, alert_group;
DROP TRIGGER users_time_zone_moved ON users;
DROP FUNCTION move_digests, next_digest_at;
DROP TABLE mail_suppressions, mails, alert_deliveries, alert_anchors, job_alerts, alert_groups;
DROP FUNCTION forget_alert_deliveries;
