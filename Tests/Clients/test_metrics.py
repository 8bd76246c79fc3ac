"""What operators see: metrics and what is written about them, alert rules, and logs without people."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
import requests
import yaml

from chat import Chat
from people import Person
from stack import ROOT, Process, Stack
from waiting import until

RULES = ROOT / "ops/prometheus/alerts.yml"
DOCUMENT = ROOT / "docs/operations/metrics.md"
# Of a worker that has a clamd; test_scanning.py reads them there.
SCANNING = {"martlet_scanner_up": "gauge", "martlet_scans_total": "counter"}
# Of services that have a collector; test_traces.py reads them there.
TRACING = {"martlet_trace_spans_total": "counter", "martlet_trace_spans_waiting": "gauge"}
NAME = re.compile(r"\b(?:martlet|process)_[a-z0-9_]+")


def page(process: Process) -> str:
    answer = requests.get(process.ready.replace("/readyz", "/metrics"), timeout=10)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text


def kinds(text: str) -> dict[str, str]:
    """Of a page: the metrics and their types."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


@pytest.fixture(scope="module")
def exposed(stack: Stack) -> dict[str, str]:
    found = SCANNING | TRACING
    for process in (stack.gateways[0], stack.chats[0], stack.workers[0]):
        found |= kinds(page(process))
    return found


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def named(expression: str, exposed: dict[str, str]) -> set[str]:
    """The metrics of an expression; a histogram's parts are told by its own name."""
    found = set()
    for name in NAME.findall(expression):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        found.add(base if exposed.get(base) == "histogram" else name)
    return found


def test_the_document_names_every_metric_and_no_other(exposed: dict[str, str]) -> None:
    text = DOCUMENT.read_text()
    tables = " ".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))
    kernel = text.partition("## The process")[2].partition("## Alerts")[0]
    documented = set(NAME.findall(tables)) | set(NAME.findall(kernel))
    assert sorted(documented - set(exposed)) == [], "documented, but not shown"
    assert sorted(set(exposed) - documented) == [], "shown, but not documented"


def test_metrics_are_named_as_prometheus_has_it(stack: Stack, exposed: dict[str, str]) -> None:
    for name, kind in exposed.items():
        assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mb|percent)(_|$)", name), f"{name} is in no base unit"
    for process in (stack.gateways[0], stack.chats[0], stack.workers[0]):
        done = subprocess.run(["promtool", "check", "metrics"], input=page(process), capture_output=True, text=True)
        # Of `process_…` it only knows its own kind; the rest must be without a remark.
        assert done.returncode == 0, done.stderr


def test_rules_name_only_what_there_is(exposed: dict[str, str]) -> None:
    for rule in rules():
        assert named(rule["expr"], exposed) <= set(exposed), rule["alert"]


def test_every_alert_has_its_runbook_and_is_told_when_it_should_be() -> None:
    headings = set(re.findall(r"^### (\w+)$", DOCUMENT.read_text(), re.MULTILINE))
    assert {rule["alert"] for rule in rules()} == headings
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/operations/metrics.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("warning", "critical")
    tests = ROOT / "ops/prometheus/alerts_test.yml"
    tried = [test["name"] for test in yaml.safe_load(tests.read_text())["tests"]]
    for rule in rules():
        assert f"{rule['alert']} is told" in tried and f"{rule['alert']} is quiet" in tried
    for arguments in (
        ["check", "config", str(ROOT / "ops/prometheus/prometheus.yml")],
        ["check", "rules", str(RULES)],
        ["test", "rules", str(tests)],
    ):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_backlog_is_the_same_at_every_worker_and_follows_the_queue(stack: Stack) -> None:
    def items(process: Process) -> dict[str, str]:
        return dict(re.findall(r"^(martlet_work_items\{.*?\}) (\d+)$", page(process), re.MULTILINE))

    dead = 'martlet_work_items{kind="prune",state="dead"}'
    before = int(items(stack.workers[0])[dead])
    stack.sql("INSERT INTO work_dead (id, kind, payload, attempts, created_at) VALUES (-1, 'prune', '{}', 1, now())")
    try:
        for process in stack.workers:
            until(lambda: int(items(process)[dead]) == before + 1, "the dead letter is seen")
    finally:
        stack.sql("DELETE FROM work_dead WHERE id = -1")


def test_routes_are_told_by_their_pattern_and_nobody_by_name(stack: Stack, person: Callable[[str], Person]) -> None:
    ada = person("ada")
    ada.ask("GET", f"/api/jobs/{2**60}", 404)
    requests.get(f"{stack.base}/api/{ada.username}?token={ada.jwt}", timeout=10)
    text = "".join(page(process) for process in stack.gateways)
    assert re.search(r'requests_total\{method="GET",route="/api/jobs/:id",class="4xx"\} [1-9]', text)
    assert re.search(r'requests_total\{method="any",route="none",class="4xx"\} [1-9]', text)
    for secret in (ada.username, ada.email, ada.jwt, str(2**60), "token="):
        assert secret not in text


def test_logs_name_nobody(stack: Stack, accepted: Callable, chat: Callable[..., Chat]) -> None:
    them = accepted()
    for somebody in (them.applicant, them.representative):
        socket = chat(somebody, 0)
        socket.say(them.room, "w", f"Write to {somebody.email}")
        socket.wait("ack", id="w")
        wrong = {"identifier": somebody.email, "password": somebody.password + "x"}
        Person(stack.base, "", "", "").ask("POST", "/api/auth/local", 400, json=wrong)
        requests.get(f"{stack.base}/socket.io/?EIO=4&transport=polling&token={somebody.jwt}", timeout=10)
    cv = them.applicant.application(them.application)["cv"]["url"]
    until(lambda: requests.get(stack.base + cv, timeout=10).status_code == 200, "the CV is there")
    requests.get(stack.base + cv + "x", timeout=10)
    services = [process for process in stack.processes if process is not stack.mail]
    logs = "".join(process.log.read_text(errors="replace") for process in services)
    assert "listening" in logs
    secrets = [cv.split("?")[1]]
    for somebody in (them.applicant, them.representative):
        secrets += [somebody.email, somebody.username, somebody.jwt, somebody.password, "Write to"]
    assert [secret for secret in secrets if secret in logs] == []
    # The services' own lines are JSON, each of them.
    for process in (*stack.gateways, *stack.chats, *stack.workers):
        for line in process.log.read_text().splitlines():
            entry = json.loads(line)
            assert {"time", "level", "service", "message"} <= set(entry), line
            # As in traces, and as the program is called.
            assert entry["service"] == Path(process.command[0]).name, line
    assert not re.search(r"[\w.+-]+@example\.org", logs)
