"""A million published postings for search_rows.py, recombined from real ones.

A posting has the title of a real announcement or posting and sentences of real postings and companies. Most of its
sentences are from one of them, so words that go together in life go together here. They are indexed by the product's
own index_postings; nothing here writes posting_search itself.
"""

import html
import json
import os
import random
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator

from stand import ROOT, Stand

POSTINGS = 1_000_000
CHUNKS = 20  # Of which each session of psql makes one after the other.
BATCH = 2000  # Postings of a transaction.
SENTENCE_MIN, SENTENCE_MAX = 40, 240  # Characters.
SENTENCES_OWN, SENTENCES_OTHER = 3, 2  # Of a posting: of one document, and of any.
DATA = ROOT.parent / "shared/data"
MATERIAL = (
    DATA / "ats-mixed/jobs.json", DATA / "github-jobs/positions-2019-12-18-p1.json",
    DATA / "github-jobs/positions-2021-01-26.json",
)
COMPANIES = (DATA / "companies/remoteintech-companies.jsonl", ROOT / "ops/sample/companies.jsonl")
# Names with latitude and longitude, the largest first: a posting's place is among the first ones more often.
CITIES = """
New York, NY|40.71|-74.01;Washington, DC|38.91|-77.04;San Francisco, CA|37.77|-122.42;London, UK|51.51|-0.13
Los Angeles, CA|34.05|-118.24;Chicago, IL|41.88|-87.63;Boston, MA|42.36|-71.06;Seattle, WA|47.61|-122.33
Austin, TX|30.27|-97.74;Berlin, Germany|52.52|13.41;Toronto, Canada|43.65|-79.38;Houston, TX|29.76|-95.37
Atlanta, GA|33.75|-84.39;Denver, CO|39.74|-104.99;San Diego, CA|32.72|-117.16;Philadelphia, PA|39.95|-75.17
Dallas, TX|32.78|-96.80;Paris, France|48.86|2.35;Amsterdam, Netherlands|52.37|4.90;Phoenix, AZ|33.45|-112.07
Miami, FL|25.76|-80.19;Minneapolis, MN|44.98|-93.27;Portland, OR|45.52|-122.68;Baltimore, MD|39.29|-76.61
Detroit, MI|42.33|-83.05;Dublin, Ireland|53.35|-6.26;Sydney, Australia|-33.87|151.21;Bangalore, India|12.97|77.59
Pittsburgh, PA|40.44|-80.00;Saint Louis, MO|38.63|-90.20;Sacramento, CA|38.58|-121.49;Kansas City, MO|39.10|-94.58
Cleveland, OH|41.50|-81.69;Nashville, TN|36.16|-86.78;Salt Lake City, UT|40.76|-111.89;Honolulu, HI|21.31|-157.86
Anchorage, AK|61.22|-149.90;Albuquerque, NM|35.08|-106.65;Madrid, Spain|40.42|-3.70;Warsaw, Poland|52.23|21.01
Omaha, NE|41.26|-95.93;Huntsville, AL|34.73|-86.59;Boise, ID|43.62|-116.21;Lisbon, Portugal|38.72|-9.14
"""

TABLES = """
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS bench CASCADE;
CREATE SCHEMA bench;
CREATE TABLE bench.documents (id int PRIMARY KEY, title text NOT NULL, first int NOT NULL, sentences int NOT NULL);
CREATE TABLE bench.sentences (id int PRIMARY KEY, body text NOT NULL);
CREATE TABLE bench.cities (id int PRIMARY KEY, name text NOT NULL, lat real NOT NULL, lng real NOT NULL);
CREATE TABLE bench.skills (id int PRIMARY KEY, name text NOT NULL);
-- Of the imported announcements, the first paragraphs: who announces what.
CREATE TABLE bench.announced AS
  SELECT row_number() OVER (ORDER BY id) - 1 AS id, company_id, title, employment_type, kind,
         split_part(description, '<p>Open to:', 1) AS head
    FROM job_postings;
ALTER TABLE bench.announced ADD PRIMARY KEY (id);
-- The same numbers for the same posting in each run: 0 to below the count, and 0 to below 1.
CREATE FUNCTION bench.pick(posting bigint, salt int, count int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  'SELECT ((hashint8extended(posting, salt) & 2147483647) % count)::int';
CREATE FUNCTION bench.part(posting bigint, salt int) RETURNS float8 LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  'SELECT (hashint8extended(posting, salt) & 2147483647) / 2147483648.0::float8';
"""

# A quarter of the postings is of the last month of a year, a twenty-fifth of the last day, as fewer stay than come. A
# third says no salary, most say where.
MAKE = """
INSERT INTO job_postings
  (id, company_id, title, description, employment_type, kind, environment, remote, place, lat, lng, salary_min,
   salary_max, salary_currency, salary_period, skills, state, published_at, valid_through, created_at)
OVERRIDING SYSTEM VALUE
SELECT {base} + n, a.company_id, CASE WHEN bench.part(n, 1) < 0.5 THEN a.title ELSE d.title END,
       a.head || t.body, a.employment_type,
       CASE WHEN bench.part(n, 2) < 0.6 THEN a.kind ELSE 1 + bench.pick(n, 3, 9) END,
       CASE w.remote WHEN 2 THEN 'Remote' WHEN 1 THEN 'Hybrid' ELSE '' END, w.remote,
       CASE WHEN w.remote = 2 THEN '' ELSE c.name END,
       CASE WHEN w.remote < 2 THEN c.lat + bench.part(n, 4) - 0.5 END,
       CASE WHEN w.remote < 2 THEN c.lng + bench.part(n, 5) - 0.5 END,
       y.least, (y.least * (1 + bench.part(n, 6)))::bigint,
       CASE WHEN y.least IS NOT NULL THEN 'USD' END, CASE WHEN y.least IS NOT NULL THEN 'year' END,
       CASE WHEN bench.part(n, 7) < 0.4 THEN ARRAY(
         SELECT s.name FROM bench.skills s
          WHERE s.id IN (SELECT bench.pick(n, 20 + k, {skills}) FROM generate_series(0, bench.pick(n, 8, 6)) k))
            ELSE '{{}}' END,
       'published', p.at,
       CASE WHEN bench.part(n, 9) < 0.5 THEN now() + interval '1 day' * (5 + 60 * bench.part(n, 10)) END, p.at
  FROM generate_series({first}, {last}) n
  JOIN bench.announced a ON a.id = bench.pick(n, 11, {announced})
  JOIN bench.documents d ON d.id = bench.pick(n, 12, {documents})
  JOIN bench.cities c ON c.id = floor({cities} * power(bench.part(n, 13), 1.7))
 CROSS JOIN LATERAL (SELECT CASE WHEN bench.part(n, 14) < 0.15 THEN 2 WHEN bench.part(n, 14) < 0.3 THEN 1 ELSE 0 END
                            AS remote OFFSET 0) w
 CROSS JOIN LATERAL (SELECT CASE WHEN bench.part(n, 15) < 0.67 THEN 100 * (20000 + bench.pick(n, 16, 120000))
                            END::bigint AS least OFFSET 0) y
 CROSS JOIN LATERAL (SELECT now() - interval '1 day' * (365 * power(bench.part(n, 17), 1.8)) AS at OFFSET 0) p
 CROSS JOIN LATERAL (
   SELECT string_agg('<p>' || s.body || '</p>', '') AS body FROM bench.sentences s WHERE s.id = ANY (
     ARRAY(SELECT d.first + bench.pick(n, 30 + k, d.sentences) FROM generate_series(1, {own}) k)
     || ARRAY(SELECT bench.pick(n, 50 + k, {sentences}) FROM generate_series(1, {other}) k))) t;
SELECT FROM index_postings(ARRAY(SELECT {base} + n FROM generate_series({first}, {last}) n));
"""


@dataclass
class Document:
    title: str
    sentences: list[str] = field(default_factory=list)


def plain_sentences(text: str) -> list[str]:
    """Of HTML that may be escaped as a whole, of Markdown or of plain text."""
    text = html.unescape(text)
    text = re.sub(r"</?(p|li|ul|ol|div|h\d|br)\b[^>]*>", "\n", text)
    text = html.unescape(re.sub(r"<[^>]*>", " ", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = (" ".join(part.strip(" #*-•·").split()) for part in re.split(r"(?<=[.!?])\s+|\n", text))
    return [part for part in found if SENTENCE_MIN <= len(part) <= SENTENCE_MAX]


def material() -> Iterator[Document]:
    """Real postings where there are some, and what companies say of themselves."""
    for file in filter(Path.exists, MATERIAL):
        for row in json.loads(file.read_text()):
            yield Document(row["title"].strip()[:200], plain_sentences(row["description"]))
    for line in next(filter(Path.exists, COMPANIES)).read_text().splitlines():
        row = json.loads(line)
        trades = [name for name in row.get("technologies", []) if name]
        yield Document(f"{random.Random(row['slug']).choice(trades or ['software'])} engineer".capitalize(),
                       plain_sentences(row["body"]))


def documents() -> list[Document]:
    """A sentence is once in them, and none is without one."""
    seen: set[str] = set()
    kept = []
    for document in material():
        document.sentences = [one for one in document.sentences if not (one in seen or seen.add(one))]  # type: ignore
        if document.title and document.sentences:
            kept.append(document)
    return kept


class SearchData:
    """Made when it is first asked for; measures of the same run share it."""

    def __init__(self, stand: Stand):
        self.stand = stand
        self.documents: list[Document] = []
        self.cities: list[tuple[str, float, float]] = []
        self.postings = 0

    def ensure(self) -> None:
        if self.postings:
            return
        self.documents = documents()
        for line in CITIES.split("\n"):
            for city in filter(None, line.split(";")):
                name, lat, lng = city.split("|")
                self.cities.append((name, float(lat), float(lng)))
        begun = time.monotonic()
        self.fill()
        made = time.monotonic()
        self.postings = int(self.stand.sql("SELECT count(*) FROM posting_search"))
        words = self.stand.sql(
            "SELECT round(avg(array_length(string_to_array(search_normalise(safe_html_words(description)), ' '), 1))) "
            "FROM job_postings WHERE hashint8(id) % 1000 = 0"
        )
        size = self.stand.sql("SELECT pg_size_pretty(pg_relation_size('posting_search_gin'))")
        table = self.stand.sql("SELECT pg_size_pretty(pg_table_size('posting_search'))")
        self.stand.notes.append(
            f"search: {self.postings:,} postings of {words} words, recombined from {len(self.documents):,} real texts "
            f"and the announcements, made and indexed in {made - begun:.0f} s; index {size}, table {table}, "
            f"shared_buffers {self.stand.sql('SHOW shared_buffers')}, warm"
        )

    def fill(self) -> None:
        sentences = [sentence for document in self.documents for sentence in document.sentences]
        names = sorted({word for line in next(filter(Path.exists, COMPANIES)).read_text().splitlines()
                        for word in json.loads(line).get("technologies", [])})
        self.stand.sql(TABLES)
        first = 0
        rows = []
        for document in self.documents:
            rows.append((document.title, first, len(document.sentences)))
            first += len(document.sentences)
        self.copy("documents", rows)
        self.copy("sentences", [(html.escape(sentence, quote=False),) for sentence in sentences])
        self.copy("cities", self.cities)
        self.copy("skills", [(name,) for name in names])
        self.stand.sql("ANALYZE bench.documents, bench.sentences, bench.cities, bench.skills, bench.announced")
        base = int(self.stand.sql("SELECT max(id) FROM job_postings"))
        counts = {
            "base": base, "skills": len(names), "documents": len(rows), "cities": len(self.cities),
            "sentences": len(sentences), "own": SENTENCES_OWN, "other": SENTENCES_OTHER,
            "announced": int(self.stand.sql("SELECT count(*) FROM bench.announced")),
        }
        # Building an index at once costs a third of filling it; its definition is the schema's own.
        index = self.stand.sql("SELECT indexdef FROM pg_indexes WHERE indexname = 'posting_search_gin'")
        # Without checkpoints that write each page's image again.
        self.configure("max_wal_size = '16GB'", "checkpoint_timeout = '1h'", "autovacuum = off")
        self.stand.sql("DROP INDEX posting_search_gin")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for done, _ in enumerate(pool.map(lambda chunk: self.chunk(chunk, counts), range(CHUNKS)), 1):
                if sys.stderr.isatty() or done % (CHUNKS // 10) == 0:
                    print(f"  {100 * done // CHUNKS} % of {POSTINGS:,} postings", flush=True)
            building = pool.submit(self.stand.sql, f"SET maintenance_work_mem = '1GB'; {index}")
            self.stand.sql(
                f"SELECT setval(pg_get_serial_sequence('job_postings', 'id'), {base + POSTINGS}); "
                "DROP SCHEMA bench CASCADE"
            )
            self.stand.sql("VACUUM ANALYZE job_postings")
            building.result()
        # As the worker's item does.
        self.stand.sql("SELECT refresh_search_facts()")
        self.stand.sql("VACUUM ANALYZE")
        # As after some hours of searches.
        self.stand.sql("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        self.stand.sql("SELECT pg_prewarm('posting_search'), pg_prewarm('posting_search_gin')")
        self.configure()

    def configure(self, *settings: str) -> None:
        """For as long as the load lasts; without any, as they were, and everything is on disk."""
        for setting in settings:
            self.stand.sql(f"ALTER SYSTEM SET {setting}")
        if not settings:
            self.stand.sql("ALTER SYSTEM RESET max_wal_size")
            self.stand.sql("ALTER SYSTEM RESET checkpoint_timeout")
            self.stand.sql("ALTER SYSTEM RESET autovacuum")
        self.stand.sql("SELECT pg_reload_conf()")
        if not settings:
            self.stand.sql("CHECKPOINT")

    def chunk(self, number: int, counts: dict[str, int]) -> None:
        size = POSTINGS // CHUNKS
        script = "".join(
            f"BEGIN;{MAKE.format(**counts, first=first, last=first + BATCH - 1)}COMMIT;\n"
            for first in range(number * size + 1, (number + 1) * size, BATCH)
        )
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.stand.database_url]
        subprocess.run(command, input=script, text=True, check=True, stdout=subprocess.DEVNULL)

    def copy(self, table: str, rows: list[tuple]) -> None:
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.stand.database_url]
        command += ["-c", f"COPY bench.{table} FROM STDIN (FORMAT csv)"]

        def quoted(cell: object) -> str:
            return "" if cell is None else '"' + str(cell).replace('"', '""') + '"'

        text = "".join(",".join(map(quoted, (number, *row))) + "\n" for number, row in enumerate(rows))
        subprocess.run(command, input=text, text=True, check=True)
