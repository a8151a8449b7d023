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
from opus_pipelines.intakes.documents.document import (
    MAX_ATTACHMENTS,
    MAX_HEAD_LINE,
    MAX_LINES_SCANNED,
    MAX_MULTIPARTS,
    Document,
    DocumentText,
    decode,
)
from opus_pipelines.intakes.documents.formats import FORMATS
from opus_pipelines.intakes.visibility.unseen import Unseen

_HEAD = ("Subject", "From", "To", "Cc", "Date")
_SUFFIXES = {f.media_type: f.suffix for f in reversed(FORMATS.values()) if f.media_type}
_BOUNDARY = re.compile(rb"boundary\s*=", re.I)
_CONTENT_LINE = re.compile(rb"^content-[a-z-]+:[^\n]*(?:\n[ \t][^\n]*)*", re.I | re.M)


def read(document: Document) -> DocumentText:
    """Returns subject, sender, receivers and date, where the document's `asides` have the subject, then the text.

    The text is the plain version where it says the same as what a person sees of the HTML version, which e-mail
    programs show; else it is the HTML version. Raises InputError where the document is no e-mail.
    """
    data = document.content()
    _refuse_endless(data)
    message = message_from_bytes(
        data
    )  # the default policy: the modern one parses heads in quadratic time, and by recursion
    if not message.keys():
        raise InputError("it is no e-mail: it has no head")
    mail = _Mail(document)
    head = [f"{name}: {line}" for name in _HEAD if (line := mail.head_line(message, name))]
    unseen = Unseen(document.asides)
    kept = head and unseen.keeps("subject", head[0])
    mail.take(message)
    text = "\n\n".join(["\n".join(head) if kept else "", *filter(None, mail.texts)])
    return DocumentText(text.strip(), (*unseen.notes, *mail.left_out), tuple(mail.attached))


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

    def __init__(self, document: Document) -> None:
        self.texts: list[str] = []
        self.left_out: list[str] = []
        self.attached: list[Document] = []
        self._names: set[str] = set()
        self._depth, self._asides = document.depth, document.asides
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
        """Reads one of several forms of the same text: the plain one, unless the HTML one shows something else."""
        bodies = {p.get_content_type(): p for p in parts if _is_body(p)}
        plain, html = bodies.get("text/plain"), bodies.get("text/html")
        rest = [p for p in parts if p is not plain and p is not html]
        if html is None or plain is None:
            stack += reversed(parts)
            return
        before = len(self.left_out)
        shown = self._body(html)
        if _words(self._body(plain, quiet=True)) == _words(shown):
            del self.left_out[before:]
            self.texts.append(self._body(plain))
            self.left_out.append("the HTML version of its text (the plain one was read)")
        else:
            self.texts.append(shown)
            self.left_out.append("the plain version of its text (e-mail programs show the HTML one, which differs)")
        stack += reversed(rest)

    def _body(self, part: Any, quiet: bool = False) -> str:
        payload, charset = part.get_payload(decode=True) or b"", part.get_content_charset()
        if part.get_content_type() == "text/html":
            reading = html.of_html(payload, charset, self._asides)
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
        self.attached.append(Document.of_bytes(self._name(part, suffix), data, self._depth + 1, self._asides))

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


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _parts(part: Any) -> list[Any]:
    """Returns the parts of a multipart, none where the part only claims to be one."""
    return part.get_payload() if part.is_multipart() else []


def _is_body(part: Any) -> bool:
    is_text = part.get_content_type() in ("text/plain", "text/html")
    return is_text and part.get_content_disposition() != "attachment" and not part.get_filename()
