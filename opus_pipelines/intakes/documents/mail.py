"""E-mail: its head and its text; every attachment becomes a document of its own."""

import re
from contextlib import suppress
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from pathlib import PurePosixPath
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents import html
from opus_pipelines.intakes.documents.document import Document, DocumentText
from opus_pipelines.intakes.documents.encoding import decode
from opus_pipelines.intakes.documents.formats import FORMATS
from opus_pipelines.intakes.documents.limits import MAX_ATTACHMENTS, MAX_HEAD_LINE, MAX_LINES_LOOKED_AT, MAX_MULTIPARTS

_HEAD = ("Subject", "From", "To", "Cc", "Date")
_SUFFIXES = {f.media_type: f.suffix for f in reversed(FORMATS.values()) if f.media_type}
_BOUNDARY = re.compile(rb"boundary\s*=", re.I)
_CONTENT_LINE = re.compile(rb"^content-[a-z-]+:[^\n]*(?:\n[ \t][^\n]*)*", re.I | re.M)


def read(document: Document) -> DocumentText:
    """Subject, sender, receivers and date, then the text: the plain version, or the HTML where that says more."""
    data = document.content()
    _refuse_endless(data)
    message = message_from_bytes(
        data
    )  # the default policy: the modern one parses heads in quadratic time, and by recursion
    if not message.keys():
        raise InputError("it is no e-mail: it has no head")
    mail = _Mail(document.depth)
    head = [f"{name}: {line}" for name in _HEAD if (line := mail.head_line(message, name))]
    mail.take(message)
    text = "\n\n".join(["\n".join(head), *filter(None, mail.texts)])
    return DocumentText(text.strip(), tuple(mail.left_out), tuple(mail.attached))


def _refuse_endless(data: bytes) -> None:
    """Raises InputError on what the standard library's parser would take minutes for."""
    parts = len(_BOUNDARY.findall(data))
    if parts > MAX_MULTIPARTS or parts * data.count(b"\n") > MAX_LINES_LOOKED_AT:
        raise InputError(
            f"the e-mail has {parts:,} parts of parts in {data.count(10):,} lines, more than can be followed"
        )
    if any(len(line[0]) > MAX_HEAD_LINE for line in _CONTENT_LINE.finditer(data)):
        raise InputError(f"a line of its head that describes its content is longer than {MAX_HEAD_LINE:,} characters")


class _Mail:
    """What one message holds."""

    def __init__(self, depth: int) -> None:
        self.texts: list[str] = []
        self.left_out: list[str] = []
        self.attached: list[Document] = []
        self._names: set[str] = set()
        self._depth = depth
        self._dropped = 0

    def head_line(self, message: Any, name: str) -> str:
        """A line of the head, its encoded words decoded where they can be."""
        raw = str(message[name] or "")
        if len(raw) > MAX_HEAD_LINE:
            self.left_out.append(f"the end of its {name} line")
            raw = raw[:MAX_HEAD_LINE]
        with suppress(HeaderParseError, LookupError, ValueError):  # what cannot be decoded is shown as it stands
            raw = str(make_header(decode_header(raw)))
        return " ".join(raw.split())

    def take(self, message: "Message[str, str]") -> None:
        """Walk the parts in order, without recursion."""
        stack: list[Any] = [message]
        while stack:
            part = stack.pop()
            if part.get_content_type() == "multipart/alternative":
                self._alternatives(_parts(part), stack)
            elif part.is_multipart() and part.get_content_maintype() == "multipart":
                stack += reversed(_parts(part))
            elif _is_body(part):
                self.texts.append(self._body(part))
            else:
                self._attach(part)
        if self._dropped:
            self.left_out.append(f"the last {self._dropped:,} of {self._dropped + len(self.attached):,} attachments")

    def _alternatives(self, parts: list[Any], stack: list[Any]) -> None:
        """The same text in several forms: the plain one, unless the page says more than twice as much."""
        bodies = {p.get_content_type(): p for p in parts if _is_body(p)}
        plain, html = bodies.get("text/plain"), bodies.get("text/html")
        rest = [p for p in parts if p is not plain and p is not html]
        if html is None or plain is None:
            stack += reversed(parts)
            return
        texts = self._body(plain), self._body(html, quiet=True)
        if 2 * len(texts[0].split()) >= len(texts[1].split()):
            self.texts.append(texts[0])
            self.left_out.append("the HTML version of its text (the plain one was read)")
        else:
            self.texts.append(self._body(html))
            self.left_out.append("the plain version of its text (the HTML one says more and was read)")
        stack += reversed(rest)

    def _body(self, part: Any, quiet: bool = False) -> str:
        payload, charset = part.get_payload(decode=True) or b"", part.get_content_charset()
        if part.get_content_type() == "text/html":
            reading = html.of_html(payload, charset)
            text, said = reading.text or "", reading.left_out
        else:
            text, note = decode(payload, charset)
            said = (note,) if note else ()
        if not quiet:
            self.left_out += said
        return text.strip()

    def _attach(self, part: Any) -> None:
        if len(self.attached) == MAX_ATTACHMENTS:
            self._dropped += 1
            return
        if part.get_content_maintype() == "message" and part.is_multipart():
            data = part.get_payload(0).as_bytes()
            suffix = ".eml"
        else:
            data = part.get_payload(decode=True) or b""
            suffix = _SUFFIXES.get(part.get_content_type(), "")
        self.attached.append(Document.of_bytes(self._name(part, suffix), data, self._depth + 1))

    def _name(self, part: Any, suffix: str) -> str:
        """The last segment of what the e-mail calls it, which may be a path: a label, never a place. Unique in the
        e-mail.
        """
        stated = re.split(r"[/\\]", str(part.get_filename() or ""))[-1].strip()
        name = stated if stated not in ("", ".", "..") else f"attachment-{len(self.attached) + 1}{suffix}"
        if suffix == ".eml" and not name.lower().endswith(".eml"):
            name += suffix
        path, number, unique = PurePosixPath(name), 1, name
        while unique in self._names:
            number += 1
            unique = f"{path.stem} ({number}){path.suffix}"
        self._names.add(unique)
        return unique


def _parts(part: Any) -> list[Any]:
    """The parts of a multipart; one that claims to be one and is not has none."""
    return part.get_payload() if part.is_multipart() else []


def _is_body(part: Any) -> bool:
    is_text = part.get_content_type() in ("text/plain", "text/html")
    return is_text and part.get_content_disposition() != "attachment" and not part.get_filename()
