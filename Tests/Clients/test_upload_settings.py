"""What a worker does with SVGs and scans where its settings say so, against processes of its own."""

import os
from pathlib import Path
from typing import Iterator

import pytest
import requests

from lone_site import LoneSite
from people import Person
from stack import ROOT, Stack
from test_upload_api import upload
from waiting import until

SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10" onload="alert(1)"><script>alert(1)</script>'
    b'<rect width="20" height="10" fill="#a00"/></svg>'
)
SCAN = Path(os.environ.get("MARTLET_SHARED", ROOT.parent / "shared")) / "files/pdf/gen_resume_no_text_layer.pdf"
TESSERACT = Path("/usr/share/tesseract-ocr/5/tessdata/eng.traineddata")


@pytest.fixture(scope="module")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneSite]:
    folder = tmp_path_factory.mktemp("settings")
    own = LoneSite(stack, folder, "settings", {"MARTLET_STORE": str(folder / "store"), "MARTLET_SVG": "rasterize"})
    try:
        own.start()
        yield own
    finally:
        own.stop()


@pytest.fixture(scope="module")
def ada(site: LoneSite) -> Person:
    return Person.register(site.base, "ada")


def test_an_svg_is_served_as_a_drawing_of_it_and_in_no_other_way(site: LoneSite, ada: Person) -> None:
    file = upload(ada, ("logo.svg", SVG, "image/svg+xml"))[0]
    assert (file["mime"], file["ext"], file["width"], file["height"]) == ("image/png", ".png", 1000, 500)
    assert set(file["formats"]) == {"thumbnail", "small", "medium"}
    for url in [file["url"], *(each["url"] for each in file["formats"].values())]:
        answer = requests.get(site.base + url, timeout=15)
        assert answer.status_code == 200 and answer.headers["Content-Type"] == "image/png"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.content.startswith(b"\x89PNG") and b"alert" not in answer.content


def test_an_svg_that_refers_to_others_is_refused_with_advice(ada: Person) -> None:
    referring = SVG.replace(b"<rect", b'<image href="https://example.org/a.png"/><rect')
    error = upload(ada, ("logo.svg", referring, "image/svg+xml"), status=400)
    assert error["message"].startswith("The SVG cannot be drawn safely") and "PNG" in error["message"]


@pytest.mark.skipif(not SCAN.exists(), reason="the files of comparable systems are not there")
@pytest.mark.skipif(not TESSERACT.exists(), reason="tesseract-ocr is not installed")
def test_a_scanned_cv_is_read_and_said_to_be_one(ada: Person) -> None:
    file = upload(ada, ("cv.pdf", SCAN.read_bytes(), "application/pdf"), query="?kind=cv")[0]

    def look() -> dict | None:
        data = ada.get(f"/api/upload/files/{file['id']}/resume")["data"]
        return data if data["state"] == "ready" else None

    # A page takes some seconds where others are at work.
    data = until(look, "the scan is read")
    assert data["scanned"] is True and "scan" in data["advice"]
    assert data["resume"]["name"]["value"] == "Jake Gutierrez"
    assert {"PostgreSQL", "React"} <= {skill["value"] for skill in data["resume"]["skills"]}
