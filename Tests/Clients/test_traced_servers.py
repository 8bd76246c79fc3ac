"""What an S3 and a clamd are asked is in the trace of whoever needs it."""

import secrets
from pathlib import Path
from typing import Iterator

import pytest

from clamd import EICAR, Clamd
from collector import Collector
from images import png
from lone_site import LoneSite
from object_store import Bucket, ObjectStore
from people import Person
from stack import Stack, free_ports
from waiting import until


class Site(LoneSite):
    """On a bucket, with uploads that are scanned."""

    def __init__(self, stack: Stack, folder: Path, bucket: Bucket, collector: Collector):
        self.bucket, self.collector = bucket, collector
        self.clamd = Clamd(folder, free_ports(1)[0])
        secret = folder / "s3-secret"
        secret.write_text(bucket.secret_key + "\n")
        settings = {
            "MARTLET_STORE": f"s3://{bucket.bucket}/media?endpoint={bucket.endpoint}&region={bucket.region}",
            "MARTLET_S3_ACCESS_KEY": bucket.access_key,
            "MARTLET_S3_SECRET_KEY_FILE": str(secret),
            "MARTLET_SCRATCH": str(folder / "scratch"),
            "MARTLET_CLAMD": str(self.clamd.socket),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        super().__init__(stack, folder, "traced_servers", settings)


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server, collector = ObjectStore(), Collector()
    own = Site(stack, tmp_path_factory.mktemp("traced-servers"), server.bucket, collector)
    try:
        own.clamd.restart()
        own.start()
        yield own
    finally:
        own.stop()
        own.clamd.end()
        server.stop()
        collector.stop()
    collector.check()


@pytest.mark.parametrize("verdict", ["clean", "infected"])
def test_an_upload_is_one_trace_with_the_store_and_the_scan(site: Site, verdict: str) -> None:
    ada, collector = Person.register(site.base, "ada"), site.collector
    trace = secrets.token_hex(16)
    content = png(60, 40) if verdict == "clean" else EICAR
    answer = ada.http.post(
        f"{site.base}/api/upload", files=[("files", ("my secret zebra.png", content, "image/png"))],
        headers={"traceparent": f"00-{trace}-{secrets.token_hex(8)}-01"}, timeout=90)
    assert answer.status_code == (200 if verdict == "clean" else 400), answer.text

    request = collector.one("POST /api/upload", trace=trace)
    put = collector.one("S3.PutObject", trace=trace, service="martlet-gateway")
    host, port = site.bucket.endpoint.split("://")[1].split(":")
    assert put.parent == request.id and put.kind == "client"
    assert put.attributes == {
        "rpc.system": "aws-api", "rpc.service": "S3", "rpc.method": "PutObject", "http.request.method": "PUT",
        "http.response.status_code": 200, "server.address": host, "server.port": int(port)}
    work = collector.one("process process_upload", trace=trace)
    scan = collector.one("clamd scan", trace=trace)
    assert scan.parent == work.id and scan.kind == "client" and not scan.is_error
    assert scan.attributes == {
        "network.protocol.name": "clamd", "network.transport": "unix", "server.address": str(site.clamd.socket),
        "martlet.scan.verdict": verdict}
    until(lambda: collector.find("S3.GetObject", trace=trace, parent=work.id), "the worker reads it")

    sent = b"".join(collector.bodies).decode()
    for word in ("zebra", ada.email, "Eicar", *(key.rpartition("/")[2] for key in site.bucket.keys())):
        assert word not in sent, word


def test_what_nobody_asked_for_in_a_trace_has_no_spans(site: Site) -> None:
    # The services have tried the store when they started, and clamd too.
    spans = [span for name in ("S3.PutObject", "S3.GetObject", "clamd scan") for span in site.collector.find(name)]
    assert spans and all(span.parent for span in spans)
