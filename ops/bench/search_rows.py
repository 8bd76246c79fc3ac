"""Search and facets of a million postings by an open loop, directly and through the front door."""

import json
import statistics
import urllib.request
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_plus

from measure import TICK_SECONDS, Server
from open_loop import Answer, arrivals, open_loop
from search_data import SearchData
from search_questions import MIX, Question, Questions
from stand import ROUNDS, SECONDS, Row, Stand, quantile

RATE = 50.0  # Requests a second.
# Of each measurement: ten times that of a load, so that a hundredth of the requests are thirty.
LOAD_SECONDS = max(20, 10 * SECONDS)
WARM_SECONDS = 4  # Before each, of other questions.
HITS = 25
# Of one that was late by more, the client was the limit.
LATE_MILLISECONDS_MAX = 5
SEED = 13


@dataclass
class Outcome:
    """Of all turns of one measurement."""

    asked: list[Question] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    seconds: float = 0
    gateway_seconds: float = 0
    database_seconds: float = 0

    def times(self) -> list[float]:
        return sorted(answer.milliseconds for answer in self.answers)


class SearchRows:
    def __init__(self, stand: Stand, data: SearchData):
        self.stand = stand
        self.data = data

    def search(self) -> None:
        self.data.ensure()
        questions = Questions(self.data)
        server, base = self.stand.gateway()
        with server:
            door, door_base = self.stand.door(base)
            with door:
                sorts = {sort: share for sort, share in MIX.items() if sort != "second page"}
                for what, endpoint, mix, target in (
                    ("search of 1,000,000, p99 in ms", "search", MIX, 50),
                    ("facets of 1,000,000, p99 in ms", "facets", sorts, 80),
                ):
                    direct, inside, again = self.both(server, base, door_base, questions, endpoint, mix)
                    self.row(what, direct, target)
                    self.row("the same through the front door", inside, target)
                    self.note(f"{endpoint}, directly", direct, again)
                    self.note(f"{endpoint}, through the front door", inside, again)

    def both(
        self, server: Server, base: str, door: str, questions: Questions, endpoint: str, mix: dict[str, int]
    ) -> tuple[Outcome, Outcome, int]:
        """The same questions at the same times, in turns; all turns count."""
        each = round(LOAD_SECONDS * RATE / ROUNDS)
        asked, again = questions.made(each * ROUNDS, SEED, mix)
        warming, _ = questions.made(round(WARM_SECONDS * RATE), SEED + 1, mix)
        self.turn_pages(base, asked + warming)
        direct, inside = Outcome(), Outcome()
        for turn in range(ROUNDS):
            part = asked[turn * each:(turn + 1) * each]
            for outcome, at in ((direct, base), (inside, door)):
                self.play(server, at, endpoint, warming, turn, Outcome())
                self.play(server, at, endpoint, part, turn, outcome)
        return direct, inside, again

    def turn_pages(self, base: str, asked: list[Question]) -> None:
        """Asks for the first pages of those that want the second one, for its cursor."""
        for question in asked:
            if question.sort != "second page":
                continue
            with urllib.request.urlopen(base + question.path("search")) as answer:
                after = json.load(answer)["meta"]["next"]
            if after:
                question.items["cursor"] = after
            elif question.must_find:
                raise SystemExit(f"{question.path('search')} has no second page.")

    def play(
        self, server: Server, base: str, endpoint: str, asked: list[Question], turn: int, outcome: Outcome
    ) -> None:
        times = arrivals(len(asked), RATE, SEED + turn)
        gateway, database = server.cpu_seconds(), self.database_cpu()
        answers = open_loop(base, [question.path(endpoint) for question in asked], times)
        after = self.database_cpu()
        outcome.gateway_seconds += server.cpu_seconds() - gateway
        # Of the backends that were there before and after.
        outcome.database_seconds += sum(after[pid] - database.get(pid, 0) for pid in after)
        outcome.seconds += max(answer.ended for answer in answers)
        for question, answer in zip(asked, answers, strict=True):
            self.check(question, endpoint, answer)
            answer.body = b""
        outcome.asked += asked
        outcome.answers += answers

    def check(self, question: Question, endpoint: str, answer: Answer) -> None:
        path = question.path(endpoint)
        if answer.status != 200:
            raise SystemExit(f"{path} was answered {answer.status} {answer.body[:300]!r}: no measurement.")
        data = json.loads(answer.body)["data"]
        if endpoint == "facets":
            found = sum(facet["count"] for facet in data if facet["facet"] == "total")
        else:
            found = len(data)
            if found > HITS:
                raise SystemExit(f"{path} found {found}.")
        question.found = found
        if question.must_find and not found:
            raise SystemExit(f"{path} found nothing of what is there: no measurement.")

    def database_cpu(self) -> dict[int, float]:
        """CPU seconds of each connection's server process."""
        used = {}
        for pid in self.stand.sql(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).split():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used[int(pid)] = (int(fields[11]) + int(fields[12])) * TICK_SECONDS
        return used

    def row(self, what: str, outcome: Outcome, target: float) -> None:
        times = outcome.times()
        p99, rate = quantile(times, 0.99), len(times) / outcome.seconds
        late = quantile(sorted(answer.late_milliseconds for answer in outcome.answers), 0.99)
        if late > LATE_MILLISECONDS_MAX:
            self.stand.notes.append(f"{what}: the CLIENT was {late:.1f} ms late (p99), so these figures are too high")
        compared = f"{rate:.1f}/s, p50 {statistics.median(times):.1f} ms"
        self.stand.rows.append(Row(what, f"{p99:.1f} ms", compared, p99, target, True))

    def note(self, what: str, outcome: Outcome, again: int) -> None:
        count = len(outcome.answers)
        sorts: dict[str, list[float]] = defaultdict(list)
        for question, answer in zip(outcome.asked, outcome.answers, strict=True):
            sorts[question.sort].append(answer.milliseconds)
        slowest = max(range(count), key=lambda index: outcome.answers[index].milliseconds)
        path = unquote_plus(outcome.asked[slowest].path("")).partition("?")[2]
        late = quantile(sorted(answer.late_milliseconds for answer in outcome.answers), 0.99)
        empty = sum(question.found == 0 for question in outcome.asked)
        self.stand.notes.append(
            f"{what}: {count:,} requests offered at {RATE:.0f}/s and answered at {count / outcome.seconds:.1f}/s, "
            f"{again} of them asked before (nothing keeps answers), {empty} with nothing to find behind their filters; "
            f"{outcome.gateway_seconds / count * 1e6:.0f} µs of the gateway's CPU and "
            f"{outcome.database_seconds / count * 1e3:.1f} ms of PostgreSQL's each; p95 "
            f"{quantile(outcome.times(), 0.95):.1f} ms, slowest {outcome.answers[slowest].milliseconds:.0f} ms "
            f"({path}); the client began {late:.1f} ms late (p99)"
        )
        parts = (
            f"{sort} {statistics.median(times):.0f}/{quantile(sorted(times), 0.99):.0f} ({len(times)})"
            for sort, times in sorted(sorts.items(), key=lambda item: -quantile(sorted(item[1]), 0.99))
        )
        self.stand.notes.append(f"{what}, p50/p99 in ms by what was asked: {', '.join(parts)}")
