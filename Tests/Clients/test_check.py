"""martlet check against real TLS, and what every program says of a configuration that is wrong."""

import datetime
import ipaddress
import json
import os
import ssl
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stack import ROOT, Stack, free_ports

DAY = datetime.timedelta(days=1)


class Authority:
    """Signs certificates for names, or for times that are over."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        certificate = self.builder(self.name, self.key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(self.key, hashes.SHA256())
        self.path = folder / "authority.pem"
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def builder(self, subject: x509.Name, key: Any, ended: bool = False) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = (now - 3 * DAY, now - DAY) if ended else (now - DAY, now + DAY)
        return (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end))

    def context(self, address: str = "127.0.0.1", ended: bool = False) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail")])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        certificate = self.builder(subject, key, ended).add_extension(names, critical=False).sign(
            self.key, hashes.SHA256())
        path = self.folder / f"server-{address}-{ended}.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


class Implicit(Controller):
    """TLS from the first byte."""

    def __init__(self, context: ssl.SSLContext, port: int):
        super().__init__(Sink(), hostname="127.0.0.1", port=port, ssl_context=context)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a mail server with a certificate; gives the URL that it is asked by."""
    running: list[Controller] = []
    authority = Authority(tmp_path)

    def start(starttls: bool = True, **more: Any) -> str:
        (port,) = free_ports(1)
        context = authority.context(**more)
        if starttls:
            server = Controller(
                Sink(), hostname="127.0.0.1", port=port, tls_context=context, require_starttls=True)
            url = f"smtp://127.0.0.1:{port}?starttls=required"
        else:
            server, url = Implicit(context, port), f"smtps://127.0.0.1:{port}"
        server.start()
        running.append(server)
        return url

    yield start
    for each in running:
        each.stop()


def mail(stack: Stack, url: str, authorities: str = "") -> dict[str, str]:
    """What check finds of a mail server."""
    environment = {
        **os.environ, **stack.environment, "MARTLET_SMTP_URL": url, "MARTLET_SMTP_CA": authorities}
    done = subprocess.run(
        [str(stack.binaries / "martlet"), "check", "--json"], env=environment, cwd=ROOT, capture_output=True, text=True)
    return next(finding for finding in json.loads(done.stdout) if finding["name"] == "mail")


@pytest.mark.parametrize("starttls", [True, False])
def test_the_handshake_is_real_and_each_fault_of_a_certificate_has_its_remedy(
    stack: Stack, serve: Callable[..., str], tmp_path: Path, starttls: bool
) -> None:
    trusted = str(tmp_path / "authority.pem")
    good = serve(starttls)
    found = mail(stack, good, trusted)
    assert found["state"] == "ok" and "with TLS" in found["detail"], found
    untrusted = mail(stack, good)
    assert untrusted["state"] == "failed" and "MARTLET_SMTP_CA" in untrusted["remedy"], untrusted
    named = mail(stack, serve(starttls, address="127.0.0.2"), trusted)
    assert named["state"] == "failed" and "as its certificate does" in named["remedy"], named
    ended = mail(stack, serve(starttls, ended=True), trusted)
    assert ended["state"] == "failed" and "renew" in ended["remedy"], ended
    # What is no certificate.
    (tmp_path / "nothing.pem").write_text("hello")
    broken = mail(stack, good, str(tmp_path / "nothing.pem"))
    assert broken["state"] == "failed" and "PEM" in broken["remedy"], broken


def test_a_handshake_that_is_asked_for_where_there_is_none(stack: Stack, serve: Callable[..., str]) -> None:
    plain = serve(starttls=True).replace("smtp:", "smtps:").partition("?")[0]
    found = mail(stack, plain)
    assert found["state"] == "failed" and "STARTTLS" in found["remedy"], found
    implicit = serve(starttls=False).replace("smtps:", "smtp:")
    found = mail(stack, implicit)
    assert found["state"] == "failed" and "smtps://" in found["remedy"], found


def test_mails_go_to_a_server_whose_authority_is_named(
    stack: Stack, serve: Callable[..., str], tmp_path: Path
) -> None:
    """The worker takes the setting as check does."""
    (admin,) = free_ports(1)
    environment = {
        **os.environ, **stack.environment, "MARTLET_SMTP_URL": serve(), "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
        "MARTLET_SMTP_CA": str(tmp_path / "nothing-there.pem")}
    done = subprocess.run(
        [str(stack.binaries / "martlet-worker")], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=90)
    assert done.returncode == 78 and "MARTLET_SMTP_CA names" in done.stderr


def test_what_postgresql_says_is_told(stack: Stack) -> None:
    url = urlsplit(stack.database_url)
    (nobody,) = free_ports(1)
    for wrong, words in (
        (url._replace(path="/no_such_database").geturl(), 'database "no_such_database" does not exist'),
        (f"postgres://martlet:hidden-word@127.0.0.1:{nobody}/martlet", "Connection refused"),
    ):
        environment = {**os.environ, "MARTLET_DATABASE_URL": wrong}
        done = subprocess.run(
            [str(stack.binaries / "martlet"), "check"], env=environment, cwd=ROOT, capture_output=True, text=True,
            timeout=60)
        said = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == 69 and words in said and "hidden-word" not in said, said


WRONG = {
    "MARTLET_DATABASE_URL": "mysql://someone:hidden-word@host",
    "MARTLET_SECRET": "short",
    "MARTLET_SECRET_FORMER": "shorter",
    "MARTLET_POSTING_URL": "https://jobs.example.org/jobs",
    "MARTLET_STORE": "/proc/nothing",
    "MARTLET_HTTP_ADDRESS": "localhost:99999",
    "MARTLET_ADMIN_ADDRESS": "nowhere",
    "MARTLET_LOOPS": "0",
    "MARTLET_NOTIFY": "perhaps",
    "MARTLET_TRUSTED_PROXIES": "everyone",
    "MARTLET_SMTP_URL": "http://martlet:hidden-word@mail",
    "MARTLET_MAIL_FROM": "nobody",
    "MARTLET_CLAMD": "somewhere",
    "MARTLET_MAILS_AT_ONCE": "many",
    "MARTLET_ALERT_LEDGER_DAYS": "30",
    "MARTLET_INSTANCE": "a b",
    "MARTLET_PUBLIC_URL": "ftp://jobs",
    "MARTLET_UNREADY_SECONDS": "60",
    "MARTLET_LOG_LEVEL": "loud",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318",
    "OTEL_TRACES_SAMPLER": "sometimes",
    "MARTLET_TRACE_INCOMING": "sometimes",
}
COMMON = {
    "MARTLET_DATABASE_URL", "MARTLET_SECRET", "MARTLET_SECRET_FORMER", "MARTLET_ADMIN_ADDRESS", "MARTLET_LOOPS",
    "MARTLET_NOTIFY", "MARTLET_UNREADY_SECONDS", "MARTLET_LOG_LEVEL", "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_TRACES_SAMPLER", "MARTLET_TRACE_INCOMING"}
READ = {
    "martlet-gateway": COMMON | {
        "MARTLET_STORE", "MARTLET_HTTP_ADDRESS", "MARTLET_TRUSTED_PROXIES", "MARTLET_MAIL_FROM"},
    "martlet-chat": COMMON | {"MARTLET_HTTP_ADDRESS", "MARTLET_TRUSTED_PROXIES", "MARTLET_INSTANCE"},
    "martlet-worker": COMMON | {
        "MARTLET_STORE", "MARTLET_SMTP_URL", "MARTLET_MAIL_FROM", "MARTLET_CLAMD", "MARTLET_MAILS_AT_ONCE",
        "MARTLET_ALERT_LEDGER_DAYS", "MARTLET_PUBLIC_URL", "MARTLET_POSTING_URL"},
    "martlet": COMMON | {
        "MARTLET_HTTP_ADDRESS", "MARTLET_TRUSTED_PROXIES", "MARTLET_SMTP_URL", "MARTLET_MAIL_FROM", "MARTLET_CLAMD",
        "MARTLET_PUBLIC_URL", "MARTLET_POSTING_URL"},
}


def say(stack: Stack, program: str, settings: dict[str, str]) -> tuple[int, str]:
    """The status of a program that has these settings alone, and its words."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MARTLET_", "OTEL_"))}
    command = [str(stack.binaries / program), *(["check"] if program == "martlet" else [])]
    done = subprocess.run(command, env={**kept, **settings}, cwd=ROOT, capture_output=True, text=True, timeout=90)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("program", READ)
def test_a_value_beside_its_file_and_a_file_that_is_not_there_are_named(
    stack: Stack, tmp_path: Path, program: str
) -> None:
    (tmp_path / "secret").write_text("s" * 32)
    status, said = say(stack, program, {
        "MARTLET_SECRET": "t" * 32, "MARTLET_SECRET_FILE": str(tmp_path / "secret"),
        "MARTLET_DATABASE_URL_FILE": str(tmp_path / "nothing"), "MARTLET_STORE": str(tmp_path)})
    assert status == 78 and "MARTLET_SECRET and MARTLET_SECRET_FILE are both set" in said, said
    assert f"MARTLET_DATABASE_URL_FILE names {tmp_path}/nothing, which cannot be read: No such file" in said, said
    assert "MARTLET_DATABASE_URL is not set" not in said and "tttt" not in said, said


def test_check_tries_the_files_of_all_settings(stack: Stack, tmp_path: Path) -> None:
    absent = {name: str(tmp_path / "nothing") for name in ("MARTLET_SMTP_URL_FILE", "MARTLET_S3_SECRET_KEY_FILE")}
    status, said = say(stack, "martlet", {"MARTLET_DATABASE_URL": stack.database_url, **absent})
    assert status == 78 and all(f"{name} names" in said for name in absent), said
    assert "MARTLET_SMTP_URL is not set" not in said, said


@pytest.mark.parametrize("program", ["martlet-gateway", "martlet-worker", "martlet"])
def test_a_store_whose_path_leads_nowhere_is_a_mistake_and_no_folder(
    stack: Stack, tmp_path: Path, program: str
) -> None:
    wrong = tmp_path / "mistyped" / "store"
    settings = {name: stack.environment[name] for name in ("MARTLET_SECRET_FILE", "MARTLET_PUBLIC_URL")}
    status, said = say(stack, program, {
        **settings, "MARTLET_DATABASE_URL": stack.database_url, "MARTLET_STORE": str(wrong)})
    assert status == 78 and f"there is no folder {wrong.parent}" in said, said
    assert not wrong.parent.exists()


@pytest.mark.parametrize("sender", ["a@b@c", "jobs@ex_ample.org"])
@pytest.mark.parametrize("program", ["martlet-gateway", "martlet-worker", "martlet"])
def test_a_sender_that_one_program_refuses_is_refused_by_all(stack: Stack, program: str, sender: str) -> None:
    status, said = say(stack, program, {"MARTLET_MAIL_FROM": sender})
    assert status == 78 and f'MARTLET_MAIL_FROM is "{sender}"' in said, said


@pytest.mark.parametrize("program", READ)
def test_every_mistake_is_told_at_once_and_nothing_is_started(stack: Stack, program: str) -> None:
    status, said = say(stack, program, WRONG)
    assert status == 78, said
    for name in READ[program]:
        assert name in said, f"{program} says nothing of {name}: {said}"
    assert "hidden-word" not in said and "postgres://user:password@host:port/database" in said
    if program == "martlet":
        command = [str(stack.binaries / program), "check", "--json"]
        json_said = subprocess.run(
            command, env={**os.environ, **WRONG}, cwd=ROOT, capture_output=True, text=True, timeout=90)
        findings = json.loads(json_said.stdout)
        assert all(finding["remedy"] for finding in findings if finding["state"] in ("failed", "warning")), findings


@pytest.mark.parametrize("program", READ)
def test_what_is_missing_is_told_at_once(stack: Stack, program: str) -> None:
    status, said = say(stack, program, {})
    needed = {"MARTLET_DATABASE_URL"}
    if program != "martlet":
        needed |= {"MARTLET_SECRET"}
    if program in ("martlet-gateway", "martlet-worker"):
        needed |= {"MARTLET_STORE"}
    assert status == 78 and all(name in said for name in needed), said
    assert "MARTLET_RESET_URL" not in said, "nobody has set it"
