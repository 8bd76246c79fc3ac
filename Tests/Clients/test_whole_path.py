"""The whole path of a job board, walked with third-party clients against the real processes."""

import subprocess
import sys
import time
from typing import Callable

import requests

from chat import Chat
from inbox import Inbox, one_click, text
from pdf import curriculum_vitae
from people import Person, new_word
from stack import ROOT, Stack
from waiting import AT_ONCE_SECONDS_MAX, until


NewPerson = Callable[[str], Person]


def test_an_account_lives_from_registration_to_log_out(stack: Stack, person: NewPerson) -> None:
    ada = person("ada")
    me = ada.get("/api/users/me?populate=profile&populate=role")
    assert me["username"] == ada.username and me["email"] == ada.email
    assert me["role"]["name"] and me["role"]["description"]
    assert not {"password", "password_hash", "resetPasswordToken"} & set(me), "nothing private is sent"

    # By e-mail in any case, by the user's name, and with the stock client's trailing slash.
    for identifier in (ada.email.upper(), ada.username):
        body = {"identifier": identifier, "password": ada.password}
        again = ada.ask("POST", "/api/auth/local/", 200, json=body)
        assert again["user"]["id"] == ada.id and again["jwt"] != ada.jwt

    wrong = {"identifier": ada.email, "password": ada.password + "x"}
    refused = Person(stack.base, "", "", "").ask("POST", "/api/auth/local", 400, json=wrong)
    assert refused["error"]["message"] == "Invalid identifier or password"

    ada.ask("POST", "/api/auth/logout", 204)
    ended = time.monotonic()
    until(lambda: ada.http.get(f"{stack.base}/api/users/me", timeout=30).status_code == 401, "the session has ended")
    assert time.monotonic() - ended <= AT_ONCE_SECONDS_MAX
    ada.sign_in()
    assert ada.get("/api/users/me")["id"] == ada.id, "only that session has ended"


def test_a_refresh_token_works_once_and_its_second_use_ends_the_family(stack: Stack, person: NewPerson) -> None:
    ada = person("ada")
    program = Person(stack.base, "", "", "")
    first = program.ask("POST", "/api/auth/token", 200, json={"identifier": ada.email, "password": ada.password})
    assert first["token_type"] == "Bearer" and first["expires_in"] == 900

    def refresh(token: str, status: int) -> dict:
        body = {"grant_type": "refresh_token", "refresh_token": token}
        return program.ask("POST", "/api/auth/token", status, json=body)

    second = refresh(first["refresh_token"], 200)
    program.http.headers["Authorization"] = f"Bearer {second['access_token']}"
    assert program.get("/api/users/me")["id"] == ada.id
    third = refresh(second["refresh_token"], 200)
    # A token two rotations old can only be a stolen one: nobody keeps the session.
    refresh(first["refresh_token"], 401)
    refresh(third["refresh_token"], 401)
    assert ada.get("/api/users/me")["id"] == ada.id, "other sessions of the person go on"


def test_a_posting_is_found_while_it_is_published(person: NewPerson) -> None:
    representative, somebody = person("rep"), person("bob")
    word = new_word()
    company = representative.create_company(f"Company {word}")
    assert representative.get("/api/companies/me")["id"] == company["id"]

    draft = representative.publish(f"Quiet {word} engineer", status="draft")
    assert somebody.search(word) == [], "a draft is nobody else's business"
    somebody.ask("GET", f"/api/jobs/{draft['id']}", 404)

    posting = representative.publish(f"Swift {word} engineer", place="Berlin")
    found = somebody.search(word)
    assert [each["id"] for each in found] == [posting["id"]]
    assert found[0]["attributes"]["name"] == f"Swift {word} engineer"
    shown = somebody.get(f"/api/jobs/{posting['id']}")["data"]
    assert shown["attributes"]["status"] == "available"
    assert somebody.search(f"{word} -swift") == [] and len(somebody.search(f"{word} swift")) == 1

    change = {"data": {"name": f"Rust {word} engineer"}}
    representative.ask("PUT", f"/api/jobs/{posting['id']}", 200, json=change)
    assert somebody.search(f"{word} swift") == [] and len(somebody.search(f"{word} rust")) == 1

    representative.ask("PUT", f"/api/jobs/{posting['id']}", 200, json={"data": {"status": "closed"}})
    assert somebody.search(word) == []


def test_an_application_goes_from_cv_to_acceptance(stack: Stack, person: NewPerson) -> None:
    ada, representative, stranger = person("ada"), person("rep"), person("eve")
    representative.create_company(f"Company {new_word()}")
    posting = representative.publish(f"Engineer {new_word()}")["id"]
    cv = curriculum_vitae(ada.username)
    application = ada.apply(posting, cv)
    assert application["status"] == "initiated"
    ada.apply(posting, cv, status=409)

    mine = ada.application(application["id"])
    assert mine["job"]["id"] == posting and mine["status"] == "initiated"
    listed = next(each for each in representative.get("/api/jobs/mine") if each["id"] == posting)
    theirs = listed["applications"][0]
    assert theirs["id"] == application["id"] and theirs["applicant"]["username"] == ada.username

    # The stock client fetches the CV without a header: the address itself is the capability. Until the worker's child
    # has looked at the file it is 503, with a time to come back.
    for url in (mine["cv"]["url"], theirs["cv"]["url"]):
        until(lambda: requests.get(stack.base + url, timeout=10).status_code != 503, "the CV has been looked at")
        got = requests.get(stack.base + url, timeout=10)
        assert got.status_code == 200 and got.content == cv
        assert got.headers["Content-Type"] == "application/pdf"
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert "no-store" in got.headers["Cache-Control"]
        assert requests.get(stack.base + url.split("?")[0], timeout=10).status_code in (403, 404)

    stranger.ask("PUT", f"/api/applications/{application['id']}", 404, json={"status": "accepted"})
    ada.ask("PUT", f"/api/applications/{application['id']}", 403, json={"status": "accepted"})
    representative.decide(application["id"], "accepted")
    assert ada.application(application["id"])["status"] == "accepted"

    def history() -> list[str]:
        answer = ada.get(f"/api/applications/{application['id']}/history")
        events = answer["data"] if isinstance(answer, dict) else answer
        return [event.get("kind") or event["attributes"]["kind"] for event in events]

    # The worker's child reads the CV beside all this.
    until(lambda: {"initiated", "accepted", "cv_ready"} <= set(history()), "the history has the CV's outcome")
    pages = stack.sql(
        "SELECT page_count, text LIKE '%references on request%' FROM media JOIN applications ON cv_media_id = media.id "
        f"WHERE applications.id = {application['id']}"
    )
    assert pages == "2\tt", "the text of both pages was read"


def test_two_people_talk_across_two_chat_processes(accepted: Callable, chat: Callable[..., Chat]) -> None:
    them = accepted()
    ada, representative, room = them.applicant, them.representative, them.room
    one, two = chat(ada, 0), chat(representative, 1)
    assert one.ready["user"] == ada.id and one.ready["instance"] != two.ready["instance"]
    assert [each["id"] for each in one.ready["rooms"]] == [room]
    start = one.ready["rooms"][0]["last_seq"]
    assert start >= 1, "the room begins with the word of the acceptance"

    one.say(room, "hello-1", "Hello, company! 👋")
    ack = one.wait("ack", id="hello-1")
    assert ack["seq"] == start + 1
    heard = two.wait("message", room=room, seq=ack["seq"])
    assert heard["body"] == "Hello, company! 👋" and heard["sender"] == ada.id and heard["kind"] == "text"
    two.say(room, "hello-2", "Hello, Ada.")
    assert one.wait("message", room=room, seq=start + 2)["sender"] == representative.id

    # Said again with the same id, as after a lost answer: once in the room.
    one.say(room, "hello-1", "Hello, company! 👋")
    again = one.wait("ack", id="hello-1")
    assert again["seq"] == ack["seq"] and again["duplicate"] is True

    two.send({"type": "read", "room": room, "seq": start + 2})
    assert one.wait("read", room=room, user=representative.id)["seq"] == start + 2


def test_somebody_who_was_away_gets_what_was_said_in_order(accepted: Callable, chat: Callable[..., Chat]) -> None:
    them = accepted()
    ada, representative, room = them.applicant, them.representative, them.room
    first = chat(ada, 0)
    seen = first.ready["rooms"][0]["last_seq"]
    first.close()

    other = chat(representative, 1)
    for number in range(20):
        other.say(room, f"m{number}", f"message {number}")
    for number in range(20):
        other.wait("ack", id=f"m{number}")
    # By the front door, so on whichever chat is next.
    back = chat(ada, None, {room: seen})
    missed = back.messages(room, 20)
    assert [each["seq"] for each in missed] == list(range(seen + 1, seen + 21))
    assert [each["body"] for each in missed] == [f"message {number}" for number in range(20)]

    back.send({"type": "history", "room": room, "before": seen + 21, "limit": 5})
    history = back.wait("history", room=room)
    assert sorted(each["seq"] for each in history["messages"]) == list(range(seen + 16, seen + 21))
    assert history["more"] is True
    rest = ada.get(f"/api/rooms/{room}/messages?before={seen + 21}&limit=5")
    assert sorted(each["seq"] for each in (rest["data"] if isinstance(rest, dict) else rest)) == [
        *range(seen + 16, seen + 21)
    ]


def test_the_chat_lets_in_who_may_and_nobody_else(
    stack: Stack, accepted: Callable, person: NewPerson, chat: Callable[..., Chat]
) -> None:
    them, stranger = accepted(), person("eve")
    nobody = Chat(stack.chat_urls[0])
    nobody.send({"type": "hello", "token": "not a token"})
    assert nobody.closed() == 4401

    eve = chat(stranger, 0)
    assert eve.ready["rooms"] == []
    eve.say(them.room, "x", "Let me in")
    assert eve.wait("error", id="x")["code"] == "forbidden"
    stranger.ask("GET", f"/api/rooms/{them.room}/messages", 404)

    # Ending a session closes its sockets on every instance.
    sockets = [chat(them.applicant, 0), chat(them.applicant, 1)]
    them.applicant.ask("POST", "/api/auth/logout", 204)
    ended = time.monotonic()
    assert [each.closed() for each in sockets] == [4401, 4401]
    assert time.monotonic() - ended < AT_ONCE_SECONDS_MAX


def test_a_fitting_posting_is_mailed_once_and_one_click_ends_it(
    stack: Stack, person: NewPerson, inbox: Callable[[Person], Inbox]
) -> None:
    ada, representative = person("ada"), person("rep")
    representative.create_company(f"Company {new_word()}")
    word, other = new_word(), new_word()
    alert = {"name": "Engineers", "q": f"{word} engineer", "cadence": "instant"}
    ada.ask("POST", "/api/alerts", 201, json={"data": alert})
    mails = inbox(ada)

    representative.publish(f"Gardener {word}")
    representative.publish(f"Engineer {word}")
    mail = mails.wait(f"Engineer {word}")
    assert "Gardener" not in text(mail), "it does not fit"
    why = next(line for line in text(mail).splitlines() if line.startswith("Why: "))
    assert word in why, "each mail says why it came"
    assert mail["Message-ID"] and mail["Date"] and "martlet@localhost" in str(mail["From"])
    assert len(mails.mails()) == 1

    # RFC 8058: looking at the address must not unsubscribe, as mail programs and scanners look; a POST does.
    link = one_click(mail)
    assert requests.get(link, timeout=10).status_code == 200
    representative.publish(f"Engineer {word} again")
    mails.wait(f"Engineer {word} again")
    form = {"List-Unsubscribe": "One-Click"}
    assert requests.post(link, data=form, timeout=10).status_code == 200

    # A second alert of another person is matched after the first's, so its mail tells that the matching is over.
    witness = person("wit")
    watched = {"name": "All of it", "q": other, "cadence": "instant"}
    witness.ask("POST", "/api/alerts", 201, json={"data": watched})
    representative.publish(f"Engineer {word} {other}")
    inbox(witness).wait(other)
    assert len(mails.mails()) == 2, "nothing comes after the click"
    assert requests.post(link, data=form, timeout=10).status_code == 200, "a second click does no harm"
    forged = link[:-4] + ("0000" if link[-4:] != "0000" else "1111")
    assert requests.post(forged, data=form, timeout=10).status_code in (400, 404)


def test_the_chat_script_of_the_tour_talks(stack: Stack, accepted: Callable) -> None:
    them = accepted()

    def talk(token: str) -> subprocess.Popen:
        command = [sys.executable, "-u", str(ROOT / "ops/scripts/chat"), token, f"ws{stack.base[4:]}/chat"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    listening, speaking = talk(them.applicant.jwt), talk(them.representative.jwt)
    assert listening.stdout and listening.stdin
    # It has greeted when it shows the first message of the room.
    shown = [listening.stdout.readline(), listening.stdout.readline()]
    assert "Application accepted" in shown[1]
    speaking.communicate("Hello from a terminal\n", timeout=90)
    assert speaking.returncode == 0
    assert listening.stdout.readline() == (
        f"[{them.room} #2] user {them.representative.id}: Hello from a terminal\n"
    )
    listening.communicate("", timeout=90)
    refused = talk("nonsense")
    said, _ = refused.communicate("Hello\n", timeout=90)
    assert refused.returncode == 1 and said == "The server does not accept this token.\n"
