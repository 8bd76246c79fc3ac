"""Alerts: what it costs to match new postings against a million of them, and to write down whom to tell."""

import json
import os
import random
import re
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Iterator

from gateway_rows import PLANS
from measure import Server, free_port
from search_data import SearchData
from search_questions import Questions
from stand import BINARIES, Row, Stand

LEVELS = (10_000, 100_000, 1_000_000)
PEOPLE = 100_000  # Who have ten of a million alerts each.
BATCH = 200  # As MatchAlerts.postingsMax.
BATCHES = 5  # Of each level, after one that does not count.
# Of the alerts: a common word, one in seven of these with nothing else. A posting then fits some 3,000 of a million.
BROAD = 0.005
WAIT_SECONDS_MAX = 300
SEED = 9

WANTED = """
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS bench CASCADE;
CREATE SCHEMA bench;
CREATE TABLE bench.wanted (
  id int PRIMARY KEY, q text NOT NULL, place text NOT NULL, kind smallint, remote smallint, salary int, lat real,
  lng real, radius real);
"""

# As the gateway saves one. A transaction each, so that two which make the same group wait in no circle. The digests are
# far off: this is about the ledger.
SAVE = """
SET synchronous_commit = off;
DO $$
DECLARE w bench.wanted;
BEGIN
  FOR w IN SELECT * FROM bench.wanted WHERE id >= {first} AND id < {last} AND id % {sessions} = {session}
           ORDER BY id LOOP
    INSERT INTO job_alerts (user_id, group_id, name, q, place_name, cadence, next_digest_at)
    VALUES ({person} + w.id % {people},
            alert_group(w.q, w.place, w.kind, w.remote, w.salary, NULL, w.lat, w.lng, w.radius),
            'Bench', w.q, w.place, 'weekly', now() + interval '30 days')
    ON CONFLICT ON CONSTRAINT job_alerts_user_id_group_id_key DO NOTHING;
    COMMIT;
  END LOOP;
END $$;
"""


@dataclass
class Level:
    alerts: int
    groups: int
    matching: float  # Milliseconds a posting.
    groups_matched: float  # A posting.
    ledger: float  # Milliseconds a posting, matching included.
    written: float  # Rows a posting.


class AlertRows:
    def __init__(self, stand: Stand, data: SearchData):
        self.stand = stand
        self.data = data

    def alerts(self) -> None:
        self.data.ensure()
        questions = Questions(self.data)
        self.stand.sql(WANTED)
        self.data.copy("wanted", list(self.wanted(questions, LEVELS[-1])))
        person = self.stand.people(PEOPLE)[0]
        postings = self.stand.sql(
            "SELECT posting_id FROM posting_search WHERE expires_at > now() + interval '1 day' "
            f"ORDER BY hashint8extended(posting_id, 5), posting_id LIMIT {len(LEVELS) * (BATCHES + 1) * BATCH}"
        ).split()
        levels, saved = [], 0
        for number, count in enumerate(LEVELS):
            self.save(saved, count, person)
            saved = count
            self.stand.sql("VACUUM ANALYZE job_alerts, alert_groups, alert_anchors, alert_deliveries")
            of_level = postings[number * (BATCHES + 1) * BATCH:(number + 1) * (BATCHES + 1) * BATCH]
            levels.append(self.level(of_level))
        self.stand.sql("DROP SCHEMA bench CASCADE")
        self.say(levels)

    def wanted(self, questions: Questions, count: int) -> Iterator[tuple]:
        """Searches as people save them; None for what they leave open."""
        rng = random.Random(SEED)
        bands, cities = questions.bands, self.data.cities
        ordinary = bands["middling"] + bands["common"]
        sorts = ("two", "two", "two", "near", "near", "named", "phrase", "either", "middling", "rare")
        for _ in range(count):
            q, place, kind, remote, salary, lat, lng, radius = "", "", None, None, None, None, None, None
            narrow = None
            if rng.random() < BROAD:
                q = rng.choice(bands["common"])
                narrow = rng.choice(("kind", "remote", "salary", "kind", "remote", "salary", ""))
            else:
                match rng.choice(sorts):
                    case "two":
                        q = questions.together(rng, 2)
                    case "near":
                        q = rng.choice(ordinary)
                        _, lat, lng = rng.choice(cities)
                        lat, lng = lat + rng.choice((-0.2, 0.0, 0.2)), lng + rng.choice((-0.2, 0.0, 0.2))
                        radius = rng.choice((25, 50, 100))
                    case "named":
                        q, place = rng.choice(bands["middling"]), rng.choice(cities)[0].split(",")[0]
                    case "phrase":
                        q = f'"{questions.phrase(rng)}"'
                    case "either":
                        q = " OR ".join(rng.sample(bands["rare"], 2))
                    case "middling":
                        q = f"{rng.choice(bands['middling'])} {rng.choice(bands['common'])}"
                    case _:
                        q = rng.choice(bands["rare"])
                narrow = rng.choice(("kind", "remote", "salary", "", "", ""))
            match narrow:
                case "kind":
                    kind = rng.choice((1, 1, 1, 2, 3, 5, 8))
                case "remote":
                    remote = rng.choice((0, 1, 2, 2))
                case "salary":
                    salary = rng.randrange(4, 14) * 10_000
            yield q, place, kind, remote, salary, lat, lng, radius

    def save(self, first: int, last: int, person: int) -> None:
        sessions = os.cpu_count() or 1
        command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.stand.database_url]

        def part(session: int, begin: int, end: int) -> None:
            script = SAVE.format(
                first=begin, last=end, sessions=sessions, session=session, person=person, people=PEOPLE
            )
            subprocess.run(command, input=script, text=True, check=True)

        steps = 10 if last - first > 100_000 else 1
        with ThreadPoolExecutor(sessions) as pool:
            for step in range(steps):
                begin, end = (first + (last - first) * part // steps for part in (step, step + 1))
                list(pool.map(lambda session: part(session, begin, end), range(sessions)))
                if steps > 1:
                    print(f"  {100 * (step + 1) // steps} % of {last:,} alerts", flush=True)

    def level(self, postings: list[str]) -> Level:
        batches = [postings[at:at + BATCH] for at in range(0, len(postings), BATCH)]
        # Matching alone, by the product's function, planned as the worker's connections do.
        script = "\\timing on\n" + "".join(
            f"SELECT count(*) FROM match_postings('{{{','.join(batch)}}}', now());\n" for batch in batches
        )
        said = subprocess.run(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", self.stand.database_url],
            input=script, text=True, check=True, capture_output=True, env={**os.environ, "PGOPTIONS": PLANS},
        ).stdout
        times = [float(time) for time in re.findall(r"Time: ([\d.]+) ms", said)][1:]
        groups = [int(line) for line in said.splitlines() if line.isdigit()][1:]
        seconds, rows = self.worker(batches)
        counted = BATCHES * BATCH
        tables = ("job_alerts", "alert_groups")
        alerts, distinct = (int(self.stand.sql(f"SELECT count(*) FROM {table}")) for table in tables)
        return Level(
            alerts, distinct, sum(times) / counted, sum(groups) / counted, seconds * 1000 / counted, rows / counted
        )

    def worker(self, batches: list[list[str]]) -> tuple[float, float]:
        """Seconds and ledger rows of what the worker itself says it did."""
        admin = f"http://127.0.0.1:{free_port()}"
        environment = {
            "MARTLET_ADMIN_ADDRESS": admin.removeprefix("http://"),
            "MARTLET_PUBLIC_URL": "http://localhost",
            "MARTLET_STORE": str(self.stand.folder / "store"),
            "MARTLET_SECRET_FILE": str(self.stand.folder / "secret"),
            "MARTLET_LOG_LEVEL": "warning",
        }
        program = [str(BINARIES / "martlet-worker")]
        with Server(program, environment, f"{admin}/readyz", self.stand.folder / "worker.log"):
            self.put_in(batches[:1], admin)
            before = self.metrics(admin)
            self.put_in(batches[1:], admin)
            after = self.metrics(admin)
        names = ("martlet_alert_match_seconds_sum", "martlet_alert_deliveries_total")
        seconds, rows = (after[name] - before.get(name, 0) for name in names)
        return seconds, rows

    def put_in(self, batches: list[list[str]], admin: str) -> None:
        """Until the worker has done them."""
        postings = [posting for batch in batches for posting in batch]
        name = "martlet_alert_postings_total"
        until = self.metrics(admin).get(name, 0) + len(postings)
        payload = json.dumps({"posting_ids": list(map(int, postings))})
        self.stand.sql(
            f"INSERT INTO work_items (kind, payload) VALUES ('match_alerts', '{payload}'); "
            "SELECT pg_notify('martlet_work', '')"
        )
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while self.metrics(admin).get(name, 0) < until:
            if time.monotonic() > deadline:
                raise SystemExit(f"The worker did not match {len(postings)} postings in {WAIT_SECONDS_MAX} s.")
            time.sleep(0.05)

    def metrics(self, admin: str) -> dict[str, float]:
        with urllib.request.urlopen(f"{admin}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return {line.split()[0]: float(line.split()[1]) for line in lines if line.startswith("martlet_alert_")}

    def say(self, levels: list[Level]) -> None:
        last = levels[-1]
        for what, target, figure in (
            ("matching 1,000,000 alerts, ms each", 3, lambda level: level.matching),
            ("the same with the ledger", 15, lambda level: level.ledger),
        ):
            smaller = ", ".join(f"{level.alerts // 1000} k: {figure(level):.2f}" for level in levels[:-1])
            self.stand.rows.append(
                Row(what, f"{figure(last):.2f} ms a posting", smaller, figure(last), target, True)
            )
        self.stand.notes.append(
            f"alerts: {BATCHES * BATCH:,} postings at each level in batches of {BATCH}; matching by match_postings "
            "alone, the ledger by what the worker says of itself; digests only, so no mails"
        )
        for level in levels:
            of_ledger = (level.ledger - level.matching) / max(level.written, 1)
            self.stand.notes.append(
                f"{level.alerts:,} alerts in {level.groups:,} groups: a posting fits "
                f"{level.groups_matched:,.0f}, {level.matching:.2f} ms; {level.written:,.0f} ledger rows, "
                f"{level.ledger:.2f} ms with them, so {of_ledger * 1000:.1f} µs a row"
            )
