-- migrate:up
-- Loads the library, so that an ordinary owner may name its settings in a function.
SELECT similarity('', '');

-- Facts for planning. Only speed depends on them, never a result.
CREATE TABLE search_terms (lexeme text CONSTRAINT search_terms_pkey PRIMARY KEY, df int NOT NULL);
CREATE TABLE search_tags (tag int CONSTRAINT search_tags_pkey PRIMARY KEY, df int NOT NULL);
CREATE TABLE search_facts (
  one bool CONSTRAINT search_facts_pkey PRIMARY KEY DEFAULT true CONSTRAINT search_facts_one CHECK (one),
  postings real NOT NULL
);
-- How many postings are of a day or newer. Most postings of a board are of its last weeks: windows of time alone would
-- hold far too many of them, or none.
CREATE TABLE search_days (day int CONSTRAINT search_days_pkey PRIMARY KEY, newer int NOT NULL);
CREATE INDEX search_days_newer ON search_days (newer);
-- Spelling help: the words of titles, skills and companies as people write them.
CREATE TABLE search_words (word text CONSTRAINT search_words_pkey PRIMARY KEY, df int NOT NULL);
CREATE INDEX search_words_trgm ON search_words USING gin (word gin_trgm_ops);

-- Run by a work item and after an import. From a sample of n/32 that has some 8,000 postings, or 1/32: 7 s for a
-- million.
CREATE FUNCTION refresh_search_facts() RETURNS void
LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE total bigint; parts int; scale real; part text;
BEGIN
  -- Two at once would insert the same rows.
  PERFORM pg_advisory_xact_lock(hashtextextended('martlet refresh_search_facts', 0));
  DELETE FROM posting_search WHERE expires_at < now();
  SELECT count(*) INTO total FROM posting_search;
  parts := greatest(1, least(32, ceil(32.0 * 8000 / greatest(total, 1))))::int;
  scale := 32.0 / parts;
  part := CASE WHEN parts < 32 THEN ' WHERE (hashint8(posting_id) & 31) < ' || parts ELSE '' END;
  DELETE FROM search_terms; DELETE FROM search_tags; DELETE FROM search_facts; DELETE FROM search_words;
  DELETE FROM search_days;
  INSERT INTO search_terms SELECT word, ndoc * scale FROM ts_stat('SELECT tsv FROM posting_search' || part);
  EXECUTE 'INSERT INTO search_tags SELECT t, count(*) * $1 FROM posting_search, unnest(tags) t' || part
    || ' GROUP BY 1' USING scale;
  INSERT INTO search_days SELECT tag - 1000, sum(df) OVER (ORDER BY tag DESC) FROM search_tags
   WHERE tag BETWEEN 1000 AND 99999;
  INSERT INTO search_facts VALUES (true, greatest(1, total));
  INSERT INTO search_words SELECT word, ndoc * scale FROM ts_stat(
      'SELECT to_tsvector(''simple'', search_normalise(concat_ws(E''\n'', p.title, array_to_string(p.skills, '' , ''),'
      ' c.name))) FROM posting_search s JOIN job_postings p ON p.id = s.posting_id'
      ' JOIN companies c ON c.id = p.company_id'
      || replace(part, 'posting_id', 's.posting_id'))
    WHERE char_length(word) BETWEEN 3 AND 40 AND word !~ '^(qq|[0-9])';
END $$;

-- How many postings hold a query's words, place and tags, roughly.
CREATE FUNCTION search_estimate(q text, place text, tag_filter int[], cells int[]) RETURNS real
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  WITH n AS (SELECT coalesce((SELECT postings FROM search_facts),
                             (SELECT greatest(1, reltuples) FROM pg_class
                               WHERE oid = 'posting_search'::regclass))::real AS n),
  cl AS (SELECT clause, least(0.95, sum(bdf) / n) AS p FROM n, (
           SELECT c.clause, c.branch, min(coalesce(t.df, 16)) AS bdf
             FROM search_clauses(q) c, unnest(c.lexemes) l LEFT JOIN search_terms t ON t.lexeme = l
            WHERE NOT c.negated GROUP BY 1, 2) b GROUP BY clause, n),
  pl AS (SELECT coalesce(least(1, min(coalesce(t.df, 16)) / max(n)), 1) AS p
           FROM n, unnest(place_lexemes(place)) l LEFT JOIN search_terms t ON t.lexeme = l),
  tg AS (SELECT coalesce(exp(sum(ln(least(1, greatest(coalesce(t.df, 16), 16) / n)))), 1) AS p
           FROM n, unnest(tag_filter) f LEFT JOIN search_tags t ON t.tag = f),
  ce AS (SELECT CASE WHEN cells IS NULL THEN 1 ELSE least(1, coalesce(sum(t.df) / max(n), 0.00002)) END AS p
           FROM n, unnest(coalesce(cells, '{}'::int[])) f JOIN search_tags t ON t.tag = f)
  SELECT (n * (SELECT coalesce(exp(sum(ln(p))), 1) FROM cl) * pl.p * tg.p * ce.p)::real FROM n, pl, tg, ce
$$;

CREATE FUNCTION search_tag_filter(kind smallint, remote smallint, salary int, company bigint) RETURNS int[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_remove(ARRAY[kind::int, 10 + remote, CASE WHEN salary >= 10000 THEN 20 + least(19, salary / 10000) END,
                            company_tag(company)], NULL)
$$;

-- The conditions of a search as text, for the parameters $1 words and place, $2 tags, $3 cells, $4 lat, $5 lng,
-- $6 radius, $7 now, $8 company, $9 salary. Written out, so that each combination is planned for what it is.
CREATE FUNCTION search_condition(has_words bool, tag_filter int[], cells int[], company bigint, salary int) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 'expires_at > $7' || CASE WHEN has_words THEN ' AND tsv @@ $1' ELSE '' END
    || CASE WHEN tag_filter <> '{}' THEN ' AND tags @> $2' ELSE '' END
    || CASE WHEN cells IS NOT NULL THEN ' AND tags && $3 AND km(lat, lng, $4, $5) <= $6' ELSE '' END
    || CASE WHEN company IS NOT NULL THEN ' AND company_id = $8' ELSE '' END
    || CASE WHEN salary > 0 THEN ' AND salary_max >= $9' ELSE '' END
$$;

-- The words of a search, NULL without any.
CREATE FUNCTION search_words_query(q text) RETURNS tsquery
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE words tsquery := search_query(q);
BEGIN
  IF words IS NULL AND coalesce(btrim(q), '') <> '' THEN
    RAISE EXCEPTION 'search_needs_a_term' USING ERRCODE = 'MS001',
      HINT = 'Only stop words, or only what must not be there.';
  END IF;
  RETURN words;
END $$;

-- The newest day at or before p_before since which there are p_count postings; NULL without facts or so many.
CREATE FUNCTION search_day_of(p_count double precision, p_before int) RETURNS int
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT day FROM search_days WHERE newer >= p_count AND day <= p_before ORDER BY newer LIMIT 1
$$;

-- Order: window of days (newest first), score, id: the best of the newest matches, not of all. The first window is the
-- newest one expected to hold p_want_candidates matches; a short window is followed by the next older one, eight times
-- as full, the last is everything older. Next page: pass from_day, to_day, score and id of the last row.
CREATE FUNCTION search_postings(
  p_q text, p_place text DEFAULT '', p_kind smallint DEFAULT NULL, p_remote smallint DEFAULT NULL,
  p_salary int DEFAULT NULL, p_company bigint DEFAULT NULL,
  p_lat real DEFAULT NULL, p_lng real DEFAULT NULL, p_radius_km real DEFAULT NULL,
  p_now timestamptz DEFAULT now(), p_want int DEFAULT 25,
  p_after_from int DEFAULT NULL, p_after_to int DEFAULT NULL, p_after_score real DEFAULT NULL,
  p_after_id bigint DEFAULT NULL, p_oldest_day int DEFAULT NULL, p_want_candidates int DEFAULT 300)
RETURNS TABLE (posting_id bigint, score real, from_day int, to_day int)
LANGUAGE plpgsql STABLE ROWS 25 SET client_min_messages = warning AS $$
DECLARE
  -- Older than any posting. Windows of more days than this are not named day by day.
  nothing_older CONSTANT int := -1000000; day_tags_max CONSTANT int := 366;
  words tsquery := search_words_query(p_q); place tsquery := place_query(p_place);
  query tsquery := CASE WHEN words IS NULL THEN place WHEN place IS NULL THEN words ELSE words && place END;
  tag_filter int[] := search_tag_filter(p_kind, p_remote, p_salary, p_company);
  cells int[] := CASE WHEN p_radius_km IS NOT NULL THEN place_cells(p_lat, p_lng, p_radius_km) END;
  -- A day on, because the clocks of those who publish are not ours.
  newest CONSTANT int := day_of(p_now) + 1;
  oldest CONSTANT int := coalesce(p_oldest_day, nothing_older);
  lo int; hi int; got int; missing int := p_want; named bool; condition text; ranked text;
BEGIN
  condition := search_condition(query IS NOT NULL, tag_filter, cells, p_company, p_salary);
  ranked := CASE WHEN words IS NULL THEN 'extract(epoch FROM published_at)::real' ELSE 'ts_rank(head, $14, 1)' END;
  IF p_after_id IS NOT NULL THEN
    hi := least(p_after_to, newest + 1); lo := greatest(p_after_from, oldest);
  ELSE
    hi := newest;
    lo := search_day_of((SELECT f.postings FROM search_facts f) * p_want_candidates / greatest(1,
            search_estimate(coalesce(p_q, ''), coalesce(p_place, ''), tag_filter, cells)), newest);
  END IF;
  LOOP
    IF p_after_id IS NULL AND (lo IS NULL OR hi - lo >= day_tags_max) THEN lo := oldest; END IF;
    lo := greatest(lo, oldest);
    named := lo > nothing_older AND hi - lo < day_tags_max;
    RETURN QUERY EXECUTE 'SELECT posting_id, score, ' || lo || ', ' || hi || ' FROM (SELECT posting_id, ' || ranked
        || ' AS score FROM posting_search WHERE ' || condition
        || CASE WHEN lo > nothing_older THEN ' AND published_at >= $10' ELSE '' END || ' AND published_at < $11'
        || CASE WHEN named THEN ' AND tags && $15' ELSE '' END || ' OFFSET 0) m'
        || CASE WHEN p_after_id IS NOT NULL THEN ' WHERE (score, posting_id) < ($12, $13)' ELSE '' END
        || ' ORDER BY score DESC, posting_id DESC LIMIT ' || missing
      USING query, tag_filter, cells, p_lat, p_lng, p_radius_km, p_now, p_company, p_salary,
            to_timestamp(greatest(lo, nothing_older)::bigint * 86400), to_timestamp((hi + 1)::bigint * 86400),
            p_after_score, p_after_id, words,
            CASE WHEN named THEN ARRAY(SELECT 1000 + d FROM generate_series(lo, hi) d) END;
    GET DIAGNOSTICS got = ROW_COUNT;
    missing := missing - got; p_after_id := NULL;
    EXIT WHEN missing <= 0 OR lo <= oldest;
    hi := lo - 1;
    lo := search_day_of(8 * (SELECT d.newer FROM search_days d WHERE d.day > hi ORDER BY d.day LIMIT 1), hi);
  END LOOP;
END $$;

-- Counts by kind, remote, salary band, place cell, and the total: exact up to about p_exact_below expected matches,
-- above that from a uniform sample of n/32 of the postings (tags 40..71), scaled.
CREATE FUNCTION search_facets(
  p_q text, p_place text DEFAULT '', p_kind smallint DEFAULT NULL, p_remote smallint DEFAULT NULL,
  p_salary int DEFAULT NULL, p_company bigint DEFAULT NULL,
  p_lat real DEFAULT NULL, p_lng real DEFAULT NULL, p_radius_km real DEFAULT NULL,
  p_now timestamptz DEFAULT now(), p_exact_below int DEFAULT 5000)
RETURNS TABLE (facet text, value int, n bigint, exact bool)
LANGUAGE plpgsql STABLE SET client_min_messages = warning AS $$
DECLARE
  words tsquery := search_words_query(p_q); place tsquery := place_query(p_place);
  query tsquery := CASE WHEN words IS NULL THEN place WHEN place IS NULL THEN words ELSE words && place END;
  tag_filter int[] := search_tag_filter(p_kind, p_remote, p_salary, p_company);
  cells int[] := CASE WHEN p_radius_km IS NOT NULL THEN place_cells(p_lat, p_lng, p_radius_km) END;
  estimate real := search_estimate(coalesce(p_q, ''), coalesce(p_place, ''), tag_filter, cells);
  parts int := CASE WHEN estimate <= p_exact_below THEN 32
                    ELSE least(32, ceil(32.0 * p_exact_below * 0.6 / greatest(estimate, 1)))::int END;
BEGIN
  RETURN QUERY EXECUTE 'WITH m AS MATERIALIZED (
      SELECT kind, remote, least(19, salary_max / 10000) AS band,
             CASE WHEN lat IS NULL OR lng IS NULL THEN NULL ELSE place_cell(lat, lng) END AS cell
        FROM posting_search WHERE '
    || search_condition(query IS NOT NULL, tag_filter, cells, p_company, p_salary)
    || CASE WHEN parts < 32 THEN ' AND tags && $10' ELSE '' END || '),
    g AS (SELECT kind, remote, band, cell, count(*) AS n, grouping(kind) AS gk, grouping(remote) AS gr,
                 grouping(band) AS gb, grouping(cell) AS gc
            FROM m GROUP BY GROUPING SETS ((kind), (remote), (band), (cell), ()))
    SELECT CASE WHEN gk = 0 THEN ''kind'' WHEN gr = 0 THEN ''remote'' WHEN gb = 0 THEN ''salary''
                WHEN gc = 0 THEN ''cell'' ELSE ''total'' END,
           coalesce(kind, remote, band, cell)::int, n * 32 / $11, $11 = 32
      FROM g WHERE gc = 1 OR cell IS NOT NULL ORDER BY 1, 2'
    USING query, tag_filter, cells, p_lat, p_lng, p_radius_km, p_now, p_company, p_salary,
          ARRAY(SELECT 39 + b FROM generate_series(1, parts) b), parts;
END $$;

-- Known words near one that no posting has: trigram neighbours. The caller weighs them by edit distance, because
-- transpositions share few trigrams.
CREATE FUNCTION search_suggest(w text, lim int DEFAULT 10) RETURNS TABLE (word text, sim real, df int)
LANGUAGE sql STABLE SET pg_trgm.similarity_threshold = 0.25 AS $$
  SELECT s.word, similarity(s.word, w), s.df FROM search_words s
   WHERE s.word % w AND abs(char_length(s.word) - char_length(w)) <= 2
   ORDER BY similarity(s.word, w) + ln(1 + s.df) / 30 DESC, s.word LIMIT lim
$$;

-- migrate:down
DROP FUNCTION search_suggest, search_facets, search_postings, search_day_of, search_words_query, search_condition,
  search_tag_filter, search_estimate, refresh_search_facts;
DROP TABLE search_days, search_words, search_facts, search_tags, search_terms;
