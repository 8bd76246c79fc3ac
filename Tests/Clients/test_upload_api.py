"""/api/upload as a program written for Strapi's upload plugin uses it, against the real processes."""

import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any, Callable

import pytest
import requests

from images import png, size
from pdf import curriculum_vitae
from people import Person, new_word
from stack import ROOT, Stack
from waiting import until

NewPerson = Callable[[str], Person]

FIELDS = [
    "id", "name", "alternativeText", "caption", "width", "height", "formats", "hash", "ext", "mime", "size", "url",
    "previewUrl", "provider", "provider_metadata", "createdAt", "updatedAt",
]
FORMAT_FIELDS = ["name", "hash", "ext", "mime", "path", "width", "height", "size", "sizeInBytes", "url"]
SIZES = ["thumbnail", "small", "medium", "large"]
SHARED = Path(os.environ.get("MARTLET_SHARED", ROOT.parent / "shared")) / "files"


def upload(
    somebody: Person, *files: tuple[str, bytes, str], status: int = 200, query: str = "", **fields: str
) -> Any:
    """The answer; of a refusal the error. A machine that is busy may look at a file after the answer only."""
    parts: list[tuple[str, Any]] = [("files", file) for file in files]
    parts += [(key, (None, value)) for key, value in fields.items()]
    answer = somebody.ask("POST", f"/api/upload{query}", status, files=parts)
    if status >= 400:
        return answer["error"]
    if isinstance(answer, dict):
        return settled(somebody, answer)
    return [settled(somebody, each) for each in answer]


def settled(somebody: Person, file: dict[str, Any]) -> dict[str, Any]:
    """The file when it has been looked at."""

    def look() -> dict[str, Any] | None:
        now = somebody.get(f"/api/upload/files/{file['id']}")
        return None if "state" in now else now

    return file if "state" not in file else until(look, "the file has been looked at")


def fetch(stack: Stack, url: str, status: int = 200, **headers: str) -> requests.Response:
    """As the stock client does: base and address, and no token."""
    answer = requests.get(stack.base + url, headers=headers, timeout=15)
    assert answer.status_code == status, f"{url}: {answer.status_code} {answer.text[:300]}"
    return answer


def kilobytes(content: bytes) -> float:
    """As JavaScript rounds: halves go up."""
    return (len(content) + 5) // 10 / 100


def objects(stack: Stack) -> set[str]:
    """Files in the store, temporary ones too."""
    root = stack.folder / "store"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("width", "height", "sizes"),
    [
        (1920, 1080, {"thumbnail": (245, 138), "small": (500, 281), "medium": (750, 422), "large": (1000, 563)}),
        (1280, 1022, {"thumbnail": (195, 156), "small": (500, 399), "medium": (750, 599), "large": (1000, 798)}),
        (960, 600, {"thumbnail": (245, 153), "small": (500, 313), "medium": (750, 469)}),
        (459, 470, {"thumbnail": (152, 156)}),
        (245, 156, None),
    ],
)
def test_a_picture_is_answered_with_strapis_sizes(
    stack: Stack, person: NewPerson, width: int, height: int, sizes: dict[str, tuple[int, int]] | None
) -> None:
    file = upload(person("ada"), ("My Cat.png", png(width, height), "image/png"))[0]
    assert list(file) == FIELDS
    assert (file["width"], file["height"], file["ext"], file["mime"]) == (width, height, ".png", "image/png")
    assert file["name"] == "My Cat.png" and re.fullmatch(r"My_Cat_[0-9a-f]{10}", file["hash"])
    assert file["provider"] == "local" and file["previewUrl"] is None and file["provider_metadata"] is None
    assert file["alternativeText"] is None and file["caption"] is None
    content = fetch(stack, file["url"]).content
    assert size(content) == (width, height) and file["size"] == kilobytes(content)
    if sizes is None:
        assert file["formats"] is None
        return
    assert {name: (each["width"], each["height"]) for name, each in file["formats"].items()} == sizes
    for name, each in file["formats"].items():
        assert list(each) == FORMAT_FIELDS
        assert each["name"] == f"{name}_My Cat.png" and each["hash"] == f"{name}_{file['hash']}"
        assert each["url"].split("?")[0] == f"/uploads/{each['hash']}{each['ext']}" and each["path"] is None
        content = fetch(stack, each["url"]).content
        assert size(content) == sizes[name]
        assert len(content) == each["sizeInBytes"] and each["size"] == kilobytes(content)


def test_several_files_have_their_own_words_and_are_listed_newest_first(person: NewPerson) -> None:
    ada, bob = person("ada"), person("bob")
    infos = [{"name": "First.png", "alternativeText": "One", "caption": "1"}, {"alternativeText": "Two"}]
    files = upload(
        ada, ("a.png", png(300, 200), "image/png"), ("cv.pdf", curriculum_vitae("Ada"), "application/pdf"),
        fileInfo=json.dumps(infos),
    )
    assert [each["name"] for each in files] == ["First.png", "cv.pdf"]
    assert [each["alternativeText"] for each in files] == ["One", "Two"]
    document = files[1]
    assert list(document) == FIELDS and document["mime"] == "application/pdf" and document["ext"] == ".pdf"
    assert document["width"] is None and document["height"] is None and document["formats"] is None
    listed = ada.get("/api/upload/files")
    assert [each["id"] for each in listed] == [files[1]["id"], files[0]["id"]]
    assert ada.get(f"/api/upload/files/{files[0]['id']}")["name"] == "First.png"
    assert bob.get("/api/upload/files") == []
    error = bob.ask("GET", f"/api/upload/files/{files[0]['id']}", 404)["error"]
    assert error["message"] == "file.notFound" and error["name"] == "NotFoundError"


def test_what_is_refused_leaves_nothing(stack: Stack, person: NewPerson) -> None:
    ada, bob = person("ada"), person("bob")
    bob.create_company(f"Company {new_word()}")
    before = objects(stack)
    picture = ("a.png", png(300, 200), "image/png")

    assert upload(ada, status=400, fileInfo="{}")["message"] == "Files are empty"
    assert upload(ada, ("a.png", b"", "image/png"), status=400)["message"] == "Files are empty"
    bad = [
        ("cut.png", png(900, 900)[:-400], "image/png"), ("no.png", b"\x89PNG\r\n\x1a\nnothing", "image/png"),
        ("bytes.jpg", bytes(range(256)) * 8, "image/jpeg"),
    ]
    for file in bad:
        error = upload(ada, picture, file, status=400)
        assert error["message"] == "File is not a valid image" and error["name"] == "ValidationError", file[0]
    drawing = upload(ada, ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"), status=400)
    assert "SVG" in drawing["message"] and "PNG" in drawing["message"]
    assert upload(ada, ("a.bin", b"\x7fELF" + bytes(2000), "application/octet-stream"), status=400)
    assert upload(ada, *[picture] * 11, status=400)["message"] == "files are limited to 10"
    upload(ada, ("a.png", bytes(25 * 1024 * 1024 + 1), "image/png"), status=413)
    for fields, path in [
        ({"ref": "api::nothing.nothing", "refId": "1", "field": "x"}, ["ref"]),
        ({"ref": "api::company.company", "refId": str(bob.company), "field": "jobs"}, ["field"]),
        ({"ref": "api::company.company", "refId": "x", "field": "logo"}, ["refId"]),
        ({"fileInfo": "{"}, ["fileInfo"]),
    ]:
        error = upload(ada, picture, status=400, **fields)
        assert error["details"]["errors"][0]["path"] == path
    use = {"ref": "api::company.company", "refId": str(bob.company), "field": "logo"}
    assert upload(ada, picture, status=403, **use)["name"] == "ForbiddenError"
    use = {"ref": "plugin::users-permissions.user", "refId": str(bob.id), "field": "profile"}
    upload(ada, picture, status=403, **use)

    assert ada.get("/api/upload/files") == []
    until(lambda: objects(stack) <= before, "the worker has deleted what was refused")


def test_a_logo_is_public_and_shown_in_all_four_sizes(stack: Stack, person: NewPerson) -> None:
    representative, somebody = person("rep"), person("bob")
    representative.create_company(f"Company {new_word()}")
    posting = representative.publish(f"Engineer {new_word()}")["id"]
    use = {"ref": "api::company.company", "refId": str(representative.company), "field": "logo"}
    first = upload(representative, ("logo.png", png(600, 400), "image/png"), **use)[0]
    assert list(first["formats"]) == SIZES
    assert first["formats"]["medium"]["url"] == first["formats"]["large"]["url"] == first["url"]
    for url in [first["url"], *(each["url"] for each in first["formats"].values())]:
        assert "?" not in url
        answer = fetch(stack, url)
        assert "immutable" in answer.headers["Cache-Control"] and "public" in answer.headers["Cache-Control"]
        assert answer.headers["Content-Type"] == "image/png" and answer.headers["X-Content-Type-Options"] == "nosniff"

    listed = somebody.get(f"/api/jobs/{posting}?populate[company][populate][0]=logo")["data"]
    logo = listed["attributes"]["company"]["data"]["attributes"]["logo"]["data"]
    assert logo["id"] == first["id"] and list(logo["attributes"]) == FIELDS[1:]
    assert set(logo["attributes"]["formats"]) == set(SIZES)
    assert representative.get("/api/companies/me")["logo"]["url"] == first["url"]

    # A broken one takes nobody's place; a good one does, and the former one's address is gone.
    upload(representative, ("logo.png", png(600, 400)[:-100], "image/png"), status=400, **use)
    assert representative.get("/api/companies/me")["logo"]["url"] == first["url"]
    second = upload(representative, ("logo.png", png(600, 400, 7), "image/png"), **use)[0]
    assert representative.get("/api/companies/me")["logo"]["url"] == second["url"]
    fetch(stack, first["url"], 404)
    # Changed by its id it has another address: the former one is in caches for a year.
    third = upload(representative, ("logo.png", png(610, 400, 9), "image/png"), query=f"?id={second['id']}")
    assert third["id"] == second["id"] and third["hash"] != second["hash"]
    assert size(fetch(stack, third["url"]).content) == (610, 400)
    fetch(stack, second["url"], 404)

    somebody.ask("DELETE", f"/api/upload/files/{third['id']}", 404)
    deleted = representative.ask("DELETE", f"/api/upload/files/{third['id']}", 200)
    assert deleted["id"] == third["id"]
    fetch(stack, third["url"], 404)
    placeholder = representative.get("/api/companies/me")["logo"]["url"]
    assert fetch(stack, placeholder).headers["Content-Type"] == "image/png"


def test_a_file_is_replaced_under_its_address_and_described(stack: Stack, person: NewPerson) -> None:
    ada, bob = person("ada"), person("bob")
    first = upload(ada, ("a.png", png(300, 200), "image/png"), query="?kind=profile", fileInfo='{"caption":"Me"}')[0]
    assert stack.sql(f"SELECT profile_media_id FROM users WHERE id = {ada.id}") == str(first["id"])
    query = f"?id={first['id']}"
    upload(ada, ("b.png", png(300, 200)[:-60], "image/png"), status=400, query=query)
    assert size(fetch(stack, first["url"]).content) == (300, 200)
    second = upload(ada, ("b.png", png(800, 600), "image/png"), query=query)
    assert second["id"] == first["id"] and second["hash"] == first["hash"] and second["caption"] == "Me"
    assert second["url"].split("?")[0] == first["url"].split("?")[0] and second["name"] == "b.png"
    assert size(fetch(stack, first["url"]).content) == (800, 600)
    assert size(fetch(stack, second["formats"]["small"]["url"]).content) == (500, 375)
    told = upload(ada, query=query, fileInfo='{"name":"c.png","alternativeText":"A face"}')
    assert (told["name"], told["alternativeText"], told["caption"]) == ("c.png", "A face", "Me")
    assert upload(bob, query=query, status=404, fileInfo='{"name":"mine"}')["message"] == "file.notFound"
    assert ada.ask("DELETE", f"/api/upload/files/{first['id']}", 200)["id"] == first["id"]
    assert ada.get("/api/upload/files") == []


def docx(text: str) -> bytes:
    """The least that a word processor opens."""
    kinds = "http://schemas.openxmlformats.org/package/2006/content-types"
    words = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    links = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("[Content_Types].xml", f'<Types xmlns="{kinds}"><Default Extension="rels" ContentType='
                      '"application/vnd.openxmlformats-package.relationships+xml"/>'
                      f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>')
        file.writestr("_rels/.rels", f'<Relationships xmlns="{links}"><Relationship Id="r1" Type="{office}" '
                      'Target="word/document.xml"/></Relationships>')
        file.writestr("word/document.xml", f'<w:document xmlns:w="{words}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r>'
                      '</w:p></w:body></w:document>')
    return content.getvalue()


@pytest.mark.parametrize(("name", "content", "way"), [
    ("cv.pdf", curriculum_vitae("Ada"), "inline"),
    ("face.png", png(300, 200), "inline"),
    ("cv.docx", docx("Ada Lovelace, engineer"), "attachment"),
    ("cv.rtf", b"{\\rtf1\\ansi Ada Lovelace, engineer}", "attachment"),
    ("cv.txt", b"Ada Lovelace\nWrites 1 < 2 and <b> for a living.\n" * 9, "attachment"),
], ids=["pdf", "png", "docx", "rtf", "txt"])
def test_only_what_a_browser_shows_safely_is_shown(
    stack: Stack, person: NewPerson, name: str, content: bytes, way: str
) -> None:
    file = upload(person("ada"), (name, content, "text/html"))[0]
    answer = fetch(stack, file["url"])
    assert answer.headers["Content-Disposition"].startswith(f"{way};")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "html" not in answer.headers["Content-Type"] and answer.headers["Content-Type"].split(";")[0] == file["mime"]


def test_a_cv_is_nobody_elses(stack: Stack, person: NewPerson) -> None:
    """The tutorial's CVs are public to who has ever seen their address."""
    ada, representative, eve = person("ada"), person("rep"), person("eve")
    representative.create_company(f"Company {new_word()}")
    eve.create_company(f"Company {new_word()}")
    posting = representative.publish(f"Engineer {new_word()}")["id"]
    content = curriculum_vitae(ada.username)
    application = ada.apply(posting, content)
    cv = application["cv"]["id"]
    path = f"/api/upload/files/{cv}"
    until(lambda: ada.application(application["id"])["cv"]["state"] == "ready", "the CV has been looked at")
    shown = ada.application(application["id"])["cv"]
    assert set(shown) == {*FIELDS, "state"} and shown["mime"] == "application/pdf"

    url = representative.get(path)["url"]
    answer = fetch(stack, url)
    assert answer.content == content and answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Cache-Control"] == "private, no-store" and "sandbox" in answer.headers[
        "Content-Security-Policy"]
    bare, token = url.split("?")
    mine = upload(eve, ("x.pdf", curriculum_vitae("Eve"), "application/pdf"))[0]["url"]
    for wrong in (bare, f"{bare}?{mine.split('?')[1]}", f"{bare}?{token[:-2]}", f"{bare}x?{token}"):
        fetch(stack, wrong, 404)
    fetch(stack, bare, 404, Authorization=f"Bearer {eve.jwt}")
    fetch(stack, bare, 200, Authorization=f"Bearer {representative.jwt}")
    eve.ask("GET", path, 404)

    for other in (representative, eve):
        other.ask("POST", f"{path}/revoke", 404)
        other.ask("DELETE", path, 404)
    fresh = ada.ask("POST", f"{path}/revoke", 200)["url"]
    fetch(stack, url, 404)
    assert fetch(stack, fresh).content == content
    kept = ada.ask("DELETE", path, 409)["error"]
    assert kept["details"]["location"] == f"/api/applications/{application['id']}"

    # A better one, as long as nobody has decided.
    use = {"ref": "api::application.application", "refId": str(application["id"]), "field": "cv"}
    better = upload(ada, ("better.pdf", curriculum_vitae("Ada B."), "application/pdf"), **use)[0]
    assert ada.application(application["id"])["cv"]["id"] == better["id"]
    fetch(stack, fresh, 404)
    upload(eve, ("evil.pdf", curriculum_vitae("Eve"), "application/pdf"), status=403, **use)
    representative.decide(application["id"], "declined")
    upload(ada, ("late.pdf", curriculum_vitae("Ada C."), "application/pdf"), status=409, **use)


@pytest.mark.skipif(not SHARED.exists(), reason="the files of comparable systems are not on this machine")
@pytest.mark.parametrize(
    ("name", "type", "outcome"),
    [
        ("images/exif_Landscape_6.jpg", "image/jpeg", (1800, 1200, 4)),
        ("images/gen_alpha_1200x800.webp", "image/webp", (1200, 800, 4)),
        ("images/libheif_example.heic", "image/heic", (1280, 854, 4)),
        ("images/pillow_hopper.avif", "image/avif", (128, 128, 0)),
        ("images/pillow_iss634.gif", "image/gif", (245, 245, 1)),
        ("images/gen_size_1001x667.png", "image/png", (1001, 667, 4)),
        ("images/pillow_broken.png", "image/png", None), ("images/gen_truncated_60pct.jpg", "image/jpeg", None),
        ("images/pillow_decompression_bomb.gif", "image/gif", None),
    ],
)
def test_files_of_comparable_systems(
    stack: Stack, person: NewPerson, name: str, type: str, outcome: tuple[int, int, int] | None
) -> None:
    content = (SHARED / name).read_bytes()
    if outcome is None:
        error = upload(person("ada"), (name, content, type), status=400)
        assert error["message"] == "File is not a valid image"
        return
    file = upload(person("ada"), (name, content, type))[0]
    assert (file["width"], file["height"], len(file["formats"] or {})) == outcome
    assert file["mime"] in ("image/jpeg", "image/png", "image/webp")
    for each in [file, *(file["formats"] or {}).values()]:
        answer = fetch(stack, each["url"])
        assert answer.headers["Content-Type"] == each["mime"]
        assert each["size"] == kilobytes(answer.content)
        assert b"Exif\0" not in answer.content
