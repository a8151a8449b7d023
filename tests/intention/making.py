"""Real documents for the tests of the readers, made by the libraries that people's programs use, and by hand where those cannot."""

import io
import zipfile
from email.message import EmailMessage
from pathlib import Path

from opus_pipelines.intention.readers.document import Document
from opus_pipelines.intention.readers.preprocess import preprocess


def read(name, data):
    """The text of a document and what was left out of it."""
    _, reading = preprocess(Document.of_bytes(name, data if isinstance(data, bytes) else data.encode()))
    return reading.text, "; ".join(reading.left_out) or None


def saved(thing):
    """The bytes of a document, workbook or presentation."""
    stream = io.BytesIO()
    thing.save(stream)
    return stream.getvalue()


def pdf(*pages, extra="", root=""):
    """A PDF whose pages show these texts, a line a line; an empty text makes a page without any."""
    bodies = [
        f"<< /Type /Catalog /Pages 2 0 R {root}>>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(len(pages)))}] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for n, text in enumerate(pages):
        shown = " ".join(f"({line}) Tj T*" for line in text.split("\n")) if text else ""
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET" if text else "0 0 m 9 9 l S"
        resources = "<< /Font << /F1 3 0 R >> >>"
        bodies.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {resources} /Contents {5 + 2 * n} 0 R >>")
        bodies.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    if extra:
        bodies.append(extra)
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    tail = f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\n"
    return out + f"{tail}startxref\n{len(out)}\n%%EOF\n".encode()


def mail(text="See the file.", html=None, attachments=(), subject="Broken windscreen"):
    """An e-mail's bytes; attachments are (name, bytes) or a whole message."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "ann@client.example", "claims@bpo.example"
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    for attached in attachments:
        if isinstance(attached, EmailMessage):
            message.add_attachment(attached)
        else:
            name, data = attached
            message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def repacked(package, **changed):
    """A zip package with parts replaced or added: `part={name: bytes}`; None takes one away."""
    parts = changed["part"]
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name not in parts:
                new.writestr(name, old.read(name))
        for name, data in parts.items():
            if data is not None:
                new.writestr(name, data)
    return out.getvalue()


def put(folder, name, data):
    """A file of a folder, its bytes or text written."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path
