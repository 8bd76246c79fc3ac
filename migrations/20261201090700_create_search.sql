-- migrate:up
-- Trigrams for spelling help. Never install intarray: its && and @> on int[] hide the built-in ones, and the GIN index
-- below would silently not be used.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
-- Loads the library, so that an ordinary owner may name its settings in a function.
SELECT similarity('', '');
-- Snowball for words; nothing else can reach the parser after search_normalise.
CREATE TEXT SEARCH CONFIGURATION martlet (COPY = pg_catalog.english);

-- One function for documents and queries. Output: lower-case words of letters and digits, separated by spaces.
-- Terms that a word parser would lose become words of their own: qqc qqcpp qqcsharp qqfsharp qqdotnet qqnode qqr qqgo
-- qqit qqobjc.
CREATE FUNCTION search_normalise(raw text) RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT AS $$
DECLARE s text := ' ' || raw || ' ';
BEGIN
  -- Every step but the cheapest stands behind a cheap test: an import spends most of its time here.
  -- 1. What needs case or punctuation.
  IF position('&' in s) > 0 THEN
    s := replace(replace(s, '&amp;', '&'), '&nbsp;', ' ');
    -- AT&T
    s := regexp_replace(s, '\m([A-Za-z]{2})&([A-Za-z])\M', '\1n\2', 'g');
    -- R&D, Q & A
    s := regexp_replace(s, '\m([A-Za-z])\s?&\s?([A-Za-z])\M(?![+#])', '\1n\2', 'g');
  END IF;
  IF position('(' in s) > 0 THEN
    -- 401(k); then (c), (R) and list marks
    s := regexp_replace(s, '(\d)\(([A-Za-z])\)', '\1\2', 'g');
    s := regexp_replace(s, '\([A-Za-z]\)', ' ', 'g');
  END IF;
  IF s LIKE '%._.%' OR s LIKE '%.__.%' THEN
    -- D.C., U.S.A.
    s := regexp_replace(s, '\m([A-Za-z])\.\s?([A-Za-z])\.(?:\s?([A-Za-z])\M\.?)?', '\1\2\3', 'g');
  END IF;
  IF position('-' in s) > 0 THEN
    s := regexp_replace(s, '\mobj(ective)?-C(\+\+)?(?!\w)', ' qqobjc ', 'gi');
    -- go-getter, C-level, T-SQL, H-1B
    s := regexp_replace(s, '\m([A-Za-z]|go)-(?!based|like|program|lang|develop)(?=\w)', '\1', 'gi');
    -- USB-C
    s := regexp_replace(s, '(?<=\w)-([A-Za-z])\M(?![+#&''’-])', '\1', 'g');
  END IF;
  IF s ~ '\s[A-Za-z]\M' THEN
    s := regexp_replace(s, '\m(series|vitamin|class|grade|schedule|hepatitis|appendix|category|level|tier|part|group|'
           'phase|exhibit|section|chapter|annex)\s([A-Za-z])\M(?![+#&/''’])', '\1\2', 'gi');
  END IF;
  IF position('Go' in s) > 0 THEN
    s := regexp_replace(s, '\mGo\M(?![-''’]|\s+(to|above|beyond|the|live|further|for|on|out|home|into|through|big|'
           'green|after|ahead|back|online|where|beyond|getters?)\M)', ' qqgo ', 'g');
  END IF;
  IF position('IT' in s) > 0 THEN
    s := regexp_replace(s, '\mIT\M(?![''’])', ' qqit ', 'g');
  END IF;
  -- 2. Lower case, separators to spaces (kept: + # . -), accents folded.
  s := lower(s);
  s := regexp_replace(s, E'[][(){},;:/|\\\\"!?*=<>~^`@$%_&''’‘“”–—•·…\n\r\t\u00a0]'
         '[][(){},;:/|\\\\"!?*=<>~^`@$%_&''’‘“”–—•·…\n\r\t\u00a0 ]*', ' ', 'g');
  IF octet_length(s) <> char_length(s) THEN
    IF s ~ '[àáâãäåāąçćčďèéêëēęěìíîïīłñńňòóôõöøōřśšùúûüūůýÿźżž]' THEN
      s := translate(s, 'àáâãäåāąçćčďèéêëēęěìíîïīłñńňòóôõöøōřśšùúûüūůýÿźżž',
                        'aaaaaaaacccdeeeeeeeiiiiilnnnooooooorssuuuuuuyyzzz');
    END IF;
    s := replace(s, 'ß', 'ss');
  END IF;
  s := replace(s, '. ', ' ');
  -- 3. Literal terms.
  IF position('+' in s) > 0 THEN
    s := replace(replace(s, ' c ++', ' c++'), ' c++', ' qqcpp ');
  END IF;
  IF position('#' in s) > 0 THEN
    s := replace(replace(replace(s, ' c #', ' c#'), ' c#', ' qqcsharp '), ' f#', ' qqfsharp ');
  END IF;
  IF position('.' in s) > 0 THEN
    s := replace(s, '.js', 'js');
    s := replace(replace(replace(s, ' asp.net', ' aspnet qqdotnet '), ' vb.net', ' vbnet qqdotnet '),
                 ' ado.net', ' adonet qqdotnet ');
    s := replace(replace(s, ' .net', ' qqdotnet '), ' ph.d', ' phd ');
  END IF;
  s := regexp_replace(s, '([+#.-]| {2})[ +#.-]*', ' ', 'g');
  s := regexp_replace(s, ' {2,}', ' ', 'g');
  IF position('js ' in s) > 0 THEN
    s := replace(replace(s, ' nodejs ', ' qqnode '), ' node js ', ' qqnode ');
    s := replace(replace(s, ' reactjs ', ' react '), ' react js ', ' react ');
    s := replace(replace(s, ' vuejs ', ' vue '), ' vue js ', ' vue ');
    s := replace(replace(s, ' angularjs ', ' angular '), ' angular js ', ' angular ');
    s := replace(s, ' next js ', ' nextjs ');
    s := replace(s, ' express js ', ' expressjs ');
  END IF;
  IF s LIKE '% _ %' THEN
    s := replace(replace(s, ' c ', ' qqc '), ' r ', ' qqr ');
    s := replace(replace(s, ' qqc plus plus ', ' qqcpp '), ' qqc sharp ', ' qqcsharp ');
    s := replace(s, ' f sharp ', ' qqfsharp ');
  END IF;
  IF s ~ ' (golang|[cf]sharp|cpp|dot ?net|objective|front end|back end|full stack|dev ops) ' THEN
    s := replace(replace(s, ' golang ', ' qqgo '), ' cpp ', ' qqcpp ');
    s := replace(replace(s, ' csharp ', ' qqcsharp '), ' fsharp ', ' qqfsharp ');
    s := replace(replace(s, ' dotnet ', ' qqdotnet '), ' dot net ', ' qqdotnet ');
    s := replace(replace(s, ' objective qqc ', ' qqobjc '), ' objective qqcpp ', ' qqobjc ');
    s := replace(replace(s, ' front end ', ' frontend '), ' back end ', ' backend ');
    s := replace(replace(s, ' full stack ', ' fullstack '), ' dev ops ', ' devops ');
  END IF;
  RETURN btrim(s);
END $$;

CREATE FUNCTION search_vector(raw text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$ SELECT to_tsvector('martlet', search_normalise(raw)) $$;

-- Skills are given as list items, like query words: a lone "go" or "it" is the term, not the verb or the pronoun.
CREATE FUNCTION search_term_case(w text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS
$$ SELECT CASE lower(w) WHEN 'go' THEN 'Go' WHEN 'it' THEN 'IT' ELSE w END $$;

-- The query in conjunctive form: every clause must hold; a clause is one or more branches (OR); a branch is words in a
-- row. "a b" phrase, -word or -"a b" negated, a OR b (binds tighter than the implied AND). Limits: 16 branches.
CREATE FUNCTION search_clauses(q text)
RETURNS TABLE (clause int, branch int, negated bool, query tsquery, lexemes text[])
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE STRICT ROWS 4 AS $$
DECLARE
  -- kind: w word, p phrase, n negated, o OR
  m text[]; toks text[] := '{}'; kinds text[] := '{}';
  i int := 1; n int; run text := ''; w text; norm text; c int := 0; b int := 0; total int := 0;
BEGIN
  FOR m IN SELECT regexp_matches(left(q, 400), '(-?)(?:"([^"]*)"|([^\s"]+))', 'g') LOOP
    IF m[1] = '-' THEN toks := toks || coalesce(m[2], search_term_case(m[3])); kinds := kinds || 'n'::text;
    ELSIF m[2] IS NOT NULL THEN toks := toks || m[2]; kinds := kinds || 'p'::text;
    ELSIF lower(m[3]) = 'or' OR m[3] = '|' THEN toks := toks || ''::text; kinds := kinds || 'o'::text;
    ELSE toks := toks || search_term_case(btrim(m[3], ',;')); kinds := kinds || 'w'::text;
    END IF;
  END LOOP;
  n := coalesce(array_length(toks, 1), 0);
  WHILE i <= n AND total < 16 LOOP
    IF kinds[i] = 'o' THEN i := i + 1; CONTINUE; END IF;
    IF kinds[i] = 'n' THEN
      norm := search_normalise(toks[i]); query := phraseto_tsquery('martlet', norm);
      IF numnode(query) > 0 THEN
        c := c + 1; total := total + 1; clause := c; branch := 1; negated := true;
        lexemes := tsvector_to_array(to_tsvector('martlet', norm)); RETURN NEXT;
      END IF;
      i := i + 1; CONTINUE;
    END IF;
    negated := false;
    -- An OR group: x OR y OR z.
    IF i < n AND kinds[i+1] = 'o' THEN
      c := c + 1; b := 0;
      LOOP
        norm := search_normalise(toks[i]); query := phraseto_tsquery('martlet', norm);
        IF numnode(query) > 0 AND kinds[i] IN ('w', 'p') THEN
          b := b + 1; total := total + 1; clause := c; branch := b;
          lexemes := tsvector_to_array(to_tsvector('martlet', norm)); RETURN NEXT;
        END IF;
        EXIT WHEN total >= 16 OR NOT (i + 2 <= n AND kinds[i+1] = 'o' AND kinds[i+2] IN ('w', 'p'));
        i := i + 2;
      END LOOP;
      i := i + 1; CONTINUE;
    END IF;
    IF kinds[i] = 'p' THEN
      norm := search_normalise(toks[i]); query := phraseto_tsquery('martlet', norm);
      IF numnode(query) > 0 THEN
        c := c + 1; total := total + 1; clause := c; branch := 1;
        lexemes := tsvector_to_array(to_tsvector('martlet', norm)); RETURN NEXT;
      END IF;
      i := i + 1; CONTINUE;
    END IF;
    -- A run of bare words is normalised as one text ("node js"), each word of the result is a clause.
    run := toks[i]; i := i + 1;
    WHILE i <= n AND kinds[i] = 'w' AND NOT (i < n AND kinds[i+1] = 'o') LOOP
      run := run || ' ' || toks[i]; i := i + 1;
    END LOOP;
    FOREACH w IN ARRAY string_to_array(search_normalise(run), ' ') LOOP
      query := plainto_tsquery('martlet', w);
      IF numnode(query) > 0 AND total < 16 THEN
        c := c + 1; total := total + 1; clause := c; branch := 1;
        lexemes := tsvector_to_array(to_tsvector('martlet', w)); RETURN NEXT;
      END IF;
    END LOOP;
  END LOOP;
END $$;

CREATE AGGREGATE tsq_any(tsquery) (sfunc = pg_catalog.tsquery_or, stype = tsquery, parallel = safe);
CREATE AGGREGATE tsq_all(tsquery) (sfunc = pg_catalog.tsquery_and, stype = tsquery, parallel = safe);

-- NULL when nothing is required (only negations or only stop words): the caller then filters without text.
CREATE FUNCTION search_query(q text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
  SELECT CASE WHEN bool_or(NOT neg) THEN tsq_all(cq ORDER BY neg, cq::text) END
    FROM (SELECT clause, bool_or(negated) AS neg,
                 CASE WHEN bool_or(negated) THEN !!tsq_any(query ORDER BY query::text)
                      ELSE tsq_any(query ORDER BY query::text) END AS cq
            FROM search_clauses(q) GROUP BY clause) c
$$;

-- Words of a place's name become lexemes of their own space ("@washington", "@dc"), kept beside the words of the text
-- in posting_search.tsv: "Washington" as a place finds "Washington, DC", and not a person of that name in a text.
-- Neither stemmed nor stripped of stop words; the parser cannot make a lexeme that begins with "@".
CREATE FUNCTION place_lexemes(place text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
  SELECT coalesce(array_agg(DISTINCT '@' || left(w, 64)), '{}')
    FROM unnest(string_to_array(search_normalise(left(place, 255)), ' ')) w WHERE w <> ''
$$;

-- All words of the name; NULL when there are none.
CREATE FUNCTION place_query(place text) RETURNS tsquery
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
  SELECT tsq_all(quote_literal(l)::tsquery ORDER BY l) FROM unnest(place_lexemes(place)) l
$$;

CREATE FUNCTION km(lat1 real, lng1 real, lat2 real, lng2 real) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 12742 * asin(least(1, sqrt(sin(radians(lat2 - lat1) / 2) ^ 2
         + cos(radians(lat1)) * cos(radians(lat2)) * sin(radians(lng2 - lng1) / 2) ^ 2)))
$$;

CREATE FUNCTION day_of(t timestamptz) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT floor(extract(epoch FROM t) / 86400)::int $$;

CREATE FUNCTION place_cell(lat real, lng real) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$$ SELECT 100000 + (floor(lat)::int + 90) * 360 + ((floor(lng)::int + 540) % 360) $$;

-- The cells that a circle touches.
CREATE FUNCTION place_cells(lat real, lng real, radius_km real) RETURNS int[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(DISTINCT 100000 + (la + 90) * 360 + ((ln + 900) % 360))
    FROM (SELECT radius_km / 111.0 AS dy,
                 radius_km / (111.0 * greatest(0.05, cos(radians(least(89, abs(lat) + radius_km / 111.0))))) AS dx) d,
         generate_series(greatest(-90, floor(lat - dy)::int), least(90, floor(lat + dy)::int)) la,
         generate_series(floor(lng - dx)::int, floor(lng + dx)::int) ln
$$;

-- A company's tag; companies whose ids are a thousand million apart share one, so the id is compared as well.
CREATE FUNCTION company_tag(company_id bigint) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT (1000000000 + company_id % 1000000000)::int $$;

-- kind 1..9 | remote 10..12 | salary at least n * 10,000: 20 + n | sample 40..71 | day 1000+ | cell 100000+ | company
CREATE FUNCTION posting_tags(kind smallint, remote smallint, salary_max int, published timestamptz, lat real, lng real,
                             company_id bigint, id bigint) RETURNS int[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY[kind::int, 10 + remote, 40 + (hashint8(id) & 31), 1000 + day_of(published), company_tag(company_id)]
    || CASE WHEN lat IS NOT NULL AND lng IS NOT NULL THEN ARRAY[place_cell(lat, lng)] ELSE '{}'::int[] END
    || CASE WHEN salary_max >= 10000
         THEN (SELECT array_agg(20 + b) FROM generate_series(1, least(19, salary_max / 10000)) b) ELSE '{}'::int[] END
$$;

-- Narrow on purpose; the posting's text stays in job_postings. head (title A, skills B) ranks; tsv (all) matches.
-- Here are the published postings only, those that expire until their time.
CREATE TABLE posting_search (
  posting_id bigint CONSTRAINT posting_search_pkey PRIMARY KEY
    CONSTRAINT posting_search_posting_id_fkey REFERENCES job_postings ON DELETE CASCADE,
  company_id bigint NOT NULL,
  published_at timestamptz NOT NULL,
  -- A search names its time, so that a posting is gone in the second it expires.
  expires_at timestamptz NOT NULL DEFAULT 'infinity',
  -- The upper end in whole units a year.
  salary_max int NOT NULL DEFAULT 0,
  lat real,
  lng real,
  kind smallint NOT NULL,
  remote smallint NOT NULL,
  tags int[] NOT NULL,
  head tsvector NOT NULL,
  tsv tsvector NOT NULL
) WITH (toast_tuple_target = 128);
ALTER TABLE posting_search ALTER tsv SET COMPRESSION lz4, ALTER head SET STORAGE MAIN,
  ALTER head SET COMPRESSION lz4, ALTER tags SET STORAGE PLAIN;
-- A pending list, because entering postings together costs an import half of entering them singly; a short one, because
-- whoever fills it flushes it, and every search reads it (256 kB: some 200 postings, about 20 ms).
CREATE INDEX posting_search_gin ON posting_search USING gin (tsv, tags)
  WITH (fastupdate = on, gin_pending_list_limit = 256);
CREATE INDEX posting_search_expires_at ON posting_search (expires_at) WHERE expires_at < 'infinity';

-- The upper end of a salary a year in whole units, as Core's Salary.yearlyMaximum.
CREATE FUNCTION salary_a_year(amount bigint, period text) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN amount IS NULL THEN 0 ELSE least(2147483647, trunc(amount / 100)::numeric * CASE period
         WHEN 'hour' THEN 2080 WHEN 'day' THEN 260 WHEN 'week' THEN 52 WHEN 'month' THEN 12 ELSE 1 END)::int END
$$;

-- The words of safe HTML: the sanitiser's, where every < is a tag's and entities are few.
CREATE FUNCTION safe_html_words(html text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
  SELECT replace(replace(replace(replace(replace(regexp_replace(html, '<[^>]*>', ' ', 'g'),
         '&lt;', '<'), '&gt;', '>'), '&quot;', '"'), '&#39;', ''''), '&amp;', '&')
$$;

-- Brings search up to date with these postings: call it in the transaction that writes them. Those that are not
-- published or have expired leave the index; a later write brings them back.
CREATE FUNCTION index_postings(ids bigint[]) RETURNS void
LANGUAGE sql SET client_min_messages = warning AS $$
  DELETE FROM posting_search s WHERE s.posting_id = ANY (ids) AND NOT EXISTS (
    SELECT FROM job_postings p WHERE p.id = s.posting_id AND p.state = 'published'
       AND (p.valid_through IS NULL OR p.valid_through > now()));
  INSERT INTO posting_search (posting_id, company_id, published_at, expires_at, salary_max, lat, lng, kind, remote,
                              tags, head, tsv)
  SELECT p.id, p.company_id, p.published_at, coalesce(p.valid_through, 'infinity'), y.salary, p.lat, p.lng,
         p.kind, p.remote,
         posting_tags(p.kind, p.remote, y.salary, p.published_at, p.lat, p.lng, p.company_id, p.id),
         h.head,
         h.head || setweight(to_tsvector('martlet', w.words[3]), 'C')
           || to_tsvector('martlet', coalesce(w.words[4], ''))
           || CASE WHEN p.place = '' THEN '' ELSE array_to_tsvector(place_lexemes(p.place)) END
    FROM job_postings p
    JOIN companies c ON c.id = p.company_id
    CROSS JOIN LATERAL (SELECT salary_a_year(coalesce(p.salary_max, p.salary_min), p.salary_period) AS salary
                        OFFSET 0) y
    -- Normalised in one go, which is what an import mostly costs; the mark is a word no text has.
    CROSS JOIN LATERAL (SELECT string_to_array(search_normalise(concat(
             p.title, E'\nqqfield\n',
             (SELECT string_agg(search_term_case(s), E' ,\n') FROM unnest(p.skills) s), E'\nqqfield\n',
             c.name, E'\n', p.place, E'\nqqfield\n',
             safe_html_words(p.description))), 'qqfield') AS words OFFSET 0) w
    CROSS JOIN LATERAL (SELECT setweight(to_tsvector('martlet', w.words[1]), 'A')
             || setweight(to_tsvector('martlet', w.words[2]), 'B') AS head OFFSET 0) h
   WHERE p.id = ANY (ids) AND p.state = 'published' AND (p.valid_through IS NULL OR p.valid_through > now())
   ORDER BY p.id
  ON CONFLICT (posting_id) DO UPDATE SET
    company_id = excluded.company_id, published_at = excluded.published_at, expires_at = excluded.expires_at,
    salary_max = excluded.salary_max, lat = excluded.lat, lng = excluded.lng, kind = excluded.kind,
    remote = excluded.remote, tags = excluded.tags, head = excluded.head, tsv = excluded.tsv;
$$;

CREATE FUNCTION index_posting(id bigint) RETURNS void
LANGUAGE sql AS $$ SELECT index_postings(ARRAY[id]) $$;

-- Facts for planning. Only speed depends on them, never a result.
CREATE TABLE search_terms (lexeme text CONSTRAINT search_terms_pkey PRIMARY KEY, df int NOT NULL);
CREATE TABLE search_tags (tag int CONSTRAINT search_tags_pkey PRIMARY KEY, df int NOT NULL);
CREATE TABLE search_facts (
  one bool CONSTRAINT search_facts_pkey PRIMARY KEY DEFAULT true CONSTRAINT search_facts_one CHECK (one),
  postings real NOT NULL,
  oldest_day int NOT NULL
);
-- Spelling help: the words of titles, skills and companies as people write them.
CREATE TABLE search_words (word text CONSTRAINT search_words_pkey PRIMARY KEY, df int NOT NULL);
CREATE INDEX search_words_trgm ON search_words USING gin (word gin_trgm_ops);

-- Run by a work item and after an import. Above 50,000 postings from a 1/32 sample: 7 s for a million.
CREATE FUNCTION refresh_search_facts() RETURNS void
LANGUAGE plpgsql SET client_min_messages = warning AS $$
DECLARE total bigint; scale int; part text;
BEGIN
  -- Two at once would insert the same rows.
  PERFORM pg_advisory_xact_lock(hashtextextended('martlet refresh_search_facts', 0));
  DELETE FROM posting_search WHERE expires_at < now();
  SELECT count(*) INTO total FROM posting_search;
  scale := CASE WHEN total > 50000 THEN 32 ELSE 1 END;
  part := CASE WHEN total > 50000 THEN ' WHERE (hashint8(posting_id) & 31) = 7' ELSE '' END;
  DELETE FROM search_terms; DELETE FROM search_tags; DELETE FROM search_facts; DELETE FROM search_words;
  INSERT INTO search_terms SELECT word, ndoc * scale FROM ts_stat('SELECT tsv FROM posting_search' || part);
  EXECUTE 'INSERT INTO search_tags SELECT t, count(*) * $1 FROM posting_search, unnest(tags) t' || part
    || ' GROUP BY 1' USING scale;
  INSERT INTO search_facts SELECT true, greatest(1, count(*)), coalesce(min(day_of(published_at)), 0)
    FROM posting_search;
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

-- Order: window of days (newest first), score, id: the best of the newest matches, not of all. The first window is the
-- newest one expected to hold p_want_candidates matches; a short window is followed by the next older one, the last is
-- everything older. Next page: pass from_day, to_day, score and id of the last row.
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
  planned int := least(newest, coalesce(p_oldest_day, (SELECT f.oldest_day FROM search_facts f), newest - 365));
  days int; lo int; hi int; got int; missing int := p_want; named bool; condition text; ranked text;
BEGIN
  condition := search_condition(query IS NOT NULL, tag_filter, cells, p_company, p_salary);
  ranked := CASE WHEN words IS NULL THEN 'extract(epoch FROM published_at)::real' ELSE 'ts_rank(head, $14, 1)' END;
  IF p_after_id IS NOT NULL THEN
    hi := least(p_after_to, newest + 1); lo := greatest(p_after_from, oldest);
  ELSE
    days := newest - planned + 1;
    days := least(days, greatest(1, ceil(days * p_want_candidates
              / greatest(search_estimate(coalesce(p_q, ''), coalesce(p_place, ''), tag_filter, cells), 1))))::int;
    hi := newest; lo := hi - days + 1;
  END IF;
  LOOP
    IF p_after_id IS NULL AND (lo <= planned OR hi - lo >= day_tags_max) THEN lo := oldest; END IF;
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
    days := (hi - lo + 1) * 8; hi := lo - 1; lo := hi - days + 1;
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
DROP FUNCTION search_suggest, search_facets, search_postings, search_words_query, search_condition, search_tag_filter,
  search_estimate, refresh_search_facts, index_posting, index_postings, safe_html_words, salary_a_year;
DROP TABLE search_words, search_facts, search_tags, search_terms, posting_search;
DROP FUNCTION posting_tags, company_tag, place_cells, place_cell, day_of, km, place_query, place_lexemes, search_query;
DROP AGGREGATE tsq_all(tsquery), tsq_any(tsquery);
DROP FUNCTION search_clauses, search_term_case, search_vector, search_normalise;
DROP TEXT SEARCH CONFIGURATION martlet;
-- pg_trgm stays: who else uses it is not ours to know.
