"""Would the crowd notice? It compares logs with the table: here logs that are made up, each with one thing wrong."""

import random
from typing import Any, Callable

import pytest

from chatstack import Account
from crowd import Crowd, Member, Row

ROOM, OTHER = 5, 6
PEOPLE = 3
TABLE: list[Row] = [(seq, seq % PEOPLE + 1, f"c{seq}", f"text {seq}") for seq in range(1, 8)]


class Alone(Crowd):
    """A crowd without a service."""

    def __init__(self) -> None:
        self.seed = 1
        self.random = random.Random(1)
        self.said = {row[2]: 0.0 for row in TABLE}
        self.heard_after, self.acknowledged_after = [], []
        self.members = [Member(self, Account(number, "token"), number) for number in range(1, PEOPLE + 1)]
        for member in self.members:
            member.join(ROOM)

    def hear(self, member: Member, rows: list[Row], room: int = ROOM) -> None:
        for seq, sender, client_id, body in rows:
            member.heard({"room": room, "seq": seq, "sender": sender, "id": client_id, "body": body})

    def answer(self) -> None:
        for seq, sender, client_id, _ in TABLE:
            self.members[sender - 1].answered({"room": ROOM, "id": client_id, "seq": seq})


def crowd(rows: list[Row] = TABLE) -> Alone:
    """Everybody heard the table, but the second, who heard these."""
    made = Alone()
    made.answer()
    for number, member in enumerate(made.members):
        made.hear(member, rows if number == 1 else TABLE)
    return made


def refuses(made: Alone, table: list[Row] = TABLE) -> str:
    with pytest.raises(AssertionError) as refused:
        made.compare({ROOM: table})
    return str(refused.value)


def test_logs_that_are_the_table_pass() -> None:
    crowd().compare({ROOM: TABLE})


@pytest.mark.parametrize(("rows", "says"), [
    (TABLE[:3] + TABLE[4:], "heard 5 after 3"),
    (TABLE[1:], "heard 2 after 0"),
    (TABLE[:-1], "log of room"),
    (TABLE[:4] + TABLE[3:], "heard 4 after 4"),
    (TABLE + TABLE[-1:], "heard 7 after 7"),
    (TABLE[:2] + [TABLE[3], TABLE[2]] + TABLE[4:], "heard 4 after 2"),
    (TABLE[:2] + [(3, *TABLE[3][1:]), (4, *TABLE[2][1:])] + TABLE[4:], "log of room"),
    (TABLE[:2] + [(*TABLE[2][:3], "another text")] + TABLE[3:], "log of room"),
    (TABLE[:2] + [(3, 99, *TABLE[2][2:])] + TABLE[3:], "log of room"),
], ids=["lost", "lost first", "lost last", "doubled", "doubled last", "reordered", "renumbered", "changed", "forged"])
def test_a_log_that_is_not_the_table_does_not(rows: list[Row], says: str) -> None:
    assert says in refuses(crowd(rows))


def spoil(act: Callable[[Alone], Any]) -> Alone:
    made = crowd()
    act(made)
    return made


@pytest.mark.parametrize(("act", "says"), [
    (lambda made: made.hear(made.members[0], TABLE[:1], OTHER), "for others"),
    (lambda made: made.members[1].answered({"room": ROOM, "id": "c1", "seq": 2}), "was 1 and is 2"),
    (lambda made: made.members[0].answered({"room": ROOM, "id": "c1", "seq": 1}), "another message"),
    (lambda made: made.said.update(c8=0.0), "once"),
    (lambda made: made.said.pop("c7"), "once"),
], ids=["a room of others", "answered otherwise", "another's", "never stored", "never said"])
def test_what_else_is_wrong_is_noticed(act: Callable[[Alone], Any], says: str) -> None:
    assert says in refuses(spoil(act))


@pytest.mark.parametrize("table", [
    TABLE[:2] + [(*TABLE[2][:2], "c2", TABLE[2][3])] + TABLE[3:], TABLE[:3] + TABLE[4:],
    TABLE[:2] + [(9, *TABLE[2][1:])] + TABLE[3:],
], ids=["stored twice", "not stored", "numbered with a gap"])
def test_a_table_that_is_wrong_is_noticed_though_all_heard_it(table: list[Row]) -> None:
    made = Alone()
    made.answer()
    for member in made.members:
        member.log[ROOM] = list(table)
    refuses(made, table)
