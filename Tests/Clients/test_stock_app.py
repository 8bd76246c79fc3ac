"""The stock app's fifteen calls, as it sends them, through the front door to two of each service."""

import secrets
from typing import Any

import pytest
import requests

from pdf import curriculum_vitae
from people import Person, new_word
from pictures import png
from stack import Stack
from stock import (
    LISTED, ME, OWN_APPLICATIONS, OWN_COMPANY, OWN_POSTINGS, ENTRY, PUBLISHED, SAVED_COMPANY, SIGNED_IN, decode,
)
from waiting import until

# Each call goes to the next of two gateways: what one has written the other must show.
POPULATE = ["populate[company][populate][0]=logo", "populate%5Bcompany%5D%5Bpopulate%5D%5B0%5D=logo"]
SAYINGS = ["plain words", "", '_under_ "quotes" \\ /', "emoji 😀 é", "ü" * 255]


class App(Person):
    """The app: trailing slashes, texts for everything, files by its fixed names."""

    @classmethod
    def enter(cls, stack: Stack, saying: str) -> "App":
        name = f"st_ck{secrets.token_hex(4)}"
        app = cls(stack.base, name, f"{name}@example.org", secrets.token_hex(12))
        body = {"username": name, "email": app.email, "password": app.password} | app.words(saying)
        decode(app.ask("POST", "/api/auth/local/register", 200, json=body), SIGNED_IN)
        body = {"identifier": app.email, "password": app.password}
        app.signed_in(decode(app.ask("POST", "/api/auth/local/", 200, json=body), SIGNED_IN))
        return app

    @staticmethod
    def words(saying: str) -> dict[str, str]:
        return {name: saying for name in ("first_name", "last_name", "phone_number")}

    def form(self, path: str, texts: dict[str, str], part: str, name: str, content: bytes, kind: str) -> Any:
        parts: dict[str, Any] = {key: (None, value) for key, value in texts.items()}
        return self.ask("POST", path, 200, files=parts | {part: (name, content, kind)})

    def save_company(self, name: str, saying: str, logo: bytes) -> Any:
        texts = {"name": name, "email": self.email} | {key: saying for key in ("phone", "bio", "category", "address")}
        return self.form("/api/companies", texts, "logo", "imagefile.jpg", logo, "image/jpeg")

    def listed(self, spelling: int = 0) -> list[Any]:
        # As it is, and not as the library would spell it.
        url = f"{self.base}/api/jobs?{POPULATE[spelling]}"
        request = self.http.prepare_request(requests.Request("GET", url))
        request.url = url
        answer = self.http.send(request, timeout=30)
        assert answer.status_code == 200, answer.text[:500]
        return decode(answer.json(), LISTED)["data"]


@pytest.mark.parametrize("saying", SAYINGS)
def test_the_fifteen_calls_decode_through_the_front_door(stack: Stack, saying: str) -> None:
    rep, ada = App.enter(stack, saying), App.enter(stack, saying)
    for person in (rep, ada):
        me = decode(person.get("/api/users/me?populate=profile&populate=role"), ME)
        assert me["username"] == person.username and me["first_name"] == saying
        profile = {"username": person.username, "email": person.email} | person.words("changed")
        decode(person.ask("POST", "/api/auth/local/profile", 200, json=profile), ME)
        picture = ("profile", "imagefile.jpg", png(640, 480), "image/jpeg")
        decode(person.form("/api/auth/local/profile", profile, *picture), ME)

    assert rep.ask("GET", "/api/companies/me", 204) is None
    word = new_word()
    company = decode(rep.save_company(f"{word} {saying[:200]}", saying, png(1280, 1022)), SAVED_COMPANY)
    own = decode(rep.get("/api/companies/me"), OWN_COMPANY)
    assert own["id"] == company["id"] and own["bio"] == saying

    posting = {"name": word, "description": saying, "type": saying, "environment": saying}
    published = rep.ask("POST", "/api/jobs", 200, json={"data": posting | {"company": company["id"]}})
    identity = decode(published, PUBLISHED)["id"]
    for spelling in (0, 1, 0, 1):
        entry = next(each for each in ada.listed(spelling) if each["id"] == identity)
        assert entry["attributes"]["type"] == saying and entry["attributes"]["status"] == "available"

    cv = curriculum_vitae(ada.username)
    ada.form("/api/applications", {"job": str(identity)}, "cv", "document.pdf", cv, "application/pdf")
    mine = decode(ada.get("/api/applications/mine"), OWN_APPLICATIONS)
    theirs = decode(rep.get("/api/jobs/mine"), OWN_POSTINGS)
    assert [each["job"]["id"] for each in mine] == [identity] == [each["id"] for each in theirs]
    application = theirs[0]["applications"][0]
    assert application["applicant"]["username"] == ada.username

    body = {"job": str(identity), "applicant_username": ada.username, "status": "accepted"}
    assert isinstance(rep.ask("PUT", f"/api/applications/{application['id']}", 200, json=body), dict)
    assert decode(ada.get("/api/applications/mine"), OWN_APPLICATIONS)[0]["status"] == "accepted"

    def fetched(url: str) -> requests.Response:
        until(lambda: requests.get(stack.base + url, timeout=10).status_code != 503, "the file has been looked at")
        return requests.get(stack.base + url, timeout=10)

    assert fetched(application["cv"]["url"]).content == cv
    until(lambda: "placeholder" not in rep.get("/api/companies/me")["logo"]["url"], "the logo has been looked at")
    logo = next(each for each in ada.listed() if each["id"] == identity)
    logo = logo["attributes"]["company"]["data"]["attributes"]["logo"]["data"]["attributes"]
    urls = [logo["url"], *(each["url"] for each in logo["formats"].values())]
    assert len(set(urls)) >= 4, "a large logo has formats of its own"
    assert all(fetched(url).headers["Content-Type"].startswith("image/") for url in urls)

    changed = {"data": {"name": "changed", "description": "", "type": "", "environment": ""}}
    updated = rep.ask("PUT", f"/api/jobs/{identity}", 200, json=changed)
    assert decode(updated, ENTRY)["attributes"]["name"] == "changed" and decode(updated["data"], ENTRY)
    deleted = rep.ask("DELETE", f"/api/jobs/{identity}", 200)
    assert decode(deleted, ENTRY)["id"] == identity and decode(deleted["data"], ENTRY)
    assert decode(ada.get("/api/applications/mine"), OWN_APPLICATIONS) == []
    assert all(each["id"] != identity for each in ada.listed())


def test_a_refused_posting_does_not_crash_the_app(stack: Stack) -> None:
    ada = App.enter(stack, "no company")
    for status, body in ((403, {"data": {"name": "x", "description": "y"}}), (403, {"data": {"name": "x"}})):
        answer = ada.http.post(f"{stack.base}/api/jobs", json=body, timeout=30)
        assert answer.status_code == status and decode(answer.json(), PUBLISHED)["id"] == 0
    unsigned = requests.post(f"{stack.base}/api/jobs", json={"data": {}}, timeout=30)
    assert unsigned.status_code == 401 and decode(unsigned.json(), PUBLISHED)["id"] == 0
