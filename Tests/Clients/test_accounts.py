"""Accounts and mail: forgotten passwords, addresses to confirm; with real mail, and forms as browsers send them."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Callable, Iterator
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from inbox import Inbox, text
from people import Person, new_word
from stack import Process, Stack, free_ports
from waiting import AT_ONCE_SECONDS_MAX, until

NewPerson = Callable[[str], Person]
NewInbox = Callable[[Person], Inbox]

CONFIRMED_URL = "https://app.example.org/welcome"


class Form(HTMLParser):
    """The one form of a page, as a browser without scripts knows it."""

    def __init__(self, page: str):
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert tag not in ("script", "link", "img", "iframe"), "a page needs nothing from elsewhere"
        if tag == "form":
            self.action = values["action"] or ""
        if tag == "input":
            self.fields[values["name"] or ""] = values.get("value") or ""
            self.types[values["name"] or ""] = values.get("type") or "text"


def link(mail: EmailMessage) -> str:
    """The one link of a mail besides that to the installation; the same in both parts."""
    pattern = re.compile(r"https?://\S+[?&](?:code|confirmation)=\S+")
    found = [line for line in text(mail).splitlines() if pattern.fullmatch(line)]
    assert len(found) == 1, text(mail)
    html = mail.get_body(preferencelist=("html",))
    assert html and found[0] in html.get_content()
    return found[0]


def code(mail: EmailMessage) -> str:
    return re.split(r"(?:code|confirmation)=", urlsplit(link(mail)).query)[-1]


def nobody(stack: Stack, base: str | None = None) -> Person:
    return Person(base or stack.base, "", "", "")


def forget(stack: Stack, email: str) -> Any:
    return nobody(stack).ask("POST", "/api/auth/forgot-password", 200, json={"email": email})


def reset(stack: Stack, word: str, password: str, status: int) -> Any:
    body = {"code": word, "password": password, "passwordConfirmation": password}
    return nobody(stack).ask("POST", "/api/auth/reset-password", status, json=body)


def test_a_forgotten_password_is_reset_by_mail_once_and_all_sessions_end(
    stack: Stack, person: NewPerson, inbox: NewInbox
) -> None:
    ada = person("ada")
    other = person("ada")
    other.email, other.password = ada.email, ada.password
    other.sign_in()
    assert forget(stack, ada.email.upper()) == {"ok": True}
    mail = inbox(ada).wait("Reset your password")
    assert ada.username in text(mail) and str(mail["from"]).startswith("Martlet")
    word = code(mail)

    assert reset(stack, word, "short", 400)["error"]["details"]["errors"][0]["path"] == ["password"]
    done = reset(stack, word, "battery staple", 200)
    ended = time.monotonic()
    assert done["user"]["id"] == ada.id and not {"password", "password_hash"} & set(done["user"])
    for base in stack.gateway_urls:
        for old in (ada, other):

            def is_out(base: str = base, old: Person = old) -> bool:
                return old.http.get(f"{base}/api/users/me", timeout=30).status_code == 401

            until(is_out, "the session has ended on every instance")
    assert time.monotonic() - ended <= AT_ONCE_SECONDS_MAX
    ada.ask("POST", "/api/auth/local", 400, json={"identifier": ada.email, "password": ada.password})
    ada.password = "battery staple"
    ada.sign_in()
    ada.signed_in(done)
    assert ada.get("/api/users/me")["id"] == ada.id

    again = reset(stack, word, "once more", 400)
    assert again["error"]["message"] == "Incorrect code provided"


def test_of_many_uses_of_a_code_at_once_on_two_gateways_one_wins(
    stack: Stack, person: NewPerson, inbox: NewInbox
) -> None:
    ada = person("ada")
    forget(stack, ada.email)
    word = code(inbox(ada).wait("Reset your password"))

    def use(number: int) -> int:
        url = f"{stack.gateway_urls[number % 2]}/api/auth/reset-password"
        password = f"password {number}"
        body = {"code": word, "password": password, "passwordConfirmation": password}
        return requests.post(url, json=body, timeout=30).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(use, range(8)))
    assert sorted(statuses) == [200] + [400] * 7
    ada.password = f"password {statuses.index(200)}"
    ada.sign_in()


def test_a_code_expires_and_nobody_is_told_who_has_an_account(
    stack: Stack, person: NewPerson, inbox: NewInbox
) -> None:
    ada, bob = person("ada"), person("bob")
    strangers = f"{new_word()}@example.org"
    for address in (ada.email, strangers):
        assert forget(stack, address) == {"ok": True}
        body = {"email": address}
        sent = nobody(stack).ask("POST", "/api/auth/send-email-confirmation", 200, json=body)
        assert sent == {"email": address, "sent": True}
    word = code(inbox(ada).wait("Reset your password"))
    stack.sql(f"UPDATE account_tokens SET expires_at = now() WHERE user_id = {ada.id}")
    assert reset(stack, word, "battery staple", 400)["error"]["message"] == "Incorrect code provided"

    # Whether an address is taken is told to its owner only.
    taken = ada.ask("PUT", "/api/users/me", 200, json={"email": bob.email})
    free = ada.ask("PUT", "/api/users/me", 200, json={"email": strangers})
    assert set(taken) == set(free) and taken["email"] == free["email"] == ada.email
    inbox(bob).wait("You have an account with this address")
    inbox(Person("", "", strangers, "")).wait("Confirm your new e-mail address")

    # All of it has been worked off; nobody else has been written to, and no token lies about.
    until(lambda: stack.sql("SELECT count(*) FROM account_mails WHERE state = 'queued'") == "0", "no mail waits")
    subjects = [str(mail["subject"]) for mail in Inbox(stack.mail_folder, strangers).mails()]
    assert subjects == ["Confirm your new e-mail address"]
    assert stack.sql("SELECT count(*) FROM account_mails WHERE seed IS NOT NULL") == "0"
    logs = "".join(process.log.read_text(errors="replace") for process in stack.processes if process.log.exists())
    assert word not in logs


def test_the_page_a_mail_leads_to_works_without_scripts(stack: Stack, person: NewPerson, inbox: NewInbox) -> None:
    ada = person("ada")
    forget(stack, ada.email)
    url = link(inbox(ada).wait("Reset your password"))
    browser = requests.Session()
    page = browser.get(url, timeout=30)
    assert page.status_code == 200 and "script" not in page.headers["Content-Security-Policy"]
    assert page.headers["Referrer-Policy"] == "no-referrer" and page.headers["Cache-Control"] == "no-store"

    def submit(page: requests.Response, password: str, repeated: str) -> requests.Response:
        form = Form(page.text)
        assert form.types["password"] == form.types["passwordConfirmation"] == "password"
        fields = {**form.fields, "password": password, "passwordConfirmation": repeated}
        return browser.post(urljoin(page.url, form.action), data=fields, timeout=30)

    wrong = submit(page, "grüße & so+", "grüße")
    assert wrong.status_code == 400 and "Passwords do not match" in wrong.text
    done = submit(wrong, "grüße & so+", "grüße & so+")
    assert done.status_code == 200 and "Your password is changed" in done.text
    ada.password = "grüße & so+"
    ada.sign_in()
    gone = browser.get(url, timeout=30)
    assert gone.status_code == 400 and "not good any more" in gone.text


@pytest.mark.parametrize("by_form", [True, False])
def test_another_address_is_the_accounts_once_it_is_confirmed(
    stack: Stack, person: NewPerson, inbox: NewInbox, by_form: bool
) -> None:
    ada = person("ada")
    old, new = ada.email, f"{new_word()}@example.org"
    fields = {"username": ada.username, "first_name": "Ada", "last_name": "L", "phone_number": "1", "email": new}
    if by_form:
        parts: dict[str, Any] = {key: (None, value) for key, value in fields.items()}
        answer = ada.ask("POST", "/api/auth/local/profile", 200, files=parts)
    else:
        answer = ada.ask("POST", "/api/auth/local/profile", 200, json=fields)
    assert answer["email"] == old and answer["first_name"] == "Ada" and answer["role"]["name"]
    notice = inbox(ada).wait("is about to get another e-mail address")
    assert new in text(notice)

    moved = Person(stack.base, ada.username, new, ada.password)
    url = link(inbox(moved).wait("Confirm your new e-mail address"))
    page = requests.get(url, timeout=30)
    assert new in page.text and ada.username in page.text
    assert ada.get("/api/users/me")["email"] == old, "looking changes nothing"
    form = Form(page.text)
    done = requests.post(urljoin(url, form.action), data=form.fields, timeout=30)
    assert done.status_code == 200 and "is confirmed" in done.text
    assert ada.get("/api/users/me")["email"] == new
    moved.sign_in()
    ada.ask("POST", "/api/auth/local", 400, json={"identifier": old, "password": ada.password})
    assert requests.post(urljoin(url, form.action), data=form.fields, timeout=30).status_code == 400


def test_a_new_password_stops_a_change_of_address(stack: Stack, person: NewPerson, inbox: NewInbox) -> None:
    ada = person("ada")
    thief = Person(stack.base, "", f"{new_word()}@example.org", "")
    ada.ask("PUT", "/api/users/me", 200, json={"email": thief.email})
    word = code(inbox(thief).wait("Confirm your new e-mail address"))
    forget(stack, ada.email)
    reset(stack, code(inbox(ada).wait("Reset your password")), "battery staple", 200)
    refused = nobody(stack).ask("GET", f"/api/auth/email-confirmation?confirmation={word}", 400)
    assert refused["error"]["message"] == "Invalid token"


@pytest.fixture(scope="module")
def strict(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway of these tests' own on the same database: addresses are confirmed, and little is allowed a minute."""
    port, admin = free_ports(2)
    folder: Path = tmp_path_factory.mktemp("strict")
    environment = {
        **stack.environment,
        "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
        "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
        "MARTLET_EMAIL_CONFIRMATION": "on",
        "MARTLET_CONFIRMED_URL": CONFIRMED_URL,
        "MARTLET_ACCOUNT_REQUESTS_PER_MINUTE": "5",
        "MARTLET_SIGN_IN_FAILURES_PER_MINUTE": "5",
    }
    program = str(stack.binaries / "martlet-gateway")
    process = Process("gateway-strict", [program], environment, f"http://127.0.0.1:{admin}/readyz", folder)
    process.restart()
    yield f"http://127.0.0.1:{port}"
    process.stop()


def test_with_confirmation_on_an_account_waits_for_its_mail(stack: Stack, strict: str, inbox: NewInbox) -> None:
    name = f"ada{new_word()}"
    ada = Person(strict, name, f"{name}@example.org", "correct horse")
    body = {"username": name, "email": ada.email, "password": ada.password, "confirmed": True}
    made = ada.ask("POST", "/api/auth/local/register", 200, json=body)
    assert set(made) == {"user"} and made["user"]["confirmed"] is False
    credentials = {"identifier": ada.email, "password": ada.password}
    refused = ada.ask("POST", "/api/auth/local", 400, json=credentials)
    assert refused["error"]["name"] == "ApplicationError"
    assert refused["error"]["message"] == "Your account email is not confirmed"

    word = code(inbox(ada).wait("Confirm your e-mail address"))
    url = f"{strict}/api/auth/email-confirmation?confirmation={word}"
    done = requests.get(url, allow_redirects=False, timeout=30)
    assert done.status_code == 302 and done.headers["Location"] == CONFIRMED_URL
    ada.sign_in()
    assert ada.get("/api/users/me")["confirmed"] is True
    assert requests.get(url, allow_redirects=False, timeout=30).status_code == 400


def test_guesses_and_requests_are_limited_for_each_address(stack: Stack, strict: str, person: NewPerson) -> None:
    ada = person("ada")

    def guess(password: str, address: str) -> requests.Response:
        body = {"identifier": ada.email, "password": password}
        return requests.post(
            f"{strict}/api/auth/local", json=body, headers={"X-Forwarded-For": address}, timeout=30
        )

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: guess(f"wrong {number}", "192.0.2.1"), range(20)))
    # A minute may end between two of them.
    looked_at = [answer.status_code for answer in answers].count(400)
    assert 5 <= looked_at <= 10 and looked_at + [answer.status_code for answer in answers].count(429) == 20
    assert guess(ada.password, "192.0.2.2").status_code == 200, "people elsewhere are not locked out"

    def forget_again() -> requests.Response:
        body = {"email": f"{new_word()}@example.org"}
        return requests.post(f"{strict}/api/auth/forgot-password", json=body, timeout=30)

    refused = next(answer for answer in (forget_again() for _ in range(12)) if answer.status_code != 200)
    assert refused.status_code == 429 and refused.json()["error"]["name"] == "RateLimitError"
    assert int(refused.headers["Retry-After"]) > 0


def test_an_address_gets_so_many_mails_an_hour(stack: Stack, person: NewPerson, inbox: NewInbox) -> None:
    ada = person("ada")
    for _ in range(8):
        assert forget(stack, ada.email) == {"ok": True}
    of_ada = f"SELECT count(*) FROM account_mails WHERE address = '{ada.email}'"
    assert stack.sql(of_ada) == "5"
    until(lambda: stack.sql(f"{of_ada} AND state = 'queued'") == "0", "no mail waits")
    mails = inbox(ada).mails()
    assert 1 <= len(mails) <= 5
    assert len({str(mail["message-id"]) for mail in mails}) == len(mails)
    # Whichever was sent last has the good code.
    outcomes = []
    for mail in mails:
        body = {"code": code(mail), "password": "battery staple", "passwordConfirmation": "battery staple"}
        outcomes.append(requests.post(f"{stack.base}/api/auth/reset-password", json=body, timeout=30).status_code)
    assert outcomes.count(200) == 1, outcomes
