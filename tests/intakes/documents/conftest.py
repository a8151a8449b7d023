"""Real documents for the tests of the readers, made by the libraries that people's programs use, and by hand where
those cannot.

The fixtures are functions; they are of the session, so that Hypothesis takes them too.
"""

import io
import zipfile
from email.message import EmailMessage
from typing import Any

import pytest

from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.formats import preprocess


@pytest.fixture(scope="session")
def read() -> Any:
    """(name, bytes or text) to the text of a document and what was left out of it."""

    def of(name: str, data: bytes | str) -> Any:
        _, reading = preprocess(Document.of_bytes(name, data if isinstance(data, bytes) else data.encode()))
        return reading.text, "; ".join(reading.left_out) or None

    return of


@pytest.fixture(scope="session")
def saved() -> Any:
    """The bytes of a document, workbook or presentation."""

    def of(thing: Any) -> Any:
        stream = io.BytesIO()
        thing.save(stream)
        return stream.getvalue()

    return of


@pytest.fixture(scope="session")
def repacked() -> Any:
    """A zip package with parts replaced or added."""

    def of(package: bytes, parts: dict[str, Any]) -> Any:
        out = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                if name not in parts:
                    new.writestr(name, old.read(name))
            for name, data in parts.items():
                new.writestr(name, data)
        return out.getvalue()

    return of


@pytest.fixture(scope="session")
def pdf() -> Any:
    """A PDF whose pages show these texts, a line a line; an empty text makes a page without any. `extra`: one more
    object.
    """
    return _pdf


def _pdf(*pages: Any, extra: str = "", root: str = "") -> Any:
    places = range(4, 4 + 2 * len(pages), 2)
    bodies = [
        f"<< /Type /Catalog /Pages 2 0 R {root}>>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{n} 0 R' for n in places)}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for place, text in zip(places, pages, strict=True):
        shown = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET" if text else "0 0 m 9 9 l S"
        fonts = "/Resources << /Font << /F1 3 0 R >> >>"
        bodies.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {fonts} /Contents {place + 1} 0 R >>")
        bodies.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    bodies += [extra] if extra else []
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    tail = (
        f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\n"
    )
    return out + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode()


@pytest.fixture(scope="session")
def mail() -> Any:
    """An e-mail's bytes; attachments are (name, bytes)."""

    def of(
        text: str = "See the file.",
        html: str | None = None,
        attachments: list[Any] | tuple[Any, ...] = (),
        subject: str = "Broken windscreen",
    ) -> Any:
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = subject, "Ann <ann@client.example>", "claims@bpo.example"
        message.set_content(text)
        if html:
            message.add_alternative(html, subtype="html")
        for name, data in attachments:
            message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
        return message.as_bytes()

    return of
