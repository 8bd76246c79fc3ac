-- migrate:up
-- Trigrams for spelling help. Never install intarray: its && and @> on int[] hide the built-in ones, and the GIN index
-- below would silently not be used.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
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
    || ('{21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39}'::int[])[1:salary_max / 10000]
$$;

-- Narrow on purpose; the posting's text stays in job_postings. head (title A, skills B) ranks; tsv (all, no weights)
-- matches.
-- Here are the published postings only, those that expire until their time.
CREATE TABLE posting_search (
  posting_id bigint CONSTRAINT posting_search_pkey PRIMARY KEY,
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

-- Instead of a foreign key, whose check of every row, a lock and its WAL, costs an import more than the row itself.
CREATE FUNCTION posting_search_forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM posting_search s USING gone WHERE s.posting_id = gone.id;
  RETURN NULL;
END $$;
CREATE TRIGGER job_postings_forget AFTER DELETE ON job_postings
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION posting_search_forget();

-- The upper end of a salary a year in whole units, as Core's Salary.yearlyMaximum.
CREATE FUNCTION salary_a_year(amount bigint, period text) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN amount IS NULL THEN 0 ELSE least(2147483647, trunc(amount / 100)::numeric * CASE period
         WHEN 'hour' THEN 2080 WHEN 'day' THEN 260 WHEN 'week' THEN 52 WHEN 'month' THEN 12 ELSE 1 END)::int END
$$;

-- Safe HTML without its tags: the sanitiser's, where every < is a tag's and entities are few.
CREATE FUNCTION without_tags(html text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$ SELECT regexp_replace(html, '<[^>]*>', ' ', 'g') $$;

CREATE FUNCTION safe_html_words(html text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
  SELECT CASE WHEN position('&' in html) = 0 THEN without_tags(html) ELSE
    replace(replace(replace(replace(replace(without_tags(html),
      '&lt;', '<'), '&gt;', '>'), '&quot;', '"'), '&#39;', ''''), '&amp;', '&') END
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
         setweight(to_tsvector('martlet', split_part(w.words, 'qqfield', 1)), 'A')
           || CASE WHEN p.skills = '{}' THEN ''
                   ELSE setweight(to_tsvector('martlet', split_part(w.words, 'qqfield', 2)), 'B') END,
         -- The mark keeps a place between the fields, so that no phrase reaches from one into the next.
         ts_delete(to_tsvector('martlet', w.words), 'qqfield')
           || CASE WHEN p.place = '' THEN '' ELSE array_to_tsvector(place_lexemes(p.place)) END
    FROM job_postings p
    JOIN companies c ON c.id = p.company_id
    CROSS JOIN LATERAL (SELECT salary_a_year(coalesce(p.salary_max, p.salary_min), p.salary_period) AS salary
                        OFFSET 0) y
    -- Normalised in one go, which is what an import mostly costs; the mark is a word no text has.
    CROSS JOIN LATERAL (SELECT search_normalise(concat(
             p.title, E'\nqqfield\n',
             CASE WHEN p.skills <> '{}' THEN
               (SELECT string_agg(search_term_case(s), E' ,\n') FROM unnest(p.skills) s) END, E'\nqqfield\n',
             c.name, E'\n', p.place, E'\nqqfield\n',
             safe_html_words(p.description))) AS words OFFSET 0) w
   WHERE p.id = ANY (ids) AND p.state = 'published' AND (p.valid_through IS NULL OR p.valid_through > now())
   ORDER BY p.id
  ON CONFLICT (posting_id) DO UPDATE SET
    company_id = excluded.company_id, published_at = excluded.published_at, expires_at = excluded.expires_at,
    salary_max = excluded.salary_max, lat = excluded.lat, lng = excluded.lng, kind = excluded.kind,
    remote = excluded.remote, tags = excluded.tags, head = excluded.head, tsv = excluded.tsv;
$$;

CREATE FUNCTION index_posting(id bigint) RETURNS void
LANGUAGE sql AS $$ SELECT index_postings(ARRAY[id]) $$;

-- migrate:down
DROP TRIGGER job_postings_forget ON job_postings;
DROP FUNCTION posting_search_forget, index_posting, index_postings, safe_html_words, without_tags,
  salary_a_year;
DROP TABLE posting_search;
DROP FUNCTION posting_tags, company_tag, place_cells, place_cell, day_of, km, place_query, place_lexemes, search_query;
DROP AGGREGATE tsq_all(tsquery), tsq_any(tsquery);
DROP FUNCTION search_clauses, search_term_case, search_vector, search_normalise;
DROP TEXT SEARCH CONFIGURATION martlet;
-- pg_trgm stays: who else uses it is not ours to know.
