"""docker-compose.yml as it is written: what every service has, and what the profiles need of each other and of files.

`make smoke` runs the deployment, but for Grafana and Mailpit: that what they are told fits together is seen here."""

import json
import re
from typing import Any

import pytest
import yaml

from stack import ROOT

PAGE = (ROOT / "docs/operations/deployment.md").read_text()
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ONCE = {"migrate", "operator"}
# All others are built from ops/Dockerfile.
FOREIGN = {
    "proxy": "caddy:2", "postgres": "postgres:15-bookworm", "standby": "postgres:15-bookworm",
    "grafana": "grafana/grafana:12.2.1", "mailpit": "axllent/mailpit:v1.31",
}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_held_tight(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    limits = service["deploy"]["resources"]["limits"]
    assert limits["memory"] and limits["pids"]
    assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}
    assert not {"container_name", "privileged", "network_mode", "pid", "ipc", "devices"} & set(service)
    assert service["restart"] == ("no" if name in ONCE else "unless-stopped")
    assert "docker.sock" not in str(service)


@pytest.mark.parametrize("name", SERVICES)
def test_only_the_front_door_has_ports_that_others_reach(name: str) -> None:
    ports = SERVICES[name].get("ports", [])
    if name == "proxy":
        assert len(ports) == 2
    else:
        assert all(re.fullmatch(r"127\.0\.0\.1:\$\{MARTLET_\w+_PORT:-\d+\}:\d+", port) for port in ports)
        # On an internal network a port would not be published.
        assert not ports or "desk" in SERVICES[name]["networks"]


def test_images_are_built_here_or_of_a_named_version() -> None:
    targets = set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "ops/Dockerfile").read_text(), re.MULTILINE))
    for name, service in SERVICES.items():
        if name in FOREIGN:
            assert service["image"] == FOREIGN[name]
        else:
            target = service["build"]["target"]
            assert target in targets and service["image"] == f"martlet-{target}:${{MARTLET_VERSION:-latest}}"
            assert service["pull_policy"] == "never"


def test_what_is_mounted_is_there_and_what_is_named_is_declared() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            # A variable's default is what counts.
            source, place, *mode = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", volume).split(":")
            if source.startswith("./"):
                assert (ROOT / source).exists() and mode == ["ro"], volume
            else:
                assert source in COMPOSE["volumes"] and place.startswith("/"), volume
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"]), name
        assert set(service["networks"]) <= set(COMPOSE["networks"]), name
    assert COMPOSE["networks"]["back"] == {"internal": True}


def test_secrets_are_those_that_the_script_makes() -> None:
    made = set(re.findall(r"^(?:put|room) (\w+)", (ROOT / "ops/scripts/secrets").read_text(), re.MULTILINE))
    assert made == set(COMPOSE["secrets"])


def test_whoever_signs_by_the_session_secret_takes_the_former_one() -> None:
    signers = {name for name, service in SERVICES.items() if "session" in service.get("secrets", [])}
    assert signers == {"gateway", "chat", "worker", "operator"}
    for name in signers:
        assert SERVICES[name]["environment"]["MARTLET_SECRET_FORMER_FILE"] == "/run/secrets/session_former"
        assert "session_former" in SERVICES[name]["secrets"]


def test_every_setting_is_explained_and_every_explained_one_is_passed_on() -> None:
    pages = PAGE + (ROOT / "README.md").read_text()
    settings = set(re.findall(r"\$\{((?:MARTLET|OTEL)_\w+)", TEXT))
    assert len(settings) > 30
    assert {name for name in settings if f"`{name}" not in pages} == set()
    named = PAGE + (ROOT / "docs/operations/failover.md").read_text().partition("## With docker-compose")[2]
    named = set(re.findall(r"\b(?:MARTLET|OTEL)_[A-Z0-9_]+\b", named))
    # The door's lists are written in docker-compose.yml itself.
    assert named - settings == {"MARTLET_GATEWAYS", "MARTLET_CHATS"}


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_are_files_that_who_is_told_of_them_has(name: str) -> None:
    environment = SERVICES[name].get("environment", {})
    for setting, value in environment.items():
        if re.search("PASSWORD|SECRET|_KEY|HEADERS|DATABASE_(DIRECT_)?URL", setting):
            assert setting.endswith("_FILE") and value.startswith("/run/secrets/"), setting
        if place := re.fullmatch(r"/run/secrets/(?:\$\{\w+:-)?(\w+)\}?", str(value)):
            assert place[1] in SERVICES[name]["secrets"], setting
    # Those that `.env` names, as the page says it.
    told = re.findall(r"`(MARTLET_SMTP_\w+)=/run/secrets/(\w+)`", PAGE)
    assert len(told) == 2
    for setting, secret in told:
        assert (setting in environment) == (name in ("worker", "operator"))
        assert setting not in environment or environment[setting] == f"${{{setting}:-}}"
        assert setting not in environment or secret in SERVICES[name]["secrets"]


def test_prometheus_finds_its_files_and_every_service() -> None:
    prometheus = SERVICES["prometheus"]
    assert "./ops/prometheus:/etc/martlet:ro" in prometheus["volumes"]
    assert "--config.file=/etc/martlet/prometheus.yml" in prometheus["command"]
    configuration = yaml.safe_load((ROOT / "ops/prometheus/prometheus.yml").read_text())
    for file in configuration["rule_files"]:
        assert (ROOT / "ops/prometheus" / file).is_file()
    for job in configuration["scrape_configs"]:
        (found,) = job["dns_sd_configs"]
        (name,) = found["names"]
        assert set(SERVICES[name]["networks"]) & set(prometheus["networks"]) == {"back"}
        assert SERVICES[name]["environment"]["MARTLET_ADMIN_ADDRESS"] == f"0.0.0.0:{found['port']}"


def test_grafana_finds_its_prometheus_and_its_dashboards() -> None:
    grafana = SERVICES["grafana"]
    provisioning = ROOT / "ops/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert set(grafana["networks"]) & set(SERVICES["prometheus"]["networks"])
    (provider,) = yaml.safe_load((provisioning / "dashboards/martlet.yml").read_text())["providers"]
    places = {place: source for source, place, *_ in (volume.split(":") for volume in grafana["volumes"])}
    assert places["/etc/grafana/provisioning"] == "./ops/grafana/provisioning"
    folder = ROOT / places[provider["options"]["path"]]
    used = set()
    for file in folder.glob("*.json"):
        used |= set(re.findall(r'"uid": "(prometheus)"', json.dumps(json.loads(file.read_text()))))
    assert used == {source["uid"]}
    password = grafana["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]
    assert password.removeprefix("/run/secrets/") in grafana["secrets"]


def test_what_a_profile_brings_is_reached_by_who_is_told_of_it() -> None:
    """The addresses of the page, between services that share a network."""
    for address, names in {
        "MARTLET_CLAMD=tcp://clamav:3310": ("worker", "operator"),
        "MARTLET_SMTP_URL=smtp://mailpit:1025": ("worker", "operator"),
    }.items():
        assert address in PAGE
        variable, _, url = address.partition("=")
        host = url.split("/")[2].split(":")[0]
        for name in names:
            assert SERVICES[name]["environment"][variable] == f"${{{variable}:-}}"
            assert set(SERVICES[name]["networks"]) & set(SERVICES[host]["networks"])
    assert "TCPSocket 3310" in (ROOT / "ops/scanner").read_text()


def test_the_operator_has_every_address_that_check_judges() -> None:
    """What a service alone has, check would call well."""
    operator = SERVICES["operator"]["environment"]
    for name in ("gateway", "worker"):
        for setting, value in SERVICES[name]["environment"].items():
            if re.search("_URL$|_URL_FILE$|_STORE$|_CLAMD$|_MAIL_FROM$", setting):
                assert operator.get(setting) == value, setting


def test_the_standby_is_what_the_server_is_but_for_its_name_and_its_place() -> None:
    server, standby = dict(SERVICES["postgres"]), dict(SERVICES["standby"])
    assert standby.pop("profiles") == ["standby"]
    for service in (server, standby):
        for key in ("environment", "healthcheck", "volumes"):
            service.pop(key)
    assert server == standby
    one, other = SERVICES["postgres"]["environment"], SERVICES["standby"]["environment"]
    assert (one["MARTLET_SERVER"], one["MARTLET_PEER"]) == (other["MARTLET_PEER"], other["MARTLET_SERVER"])
    assert one["MARTLET_FIRST"] == other["MARTLET_FIRST"] == "postgres"
    assert "@postgres:5432,standby:5432/" in (ROOT / "ops/scripts/secrets").read_text()
