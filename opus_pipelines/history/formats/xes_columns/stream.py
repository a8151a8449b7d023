"""Splits the stream of a XES file: plain traces are read by columns, everything else goes through the parser.

The parser receives the file without the plain traces. These are whole, balanced elements at positions where the parser
reports that a trace would be a direct child of the log. What the parser receives is therefore well-formed if and only
if the file is.
"""

from collections.abc import Callable
from secrets import token_hex
from typing import Any, BinaryIO, Protocol

from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.safe_text import SAFE_XML
from opus_pipelines.history.formats.whole_file import broken_xml, refuse_doctype
from opus_pipelines.history.formats.xes_columns.scan import PADDING

_BLOCK = 1 << 22  # bytes that are read at once
_LARGEST = 1 << 24  # a trace that is longer is read as it comes
SMALLEST = 1 << 16  # traces that are not all plain are parted down to this
_BEGIN, _END = b"<trace>", b"</trace>"


class TraceReader(Protocol):
    """The receiver of the traces."""

    def plain(self, text: bytes) -> bool:
        """Reads whole traces, padded. Returns False if they are not plain."""

    def trace(self, element: Any) -> None:
        """Reads a trace from the parser."""

    def stray(self, element: Any) -> None:
        """Handles an event outside of every trace."""


def read_stream(
    open_file: Callable[[], BinaryIO], reader: TraceReader, block: int = _BLOCK, smallest: int = SMALLEST
) -> None:
    """Passes every trace to `reader`, in the order of the file; the sizes, in bytes, change nothing else.

    Raises InputError if the XML is malformed or no log.
    """
    try:
        with open_file() as file:
            stream = _Stream(reader, smallest)
            _cut(file, stream, block)
            stream.close()
    except etree.XMLSyntaxError as error:
        raise broken_xml(_place(open_file) or error) from None


def _cut(file: BinaryIO, stream: "_Stream", size: int) -> None:
    held = b""
    while block := file.read(size):
        held += block
        start = held.find(_BEGIN)
        end = held.rfind(_END) + len(_END)
        if start < 0:
            start = max(0, len(held) - len(_BEGIN) + 1)  # the beginning of a trace may be cut off
            end = start
        stream.feed(held[:start])
        if start + len(_BEGIN) < end:
            stream.traces(held[start:end])
            start = end
        held = held[start:]
        if len(held) > _LARGEST:
            stream.feed(held)
            held = b""
    stream.feed(held)


def _place(open_file: Callable[[], BinaryIO]) -> etree.XMLSyntaxError | None:
    """Returns the error with its position in the whole file, because the parser did not count what was cut out."""
    stream = _Stream(_NullReader())
    try:
        with open_file() as file:
            while block := file.read(_BLOCK):
                stream.feed(block)
        stream.close()
    except etree.XMLSyntaxError as error:
        return error
    except InputError:
        pass  # it is no log either, but the error to report is the syntax error
    return None


class _NullReader:
    """A receiver that ignores everything."""

    def plain(self, text: bytes) -> bool:
        return False

    def trace(self, element: Any) -> None: ...

    def stray(self, element: Any) -> None: ...


class _Stream:
    def __init__(self, reader: TraceReader, smallest: int = SMALLEST) -> None:
        self._reader, self._smallest = reader, smallest
        self._parser = etree.XMLPullParser(events=("start", "end"), tag=("{*}log", "{*}trace"), **SAFE_XML)
        self._log: Any = None
        self._done: Any = None
        self._mark = f"mark-{token_hex(16)}"  # no file can have it
        self._between = False  # is the parser known to be directly inside the log?

    def feed(self, text: bytes) -> None:
        """Passes text to the parser."""
        if text and not (self._between and not text.strip()):
            self._between = False
            self._parser.feed(text)
            self._take()

    def traces(self, text: bytes) -> None:
        """Passes on text from the beginning of a trace to the end of one."""
        if self._is_between() and self._reader.plain(text.rstrip() + bytes(PADDING)):
            return
        middle = text.find(_BEGIN, len(text) // 2) if len(text) > self._smallest else -1
        if middle > 0 and self._between:
            self.traces(text[:middle])
            self.traces(text[middle:])
        else:
            self.feed(text)

    def close(self) -> None:
        """Ends the file."""
        root = self._parser.close()
        self._take()
        refuse_doctype(root)
        if self._log is None or etree.QName(root).localname != "log":
            raise InputError("it is no event log: the XML has no <log>")
        for element in root.iterchildren("{*}event"):
            self._reader.stray(element)

    def _is_between(self) -> bool:
        """Tells, with a marker element, whether a trace at this point would be a direct child of the log."""
        if not self._between and self._log is not None and self._is_plain_log():
            before = self._done
            self._parser.feed(f'<trace {self._mark}=""/>'.encode())
            self._take()
            self._between = self._done is not before and self._done.getparent() is self._log
        return self._between

    def _is_plain_log(self) -> bool:
        known = self._log.getroottree().docinfo.encoding in (None, "UTF-8", "utf-8")
        return known and self._log.getparent() is None and etree.QName(self._log).localname == "log"

    def _take(self) -> None:
        events: Any = self._parser.read_events()
        for event, element in events:
            if self._log is None:
                refuse_doctype(element)
                self._log = element
            if event == "end" and element is not self._log:
                if element.get(self._mark) is None:
                    self._reader.trace(element)
                self._forget(element)

    def _forget(self, element: Any) -> None:
        element.clear()
        if self._done is not None and (parent := self._done.getparent()) is not None:
            parent.remove(self._done)
        self._done = element
