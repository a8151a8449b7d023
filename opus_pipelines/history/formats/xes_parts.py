"""Cuts a XES log into parts that are logs themselves, at the beginning of traces, for readers on several machines.

The first part has the head of the log, the others its start tag alone, because no trace depends on the rest; then come
whole traces and the end of the log. A part says how many events stand before it.
"""

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

_TRACE_TAG = re.compile(rb"<trace[\s>/]")
_TRACE_NEXT = re.compile(rb"\s*<trace[\s>/]")
_EVENT_TAG = re.compile(rb"<event[\s>/]")
_BETWEEN_TRACES = re.compile(rb"</trace>(?!\s*<trace[\s>/]|\s*\Z)")
_ENCODING = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)")
_LOG = re.compile(rb"<log(?:\s[^>]*)?>")
_TRACE_END_TAG, _LOG_END = b"</trace>", b"</log>"
_LARGEST_HEAD, _LARGEST_PART = 1 << 24, 1 << 26


class CannotCut(Exception):
    """The log cannot be cut safely: it has to be read whole. The message says why."""


class LogPart(NamedTuple):
    """The bytes of a part, and the number of events before it."""

    content: bytes
    skipped: int


def parts_of(open_file: Callable[[], BinaryIO], size: int) -> Iterator[LogPart]:
    """Yields the parts of about `size` bytes, in order.

    Raises CannotCut, possibly after some parts, where comments, CDATA, an encoding other than UTF-8, something between
    two traces or anything else makes it uncertain that the parts together say what the log says.
    """
    head: bytes | None = None
    held, skipped = b"", 0
    with open_file() as file:
        while block := file.read(size):
            held += block
            if head is None:
                head, held = _head(held)
                if head is None:
                    continue
            end = held.rfind(_TRACE_END_TAG) + len(_TRACE_END_TAG)
            if end < len(_TRACE_END_TAG):
                _refuse(len(held) > _LARGEST_PART, "a trace is larger than a part may be")
                continue
            text, held = held[:end], held[end:]
            _check(text)
            yield LogPart(head + text + _LOG_END, skipped)
            tag = _LOG.search(head)
            head = head if tag is None else tag[0]
            skipped += len(_EVENT_TAG.findall(text))
    _refuse(head is None or held.strip() != _LOG_END, "what follows the last trace is not the end of the log alone")


def _head(text: bytes) -> tuple[bytes | None, bytes]:
    """Returns the text before the first trace, None where it is not there yet, and the rest."""
    first = _TRACE_TAG.search(text)
    if first is None:
        _refuse(len(text) > _LARGEST_HEAD, "its head is too long")
        return None, text
    head = text[: first.start()]
    stated = _ENCODING.search(head)
    _refuse(stated is not None and stated[1].lower() != b"utf-8", "it is not in UTF-8")
    _refuse(b"\0" in head, "it is not in UTF-8")
    _refuse(any(mark in head for mark in (b"<!DOCTYPE", b"<![CDATA[")), "its head is not plain")
    _refuse(head.count(b"<!--") != head.count(b"-->"), "its first trace stands in a comment")
    return head, text[first.start() :]


def _check(text: bytes) -> None:
    _refuse(_TRACE_NEXT.match(text) is None, "something stands between two traces")
    _refuse(_BETWEEN_TRACES.search(text) is not None, "something stands between two traces")
    _refuse(b"<!" in text or b"<?" in text, "it has comments, CDATA or instructions between its traces")


def _refuse(is_refused: bool, why: str) -> None:
    if is_refused:
        raise CannotCut(why)
