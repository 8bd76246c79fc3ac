"""Gateway and worker on an S3 that checks signatures, behind a proxy that a test can take away."""

import hashlib
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Iterator
from urllib.parse import urlsplit

import pytest
import requests
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from images import png, size
from lone_site import UNAVAILABLE, LoneSite
from object_store import Bucket, ObjectStore
from pdf import curriculum_vitae
from people import Person
from s3_proxy import Passed, Proxy
from stack import Process, Stack, free_ports
from waiting import until

AT_ONCE = 6


class Site(LoneSite):
    """On a bucket, behind a proxy."""

    def __init__(self, stack: Stack, folder: Path, bucket: Bucket):
        self.bucket = bucket
        self.proxy = Proxy(bucket.endpoint)
        self.scratch = folder / "scratch"
        secret = folder / "s3-secret"
        secret.write_text(bucket.secret_key + "\n")
        store = f"s3://{bucket.bucket}/media/x?endpoint={self.proxy.url}&region={bucket.region}"
        settings = {
            "MARTLET_STORE": store,
            "MARTLET_S3_ACCESS_KEY": bucket.access_key,
            "MARTLET_S3_SECRET_KEY_FILE": str(secret),
            "MARTLET_SCRATCH": str(self.scratch),
        }
        super().__init__(stack, folder, "bucket", settings)

    def objects(self) -> set[str]:
        return set(self.bucket.keys())

    def leftovers(self) -> list[str]:
        """What lies in the scratch folder, and in parts at the S3."""
        return [str(path) for path in self.scratch.rglob("*")] + self.bucket.uploads()


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    server = ObjectStore()
    own = Site(stack, tmp_path_factory.mktemp("bucket"), server.bucket)
    try:
        own.start()
        yield own
    finally:
        own.stop()
        server.stop()


@pytest.fixture
def ada(site: Site) -> Person:
    return Person.register(site.base, "ada")


def is_signed_as_botocore_signs(passed: Passed, bucket: Bucket) -> bool:
    fields = dict(part.split("=", 1) for part in passed.headers["authorization"].split(" ", 1)[1].split(", "))
    names = fields["SignedHeaders"].split(";")
    assert {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names)
    assert {name for name in passed.headers if name.startswith("x-amz-")} <= set(names), "nothing of it is unsigned"
    assert passed.headers["x-amz-content-sha256"] == passed.sha256, "the content itself is signed"
    request = AWSRequest(
        passed.method, f"http://{passed.headers['host']}{passed.target}",
        headers={name: passed.headers[name] for name in names},
    )
    request.context["timestamp"] = passed.headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials(bucket.access_key, bucket.secret_key), "s3", bucket.region)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return signer.signature(text, request) == fields["Signature"]


def test_files_go_to_the_bucket_and_come_back_from_it(site: Site, ada: Person) -> None:
    before = site.objects()
    file = site.upload(ada, "My Cat.png", png(600, 400), "image/png")
    assert set(file["formats"]) == {"thumbnail", "small"}
    new = site.objects() - before
    assert len(new) == 4 and all(key.startswith("media/x/") for key in new)
    whole = requests.get(site.base + file["url"], timeout=15)
    assert whole.status_code == 200 and size(whole.content) == (600, 400)
    assert whole.headers["Content-Length"] == str(len(whole.content)) and whole.headers["Accept-Ranges"] == "bytes"
    for each in file["formats"].values():
        assert size(requests.get(site.base + each["url"], timeout=15).content) == (each["width"], each["height"])
    tag = whole.headers["ETag"]
    get = lambda **headers: requests.get(site.base + file["url"], headers=headers, timeout=15)  # noqa: E731
    part = get(Range="bytes=10-19")
    assert part.status_code == 206 and part.content == whole.content[10:20]
    assert part.headers["Content-Range"] == f"bytes 10-19/{len(whole.content)}"
    assert get(Range="bytes=-5").content == whole.content[-5:]
    assert get(Range=f"bytes={len(whole.content)}-").status_code == 416
    assert get(**{"If-None-Match": tag}).status_code == 304
    assert get(**{"If-Match": '"other"'}).status_code == 412
    head = requests.head(site.base + file["url"], timeout=15)
    assert head.status_code == 200 and head.headers["Content-Length"] == str(len(whole.content)) and not head.content
    ada.ask("DELETE", f"/api/upload/files/{file['id']}", 200)
    until(lambda: site.objects() == before, "the objects are deleted")
    until(lambda: not site.leftovers(), "nothing is left in the scratch folder")


def test_a_big_file_goes_in_parts_and_comes_back_in_pieces(site: Site, ada: Person) -> None:
    # Noise after the end of the document, which no reader looks at.
    content = curriculum_vitae("Ada") + b"\n%" + os.urandom(20 << 20).replace(b"\n", b" ") + b"\n"
    seen = len(site.proxy.passed)
    answer = ada.ask("POST", "/api/upload", 200, files=[("files", ("cv.pdf", content, "application/pdf"))])[0]
    kinds = [(each.method, urlsplit(each.target).query.split("=")[0]) for each in site.proxy.passed[seen:]]
    assert kinds.count(("PUT", "partNumber")) == 3 and kinds.count(("POST", "uploads")) == 1
    assert kinds.count(("POST", "uploadId")) == 1
    query = f"SELECT encode(sha256, 'hex'), storage_key FROM media WHERE id = {answer['id']}"
    row = site.stack.sql(query, site.database)
    digest, key = row.split("\t")
    assert digest == hashlib.sha256(content).hexdigest()
    stored = site.bucket.client().get_object(Bucket=site.bucket.bucket, Key=f"media/x/{key}")["Body"].read()
    assert stored == content
    path = f"/api/upload/files/{answer['id']}"
    until(lambda: ada.get(path).get("state") != "pending", "the file has been looked at")
    file = ada.get(path)
    assert "state" not in file, file
    seen = len(site.proxy.passed)
    assert requests.get(site.base + file["url"], timeout=60).content == content
    # A sweep may ask for lists meanwhile.
    pieces = [each for each in site.proxy.passed[seen:] if each.method == "GET" and key in each.target]
    assert len(pieces) == -(-len(content) // (256 * 1024)) and all("range" in each.headers for each in pieces)


def test_many_big_files_at_once_are_all_taken_and_only_content_is_refused(site: Site) -> None:
    people = [Person.register(site.base, "ada") for _ in range(AT_ONCE)]
    good = curriculum_vitae("Ada") + b"\n%" + os.urandom(24 << 20).replace(b"\n", b" ") + b"\n"

    def send(somebody: Person, content: bytes = good) -> requests.Response:
        files = [("files", ("cv.pdf", content, "application/pdf"))]
        return somebody.http.post(f"{site.base}/api/upload", files=files, timeout=120)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, people))
    # The bucket takes its time: who is not looked at within five seconds is told so.
    assert [each.status_code for each in answers] == [200] * AT_ONCE, [each.text[:200] for each in answers]
    waiting = "SELECT count(*) FROM media WHERE state <> 'ready' AND bytes > 24000000"
    until(lambda: site.stack.sql(waiting, site.database) == "0", "all have been looked at")
    # What is no file of any kind is refused.
    refused = people[0].refused_upload("/api/upload", [("files", ("cv.pdf", os.urandom(24 << 20), "application/pdf"))])
    assert "not accepted" in refused["message"], refused
    until(lambda: not site.leftovers(), "parts and scratch files are gone")


def test_an_upload_that_breaks_leaves_nothing_in_the_bucket(site: Site, ada: Person) -> None:
    before = site.objects()
    body = b'--B\r\nContent-Disposition: form-data; name="files"; filename="a.bin"\r\n\r\n' + bytes(12 << 20)
    head = (
        f"POST /api/upload HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ada.jwt}\r\n"
        f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {len(body) + 100}\r\n\r\n"
    ).encode()
    for count in (100, 1 << 20, len(body)):
        with socket.create_connection(("127.0.0.1", urlsplit(site.base).port), timeout=30) as connection:
            connection.sendall(head + body[:count])
    until(lambda: not site.leftovers(), "parts and scratch files are gone")
    assert site.objects() <= before


def test_without_its_bucket_a_site_serves_all_else_and_recovers_by_itself(site: Site, ada: Person) -> None:
    file = site.upload(ada, "cat.png", png(300, 200), "image/png")
    before = site.objects()
    site.proxy.away()
    try:
        site.refused(ada)
        assert site.readiness()[0] == 200 and "store: object store: S3 cannot be reached" in site.readiness()[1]
        assert site.metric("martlet_store_up") == 0
        assert requests.get(site.base + file["url"], timeout=30).status_code == 503
        assert ada.get("/api/jobs") and site.gateway.is_ready()
        # An upload waits for its worker, a deletion for the bucket.
        ada.ask("DELETE", f"/api/upload/files/{file['id']}", 200)
    finally:
        site.proxy.back()
    until(lambda: site.readiness() == (200, "ready\n"), "the gateway has noticed")
    assert site.metric("martlet_store_up") == 1
    assert site.objects() <= before and not site.leftovers(), "nothing was stored by halves"
    site.upload(ada, "dog.png", png(300, 200, 1), "image/png")
    gone = f"media/x/{file['hash']}"
    assert gone not in site.objects()
    until(lambda: len(site.objects() - before) == 3 and len(before - site.objects()) == 3, "the deletion was caught up")


def test_a_bucket_that_is_asked_too_much_is_asked_again(site: Site, ada: Person) -> None:
    refusals = iter([503, 500])
    site.proxy.refuse = lambda method, target: next(refusals, None) if method == "PUT" else None
    site.upload(ada, "cat.png", png(300, 200), "image/png")
    site.proxy.refuse = lambda method, target: 503 if method == "PUT" else None
    try:
        before = site.objects()
        site.refused(ada)
        assert site.objects() == before
    finally:
        site.proxy.refuse = lambda method, target: None
    until(lambda: site.readiness() == (200, "ready\n"), "the gateway has noticed")


def test_a_row_without_its_object_is_told_as_that(site: Site, ada: Person) -> None:
    file = site.upload(ada, "cat.png", png(300, 200), "image/png")
    row = f"SELECT storage_key FROM media_variants WHERE media_id = {file['id']} AND name = 'upright'"
    key = "media/x/" + site.stack.sql(row, site.database)
    site.bucket.client().delete_object(Bucket=site.bucket.bucket, Key=key)
    missing = site.metric("martlet_media_objects_missing_total")
    answer = requests.get(site.base + file["url"], timeout=15)
    assert answer.status_code == 404
    assert answer.json()["error"]["message"].startswith("The content of this file is missing.")
    assert site.metric("martlet_media_objects_missing_total") == missing + 1


def test_every_kind_of_request_is_signed_as_botocore_signs_it(site: Site, ada: Person) -> None:
    site.upload(ada, "cat.png", png(300, 200), "image/png")
    # The sweep and the pruning of an hour, now.
    for kind in ("sweep_objects", "prune"):
        site.stack.sql(f"INSERT INTO work_items (kind, payload) VALUES ('{kind}', '{{}}')", site.database)
    lists = ("max-uploads=", "list-type=2&max-keys=1000&prefix=")
    for word in lists:
        until(lambda: any(word in each.target for each in site.proxy.passed), f"{word} was asked for")
    seen: dict[tuple[str, str], Passed] = {}
    for each in list(site.proxy.passed):
        names = "&".join(pair.split("=")[0] for pair in urlsplit(each.target).query.split("&"))
        seen.setdefault((each.method, names), each)
        assert is_signed_as_botocore_signs(each, site.bucket), each
        assert all("=" in pair for pair in urlsplit(each.target).query.split("&") if pair)
    assert {method for method, _ in seen} == {"GET", "HEAD", "PUT", "POST", "DELETE"}
    assert {("PUT", "partNumber&uploadId"), ("POST", "uploads"), ("POST", "uploadId"), ("DELETE", "")} <= set(seen)


def test_wrong_keys_are_told_by_check_and_by_readiness(site: Site, tmp_path: Path) -> None:
    good = site.martlet("check")
    assert good.returncode == 0 and "ok      store: S3" in good.stdout, good.stdout
    wrong_key = {"MARTLET_S3_SECRET_KEY": "wrong", "MARTLET_S3_SECRET_KEY_FILE": ""}
    bad = site.martlet("check", **wrong_key)
    assert bad.returncode == 69 and "SignatureDoesNotMatch" in bad.stdout
    none = site.martlet("check", MARTLET_STORE="s3://A?what=1", MARTLET_S3_ACCESS_KEY="a b")
    assert none.returncode == 78 and "is no name of a bucket" in none.stdout and "MARTLET_S3_ACCESS_KEY" in none.stdout
    port, admin = free_ports(2)
    wrong = {
        **site.environment, **wrong_key, "MARTLET_HTTP_ADDRESS": f"127.0.0.1:{port}",
        "MARTLET_ADMIN_ADDRESS": f"127.0.0.1:{admin}",
    }
    url = f"http://127.0.0.1:{admin}/readyz"
    gateway = Process("bucket-wrong", [str(site.stack.binaries / "martlet-gateway")], wrong, url, tmp_path)
    gateway.restart()
    try:
        until(lambda: "MARTLET_S3_SECRET_KEY" in requests.get(url, timeout=10).text, "readiness tells of the key")
        assert requests.get(url, timeout=10).status_code == 200
        somebody = Person.register(f"http://127.0.0.1:{port}", "eve")
        answer = somebody.ask("POST", "/api/upload", 503, files=[("files", ("a.png", png(10, 10), "image/png"))])
        assert answer["error"]["message"] == UNAVAILABLE
    finally:
        gateway.stop()
    assert site.bucket.secret_key not in gateway.log.read_text() and '"wrong"' not in gateway.log.read_text()
