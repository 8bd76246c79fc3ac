"""What a CV says and what it has of a posting's terms, through the real processes: who may ask, and what is answered
while the CV is read, when it was refused, and when there is nothing in it."""

import json
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import requests

from lone_site import LoneSite
from pdf import pdf
from people import Person, new_word
from stack import Stack
from waiting import until

NewPerson = Callable[[str], Person]

LINES = [
    "Jane Doe", "jane.doe@example.org  +49 30 901820", "https://jane.example.org", "Skills: Swift, PostgreSQL, Docker",
    "10 years of experience with servers",
]
CV = pdf([LINES, ["Languages: English C1"]])
TERMS = ["Postgres", "Kubernetes"]


def send(somebody: Person, content: bytes, name: str = "cv.pdf", kind: str = "application/pdf") -> int:
    """A CV by the upload plugin's form; its file's id."""
    files = [("files", (name, content, kind))]
    return somebody.ask("POST", "/api/upload?kind=cv", 200, files=files)[0]["id"]


def resume(somebody: Person, file: int) -> dict[str, Any]:
    """What is answered once it has been read."""

    def look() -> dict[str, Any] | None:
        now = somebody.get(f"/api/upload/files/{file}/resume")["data"]
        return None if now["state"] == "pending" else now

    return until(look, "the CV has been read")


def refused(base: str, path: str) -> int:
    """The status for somebody who is not signed in."""
    return requests.get(base + path, timeout=15).status_code


@pytest.fixture(scope="module")
def company(person: NewPerson) -> Person:
    representative = person("rep")
    representative.create_company(f"Company {new_word()}")
    representative.publish(f"Engineer {new_word()}", skills=TERMS, description="<p>We use <b>Docker</b>.</p>")
    return representative


def test_a_cv_says_what_is_in_it_with_the_places(stack: Stack, person: NewPerson) -> None:
    ada = person("ada")
    said = resume(ada, file := send(ada, CV))
    assert said["state"] == "ready" and said["advice"] is None
    found = said["resume"]
    assert found["name"]["value"] == "Jane Doe"
    assert [each["value"] for each in found["emails"]] == ["jane.doe@example.org"]
    assert [each["value"] for each in found["phones"]] == ["+49 30 901820"]
    assert [each["value"] for each in found["links"]] == ["https://jane.example.org"]
    assert [each["value"] for each in found["skills"]] == ["Swift", "PostgreSQL", "Docker"]
    assert found["experience"]["years"] == 10 and found["experience"]["basis"] == "stated"
    assert [(each["code"], each["page"]) for each in found["languages"]] == [("en", 2)]
    # Every place is where it says, in the UTF-8 of the text that is kept.
    text = stack.sql(f"SELECT encode(convert_to(text, 'UTF8'), 'hex') FROM media WHERE id = {file}")
    content = bytes.fromhex(text)
    for each in [found["name"], *found["emails"], *found["phones"], *found["skills"]]:
        assert content[each["offset"] : each["offset"] + each["length"]].decode() == each["value"]


def test_suggestions_never_overwrite_what_a_person_typed(stack: Stack, person: NewPerson, company: Person) -> None:
    ada = person("ada")
    columns = "username, email, first_name, last_name, phone_number, updated_at"
    before = ada.get("/api/users/me"), stack.sql(f"SELECT {columns} FROM users WHERE id = {ada.id}")
    file = send(ada, CV)
    said = resume(ada, file)["resume"]
    ada.apply(company.posting, CV)
    assert said["name"]["value"] not in json.dumps(before[0]) and said["emails"][0]["value"] != ada.email
    ada.get(f"/api/jobs/{company.posting}/cv-analysis?cv={file}")
    resume(ada, file)
    # The name and the address are those that were typed, to the letter, and nobody has written there at all.
    assert (ada.get("/api/users/me"), stack.sql(f"SELECT {columns} FROM users WHERE id = {ada.id}")) == before
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        status = ada.http.request(method, f"{ada.base}/api/upload/files/{file}/resume", timeout=15).status_code
        assert status in (404, 405), (method, status)


def test_before_applying_the_owner_sees_what_is_missing_and_nobody_else(person: NewPerson, company: Person) -> None:
    ada, eve = person("ada"), person("eve")
    file = send(ada, CV)
    resume(ada, file)
    path = f"/api/jobs/{company.posting}/cv-analysis"
    answer = ada.get(f"{path}?cv={file}")["data"]
    assert answer["job"] == company.posting and answer["cv"] == file and answer["state"] == "ready"
    terms = {each["term"]: (each["required"], each["found"]) for each in answer["terms"]}
    assert terms == {"Postgres": (True, True), "Kubernetes": (True, False), "Docker": (False, True)}
    place = answer["terms"][0]["places"][0]
    assert place["page"] == 1 and place["excerpt"] == LINES[3]

    # Somebody else's CV is not found: not a stranger's, nor by the company that it was never sent to.
    for other in (eve, company):
        other.ask("GET", f"{path}?cv={file}", 404)
        other.ask("GET", f"/api/upload/files/{file}/resume", 404)
    assert refused(ada.base, f"{path}?cv={file}") == refused(ada.base, f"/api/upload/files/{file}/resume") == 401
    for wrong in ("", "?cv=", "?cv=x", "?cv=1e3", "?cv=-1", "?cv=0", "?cv=99999999999999999999", f"?cv={file}%00"):
        assert ada.http.get(ada.base + path + wrong, timeout=15).status_code in (400, 404), wrong
    ada.ask("GET", f"{path}?cv=999999999", 404)
    for wrong in (f"/api/jobs/999999999/cv-analysis?cv={file}", f"/api/jobs/x/cv-analysis?cv={file}"):
        ada.ask("GET", wrong, 404)
    for wrong in ("/api/upload/files/999999999/resume", "/api/upload/files/x/resume", "/api/upload/files/0/resume"):
        ada.ask("GET", wrong, 404)
    # A draft is nobody's but its company's, whose members may try it with a CV of their own.
    published = company.posting
    draft = company.publish(f"Draft {new_word()}", skills=TERMS, status="draft")["id"]
    company.posting = published
    ada.ask("GET", f"/api/jobs/{draft}/cv-analysis?cv={file}", 404)
    own = send(company, CV)
    resume(company, own)
    assert company.get(f"/api/jobs/{draft}/cv-analysis?cv={own}")["data"]["state"] == "ready"


def test_after_applying_the_applicant_and_the_company_see_the_same(
    stack: Stack, person: NewPerson, company: Person
) -> None:
    ada, eve, rival = person("ada"), person("eve"), person("rival")
    rival.create_company(f"Company {new_word()}")
    application = ada.apply(company.posting, CV)
    file = application["cv"]["id"]
    path, about = f"/api/applications/{application['id']}/cv-analysis", f"/api/upload/files/{file}/resume"
    said = resume(ada, file)
    mine, theirs = ada.get(path), company.get(path)
    assert mine == theirs and mine["data"]["cv"] == file
    assert [each["found"] for each in mine["data"]["terms"]] == [True, False, True]
    assert company.get(about)["data"] == said
    for other in (eve, rival):
        other.ask("GET", path, 404)
        other.ask("GET", about, 404)
    assert refused(ada.base, path) == refused(ada.base, about) == 401
    for wrong in ("0", "x", "999999999", "-1", "99999999999999999999"):
        ada.ask("GET", f"/api/applications/{wrong}/cv-analysis", 404)

    # An address that was revoked is worth nothing; what the CV says is still told to those who may ask.
    url = company.get(f"/api/upload/files/{file}")["url"]
    ada.ask("POST", f"/api/upload/files/{file}/revoke", 200)
    assert requests.get(ada.base + url, timeout=15).status_code == 404
    assert company.get(path) == theirs and company.get(about)["data"] == said
    # Who is no member any more has no business with it, from the next request on.
    membership = f"({company.company}, {eve.id}, 'recruiter')"
    stack.sql(f"INSERT INTO company_members (company_id, user_id, role) VALUES {membership}")
    assert eve.get(path) == theirs
    stack.sql(f"DELETE FROM company_members WHERE company_id = {company.company} AND user_id = {eve.id}")
    eve.ask("GET", path, 404)
    eve.ask("GET", about, 404)
    # A session that has ended asks nothing, of any gateway within a second.
    former = {"Authorization": f"Bearer {ada.jwt}"}
    ada.ask("POST", "/api/auth/logout", 204)
    for gateway in stack.gateway_urls:
        for ended in (path, about):
            until(lambda: requests.get(gateway + ended, headers=former, timeout=15).status_code == 401, "401")
    ada.sign_in()
    assert ada.get(path) == mine


def test_a_cv_that_says_nothing_gets_advice(person: NewPerson, company: Person) -> None:
    ada = person("ada")
    # A picture of a page, as a scan is: there is no text in it.
    scan = resume(ada, file := send(ada, pdf([[]])))
    assert scan["state"] == "ready" and scan["resume"] is None and "scan" in scan["advice"]
    answer = ada.get(f"/api/jobs/{company.posting}/cv-analysis?cv={file}")["data"]
    assert answer["terms"] is None and answer["advice"] == scan["advice"]
    # An upload that is refused leaves nothing to ask for.
    broken = [("files", ("cv.pdf", CV[: len(CV) // 2], "application/pdf"))]
    error = ada.refused_upload("/api/upload?kind=cv", broken)
    assert "damaged" in error["message"]
    # With an application it is looked at afterwards: then both sides read what to do.
    application = ada.apply(company.posting, CV[: len(CV) // 2])
    said = resume(ada, application["cv"]["id"])
    assert said["state"] == "rejected" and said["resume"] is None and "Save it again" in said["advice"]
    path = f"/api/applications/{application['id']}/cv-analysis"
    for somebody in (ada, company):
        answer = somebody.get(path)["data"]
        assert answer["state"] == "rejected" and answer["terms"] is None and answer["advice"] == said["advice"]
    # A picture is no CV, and has none of these pages.
    ada.ask("GET", f"/api/upload/files/{send_attachment(ada)}/resume", 404)


def send_attachment(somebody: Person) -> int:
    return somebody.ask("POST", "/api/upload", 200, files=[("files", ("a.pdf", CV, "application/pdf"))])[0]["id"]


@pytest.fixture
def site(stack: Stack, tmp_path: Path) -> Iterator[LoneSite]:
    own = LoneSite(stack, tmp_path, "cvs", {"MARTLET_STORE": str(tmp_path / "store")})
    try:
        own.start()
        yield own
    finally:
        own.stop()


def test_a_cv_that_is_still_being_read_says_so_and_then_what_is_in_it(site: LoneSite) -> None:
    company, ada = Person.register(site.base, "rep"), Person.register(site.base, "ada")
    company.create_company(f"Company {new_word()}")
    company.publish(f"Engineer {new_word()}", skills=TERMS)
    site.worker.stop()
    application = ada.apply(company.posting, CV)
    file, path = application["cv"]["id"], f"/api/applications/{application['id']}/cv-analysis"
    for somebody in (ada, company):
        said = somebody.get(f"/api/upload/files/{file}/resume")["data"]
        assert said["state"] == "pending" and said["resume"] is None and "Ask again" in said["advice"]
        answer = somebody.get(path)["data"]
        assert answer["state"] == "pending" and answer["terms"] is None and "Ask again" in answer["advice"]
    site.worker.restart()
    assert resume(ada, file)["state"] == "ready"
    assert [each["found"] for each in company.get(path)["data"]["terms"]] == [True, False]
