"""`martlet import` on real postings: the shipped sample, and a larger pool where it lies beside this checkout."""

import json
from pathlib import Path
from typing import Callable

import pytest

from people import Person
from stack import ROOT, Stack

SAMPLE = ROOT / "ops/sample"
POOL = ROOT.parent / "shared/data"

needs_pool = pytest.mark.skipif(not POOL.is_dir(), reason=f"{POOL} is not there: only the sample is imported")


def imported(stack: Stack, path: Path, form: str, *more: str) -> dict[str, int]:
    """Imports a file or folder; the counts that the command gives."""
    # Most real announcements have closed; renewed they are found.
    said = stack.martlet("import", str(path), "--format", form, "--renew-days", "30", "--json", *more)
    answer = json.loads(said.strip().splitlines()[0])
    return {key: answer[key] for key in ("new", "updated", "unchanged", "refused")}


def found(somebody: Person, title: str) -> bool:
    """Whether a search for the words of a title finds a posting with that title."""
    return any(hit["attributes"]["name"] == title for hit in somebody.search(f'"{title}"', limit=100))


@pytest.fixture(scope="module")
def reader(stack: Stack) -> Person:
    return Person.register(stack.base, "reader")


def test_the_sample_is_found_and_importing_it_again_changes_nothing(stack: Stack, reader: Person) -> None:
    rows = json.loads((SAMPLE / "usajobs.json").read_text())
    first = imported(stack, SAMPLE / "usajobs.json", "usajobs")
    assert first == {"new": len(rows), "updated": 0, "unchanged": 0, "refused": 0}
    again = imported(stack, SAMPLE / "usajobs.json", "usajobs")
    assert again == {"new": 0, "updated": 0, "unchanged": len(rows), "refused": 0}
    for row in rows[::60]:
        assert found(reader, row["position_title"]), row["position_title"]

    companies = len((SAMPLE / "companies.jsonl").read_text().splitlines())
    first = imported(stack, SAMPLE / "companies.jsonl", "companies")
    assert first["new"] == companies and first["refused"] == 0
    assert imported(stack, SAMPLE / "companies.jsonl", "companies")["unchanged"] == companies


def test_a_changed_row_is_updated_and_a_bad_one_is_refused_with_its_place(
    stack: Stack, reader: Person, tmp_path: Path
) -> None:
    rows = json.loads((SAMPLE / "usajobs.json").read_text())[:3]
    for number, row in enumerate(rows):
        row["control_number"] = 990_000_000_000 + number
    file = tmp_path / "rows.json"
    file.write_text(json.dumps(rows))
    assert imported(stack, file, "usajobs")["new"] == 3

    rows[0]["position_title"] = "Keeper of the zanzibarine quokkas"
    rows[1]["position_title"] = ["not", "a", "title"]
    del rows[2]["control_number"]
    file.write_text(json.dumps(rows))
    assert imported(stack, file, "usajobs") == {"new": 0, "updated": 1, "unchanged": 0, "refused": 2}
    assert found(reader, "Keeper of the zanzibarine quokkas")
    said = stack.martlet("import", str(file), "--format", "usajobs")
    assert "position_title" in said and "control_number" in said, "each refusal says why"
    # Not renewed any more, so it is what its closing date says.
    assert not found(reader, "Keeper of the zanzibarine quokkas")


@pytest.mark.parametrize(
    "content", [b"{", b"[1, 2", b'[{"a": 1}', b"\xff\xfe", b"%PDF-1.4", b"<jobs/>"], ids=repr
)
def test_a_file_that_is_no_feed_is_refused_in_a_sentence(stack: Stack, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "feed.json"
    file.write_bytes(content)
    said = stack.martlet("import", str(file), "--format", "usajobs", succeeds=False)
    assert "feed.json" in said and "Fatal error" not in said
    assert "missing.json" in stack.martlet("import", str(tmp_path / "missing.json"), succeeds=False)


def test_markup_from_outside_is_made_safe(stack: Stack, reader: Person, tmp_path: Path) -> None:
    evil = "<p>Fine <b>work</b></p><script>alert(1)</script><a href=\"javascript:alert(2)\" onclick=\"x()\">here</a>"
    feed = {
        "jobs": [
            {
                "id": 77001,
                "title": "Sanitiser of zanzibarine markup",
                "updated_at": "2026-11-01T00:00:00Z",
                "location": {"name": "Berlin"},
                "absolute_url": "https://example.org/jobs/77001",
                # As Greenhouse sends it: the markup's own characters escaped once more.
                "content": evil.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
            }
        ],
        "meta": {"total": 1},
    }
    file = tmp_path / "greenhouse.json"
    file.write_text(json.dumps(feed))
    assert imported(stack, file, "greenhouse")["new"] == 1
    hit = reader.search("sanitiser zanzibarine")[0]
    shown = reader.get(f"/api/jobs/{hit['id']}")["data"]["attributes"]["description_html"]
    assert "<b>work</b>" in shown or "<strong>work</strong>" in shown
    for bad in ("script", "alert", "onclick", "javascript", "&lt;p"):
        assert bad not in shown, shown


@needs_pool
def test_all_usajobs_of_the_pool_are_found(stack: Stack, reader: Person) -> None:
    rows = {}
    for file in sorted((POOL / "usajobs").glob("*.json")):
        for row in json.loads(file.read_text()):
            rows[row["control_number"]] = row
    counts = imported(stack, POOL / "usajobs", "usajobs")
    assert counts["refused"] == 0
    stored = stack.sql("SELECT count(DISTINCT external_id) FROM job_postings WHERE source = 'usajobs'")
    assert int(stored) >= len(rows) == 23_493
    for row in list(rows.values())[::2500]:
        assert found(reader, row["position_title"]), row["position_title"]


@needs_pool
@pytest.mark.parametrize(
    ("path", "form", "title"),
    [
        ("ats-mixed/jobs.json", "mixed", lambda feed: feed[0]["title"]),
        ("github-jobs/positions-2019-12-18-p1.json", "github-jobs", lambda feed: feed[0]["title"]),
        ("github-jobs/positions-2021-01-26.json", "github-jobs", lambda feed: feed[0]["title"]),
        ("github-jobs/positions-dates-edited.json", "github-jobs", lambda feed: feed[0]["title"]),
        ("github-jobs/positions-location-new-york-2020-06-23.jsonc", "github-jobs", lambda feed: feed[0]["title"]),
        ("ats-fixtures/greenhouse.json", "greenhouse", lambda feed: feed["jobs"][0]["title"]),
        ("ats-fixtures/lever.json", "lever", lambda feed: feed[0]["text"]),
    ],
)
def test_each_feed_of_the_pool_is_found(
    stack: Stack, reader: Person, path: str, form: str, title: Callable[[object], str]
) -> None:
    file = POOL / path
    text = file.read_text()
    if file.suffix == ".jsonc":  # Two lines of comment come first.
        text = "\n".join(text.splitlines()[2:])
    feed = json.loads(text)
    counts = imported(stack, file, form)
    assert counts["new"] + counts["updated"] + counts["unchanged"] > 0 and counts["refused"] == 0
    assert found(reader, title(feed).strip()), title(feed)


@needs_pool
def test_all_companies_of_the_pool_are_taken(stack: Stack) -> None:
    counts = imported(stack, POOL / "companies/remoteintech-companies.jsonl", "companies")
    assert sum(counts.values()) == 882 and counts["refused"] == 0
