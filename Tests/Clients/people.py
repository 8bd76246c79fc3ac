"""A person with an account, as a third party's program would act for them over the API."""

import secrets
from dataclasses import dataclass, field
from typing import Any

import requests

from pdf import curriculum_vitae
from waiting import until

ANSWER_SECONDS_MAX = 90


def new_word() -> str:
    """A word that stands nowhere else, so that a search for it finds one thing."""
    return "w" + "".join(secrets.choice("bcdfghjklmnpqrstvz") for _ in range(11))


@dataclass
class Person:
    base: str
    username: str
    email: str
    password: str
    id: int = 0
    jwt: str = ""
    company: int = 0  # What a representative has made last.
    posting: int = 0
    http: requests.Session = field(default_factory=requests.Session)

    @classmethod
    def register(cls, base: str, name: str) -> "Person":
        username = f"{name}{secrets.token_hex(4)}"
        person = cls(base, username, f"{username}@example.org", secrets.token_hex(12))
        body = {
            "username": username,
            "email": person.email,
            "password": person.password,
            "first_name": name.capitalize(),
            "last_name": "Example",
            "phone_number": "+49 30 123456",
        }
        person.signed_in(person.ask("POST", "/api/auth/local/register", 200, json=body))
        return person

    def signed_in(self, answer: dict[str, Any]) -> None:
        self.jwt = answer["jwt"]
        self.id = answer["user"]["id"]
        self.http.headers["Authorization"] = f"Bearer {self.jwt}"

    def sign_in(self) -> None:
        body = {"identifier": self.email, "password": self.password}
        self.signed_in(self.ask("POST", "/api/auth/local", 200, json=body))

    def ask(self, method: str, path: str, status: int, **more: Any) -> Any:
        """A request that must be answered with this status; the JSON of the answer, None if it has no body."""
        answer = self.http.request(method, self.base + path, timeout=ANSWER_SECONDS_MAX, **more)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        if answer.status_code >= 400:
            error = answer.json()
            assert error["data"] is None and error["error"]["status"] == status, error
            assert set(error["error"]) >= {"status", "name", "message", "details"}, error
        return answer.json() if answer.content else None

    def get(self, path: str) -> Any:
        return self.ask("GET", path, 200)

    def refused_upload(self, path: str, files: list[tuple[str, Any]]) -> dict[str, Any]:
        """The error of an upload whose content is refused.

        A machine that is busy may look at it after the answer only; then it is taken back and sent again.
        """

        def look() -> dict[str, Any] | None:
            answer = self.http.post(self.base + path, files=files, timeout=ANSWER_SECONDS_MAX)
            if answer.status_code != 200:
                assert answer.status_code == 400, answer.text[:2000]
                return answer.json()["error"]
            for file in answer.json():
                assert file["state"] == "pending", file
                self.ask("DELETE", f"/api/upload/files/{file['id']}", 200)
            return None

        return until(look, "the upload is refused")

    # As a representative of a company.

    def create_company(self, name: str) -> dict[str, Any]:
        fields = {"name": name, "email": "jobs@example.org", "phone": "1", "address": "Berlin", "bio": "We build."}
        parts = {key: (None, value) for key, value in {**fields, "category": "Technology"}.items()}
        company = self.ask("POST", "/api/companies", 200, files=parts)
        self.company = company["id"]
        return company

    def publish(self, name: str, **more: Any) -> dict[str, Any]:
        body = {"name": name, "description": "<p>Real work.</p>", "type": "Long Term", "environment": "Remote"}
        posting = self.ask("POST", "/api/jobs", 200, json={"data": {**body, "company": self.company, **more}})
        self.posting = posting["id"]
        return posting

    def decide(self, application: int, status: str) -> Any:
        return self.ask("PUT", f"/api/applications/{application}", 200, json={"status": status})

    # As somebody who looks for work.

    def search(self, q: str, **more: Any) -> list[dict[str, Any]]:
        answer = self.ask("GET", "/api/jobs/search", 200, params={"q": q, **more})
        return answer["data"]

    def apply(self, posting: int, cv: bytes | None = None, status: int = 200) -> dict[str, Any]:
        """The attributes of the application with its id; of a refusal the error."""
        content = cv if cv is not None else curriculum_vitae(self.username)
        parts = {"job": (None, str(posting)), "cv": ("document.pdf", content, "application/pdf")}
        answer = self.ask("POST", "/api/applications", status, files=parts)
        return {"id": answer["data"]["id"], **answer["data"]["attributes"]} if status == 200 else answer["error"]

    def application(self, application: int) -> dict[str, Any]:
        """One of their own as the list has it."""
        mine = self.get("/api/applications/mine")
        return next(each for each in mine if each["id"] == application)

    def rooms(self) -> list[dict[str, Any]]:
        answer = self.get("/api/rooms")
        return answer["data"] if isinstance(answer, dict) else answer
