"""Reads e-mail: its head and its text. Every attachment becomes a document of its own."""

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
from opus_pipelines.intakes.documents.limits import MAX_ATTACHMENTS, MAX_HEAD_LINE, MAX_LINES_SCANNED, MAX_MULTIPARTS

_HEAD = ("Subject", "From", "To", "Cc", "Date")
_SUFFIXES = {f.media_type: f.suffix for f in reversed(FORMATS.values()) if f.media_type}
_BOUNDARY = re.compile(rb"boundary\s*=", re.I)
_CONTENT_LINE = re.compile(rb"^content-[a-z-]+:[^\n]*(?:\n[ \t][^\n]*)*", re.I | re.M)


def read(document: Document) -> DocumentText:
    """Returns subject, sender, receivers and date, then the text.

    The text is the plain version, or the HTML version where that has more than twice as many words. Raises InputError
    where the document is no e-mail.
    """
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
    """Raises InputError on input for which the standard library's parser would take minutes."""
    parts = len(_BOUNDARY.findall(data))
    if parts > MAX_MULTIPARTS or parts * data.count(b"\n") > MAX_LINES_SCANNED:
        raise InputError(
            f"the e-mail has {parts:,} parts of parts in {data.count(10):,} lines, more than can be followed"
        )
    if any(len(line[0]) > MAX_HEAD_LINE for line in _CONTENT_LINE.finditer(data)):
        raise InputError(f"a line of its head that describes its content is longer than {MAX_HEAD_LINE:,} characters")


class _Mail:
    """Collects the content of one message."""

    def __init__(self, depth: int) -> None:
        self.texts: list[str] = []
        self.left_out: list[str] = []
        self.attached: list[Document] = []
        self._names: set[str] = set()
        self._depth = depth
        self._dropped = 0

    def head_line(self, message: Any, name: str) -> str:
        """Returns a line of the head, with its encoded words decoded where that is possible."""
        raw = str(message[name] or "")
        if len(raw) > MAX_HEAD_LINE:
            self.left_out.append(f"the end of its {name} line")
            raw = raw[:MAX_HEAD_LINE]
        with suppress(HeaderParseError, LookupError, ValueError):  # what cannot be decoded is shown as it stands
            raw = str(make_header(decode_header(raw)))
        return " ".join(raw.split())

    def take(self, message: "Message[str, str]") -> None:
        """Walks over the parts in order, without recursion."""
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
        """Reads one of several forms of the same text: the plain one, unless HTML has more than twice the words."""
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
            text, left_out = reading.text or "", reading.left_out
        else:
            text, note = decode(payload, charset)
            left_out = (note,) if note else ()
        if not quiet:
            self.left_out += left_out
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
        """Returns a name that is unique in the e-mail, from the last segment of the stated name.

        The stated name may be a path; it serves as a label only, never as a place on the disk.
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
    """Returns the parts of a multipart, none where the part only claims to be one."""
    return part.get_payload() if part.is_multipart() else []


def _is_body(part: Any) -> bool:
    is_text = part.get_content_type() in ("text/plain", "text/html")
    return is_text and part.get_content_disposition() != "attachment" and not part.get_filename()
