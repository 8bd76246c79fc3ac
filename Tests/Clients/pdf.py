"""A small PDF made by hand, so that the tests need no library and know every byte."""


def pdf(pages: list[list[str]]) -> bytes:
    """A PDF 1.4 file with one page for each list of lines; the text is Latin-1."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = b" T* ".join(b"(" + escaped(line) + b") Tj" for line in lines)
        content = b"BT /F1 12 Tf 14 TL 72 720 Td " + shown + b" ET"
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        resources = b"<< /Font << /F1 3 0 R >> >>"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources %s /Contents %d 0 R >>"
            % (resources, len(objects))
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))

    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def escaped(line: str) -> bytes:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("latin-1")


def curriculum_vitae(name: str) -> bytes:
    """A CV of two pages."""
    return pdf([[name, "Swift engineer, ten years of servers (Linux)"], ["Page two: references on request"]])
