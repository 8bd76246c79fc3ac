"""The dashboards' queries, asked of a real Prometheus that reads a real stack with the configuration we ship."""

import json
import math
import shutil
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import requests
import yaml

from chat import Chat
from images import png
from inbox import Inbox
from people import Person, new_word
from stack import ROOT, Process, Stack, free_ports
from test_metrics import RULES, exposed, named, rules  # noqa: F401, the fixture
from waiting import until

DASHBOARDS = sorted((ROOT / "ops/grafana/dashboards").glob("*.json"))
# Between two scrapes of the test; Grafana's variable stands for a span that has four of them at least.
SCRAPE_SECONDS = 2
RATE_INTERVAL = "1m"


def queries() -> list[tuple[str, str]]:
    """All queries of all dashboards, with their panel's title."""
    panels = [panel for file in DASHBOARDS for panel in json.loads(file.read_text())["panels"]]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])]


def test_dashboards_name_only_what_there_is(exposed: dict[str, str]) -> None:  # noqa: F811, the fixture
    assert len(DASHBOARDS) == 3
    for title, query in queries():
        assert named(query, exposed) <= set(exposed), title


class Prometheus:
    """Debian's, with the configuration we ship but for where it finds the services."""

    def __init__(self, folder: Path, stack: Stack):
        configuration = yaml.safe_load((ROOT / "ops/prometheus/prometheus.yml").read_text())
        seconds = f"{SCRAPE_SECONDS}s"
        configuration["global"] = dict.fromkeys(
            ("scrape_interval", "scrape_timeout", "evaluation_interval"), seconds)
        configuration["rule_files"] = [str(RULES)]
        services = {"gateway": stack.gateways, "chat": stack.chats, "worker": stack.workers}
        assert [job["job_name"] for job in configuration["scrape_configs"]] == list(services)
        for job in configuration["scrape_configs"]:
            (found,) = job.pop("dns_sd_configs")
            assert found["names"] == [job["job_name"]] and found["type"] == "A" and found["port"] == 9090
            targets = [process.ready.split("/")[2] for process in services[job["job_name"]]]
            job["static_configs"] = [{"targets": targets}]
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(configuration))
        (port,) = free_ports(1)
        self.base = f"http://127.0.0.1:{port}"
        program = shutil.which("prometheus") or "prometheus"
        command = [program, f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn"]
        command.append(f"--web.listen-address=127.0.0.1:{port}")
        self.process = Process("prometheus", command, {}, f"{self.base}/-/ready", folder)

    def api(self, path: str, **parameters: str) -> dict[str, Any]:
        answer = requests.get(f"{self.base}/api/v1/{path}", params=parameters, timeout=10).json()
        assert answer["status"] == "success" and not answer.get("warnings"), (parameters, answer)
        return answer["data"]

    def query(self, expression: str) -> list[float]:
        return [float(series["value"][1]) for series in self.api("query", query=expression)["result"]]


@pytest.fixture(scope="module")
def prometheus(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    running = Prometheus(tmp_path_factory.mktemp("prometheus"), stack)
    running.process.restart()
    yield running
    running.process.stop()


# These have data wherever people are at work; of others there may be none to tell of.
ALIVE = [
    "Requests by class", "Time to answer", "Busiest routes", "Statements", "Statements, 99 of 100", "Processors",
    "Memory", "Age", "Instances that answer", "Attempts", "How they ended", "Uploads", "Bytes stored",
    "Time of a child", "Postings matched, and deliveries", "Matching", "Mails", "The mail server",
    "Sent and delivered", "Lag from commit to delivery", "Sends of a batch", "Time of a batch", "Read from others",
]


def test_all_queries_of_the_dashboards_are_answered_from_a_real_stack(
    stack: Stack, prometheus: Prometheus, accepted: Callable, chat: Callable[..., Chat],
    inbox: Callable[[Person], Inbox],
) -> None:
    def scraped() -> bool:
        route = "martlet_http_requests_total{method='POST',route='/api/jobs',class='2xx'}"
        counts = prometheus.query(f"count_over_time({route}[{RATE_INTERVAL}])")
        return bool(counts) and min(counts) >= 2 and prometheus.query("sum(up)") == [6]

    # A rate is of what has been seen twice, and a route is seen when it has been asked for.
    accepted()
    until(scraped, "Prometheus has looked twice")
    them, word = accepted(), new_word()
    one, two = chat(them.applicant, 0), chat(them.representative, 1)
    for number in range(3):
        one.say(them.room, f"n{number}", "A word")
        one.wait("ack", id=f"n{number}")
        two.wait("message", room=them.room)
    them.applicant.ask("POST", "/api/upload", 200, files=[("files", ("a.png", png(10, 10), "image/png"))])
    alert = {"name": "Work", "q": word, "cadence": "instant"}
    them.applicant.ask("POST", "/api/alerts", 201, json={"data": alert})
    them.representative.publish(f"Engineer {word}")
    inbox(them.applicant).wait(word)

    def sees_all() -> bool:
        sums = {"martlet_chat_messages_sent_total": 3, "martlet_mails_total": 1, "martlet_upload_files_total": 1}
        seen = {name: sum(prometheus.query(f"increase({name}[{RATE_INTERVAL}])")) for name in sums}
        return all(seen[name] > least / 2 for name, least in sums.items())

    until(sees_all, "Prometheus has seen what was done")
    values = {}
    for title, query in queries():
        found = prometheus.query(query.replace("$__rate_interval", RATE_INTERVAL))
        assert found, f"{title} has no series: {query}"
        values[title] = values.get(title, []) + found
    assert [title for title in ALIVE if not any(value > 0 for value in values[title] if not math.isnan(value))] == []
    assert prometheus.query("sum(up)") == [6]

    groups = prometheus.api("rules")["groups"]
    told = [rule for group in groups for rule in group["rules"]]
    assert len(told) == len(rules()) and all(rule["health"] == "ok" for rule in told), told
    assert [rule["name"] for rule in told if rule["state"] == "firing"] == []
