"""Reads XES event logs (IEEE 1849) as a stream, with one trace in memory at a time.

A record is an event, and its position counts from 1. A file with a document type is refused, because no log needs one
and entity attacks require one.

Plain traces are read by columns, whole blocks of them at a time; everything else goes through the XML parser, which
receives the file without the plain traces. These are whole, balanced elements at positions where the parser reports
that a trace would be a direct child of the log. What the parser receives is therefore well-formed if and only if the
file is. A plain trace has the form in which nearly all logs are written:

    <trace> <string key="..." value="..."/> ... <event> <date key="..." value="..."/> ... </event> ... </trace>

Text that counts as plain is well-formed XML that lxml reads in the same way. Anything unusual - other elements or
attributes, nesting, comments, single quotes, line ends inside values, entities beyond the predefined ones - is left to
the parser, and what a column cannot decide to the reading by records.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import SAFE_XML
from opus_pipelines.core.ids import canonical
from opus_pipelines.history.columns.cases import CaseBlocks, Maps, TooLongError, UndecidedError
from opus_pipelines.history.columns.values import NO_TIME, Coded, Level, UnusualError, filled_cells, microseconds
from opus_pipelines.history.formats.whole_file import broken_xml, refuse_doctype, with_plain_namespaces
from opus_pipelines.history.records import values
from opus_pipelines.history.records.arrow_arrays import Bools, Ints, array, booleans, indices, numbers, strings
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.column_mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.records.raw import Case, Cause
from opus_pipelines.history.records.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.records.values import BadValueError, TimeParser

PADDING = 16  # bytes that may be looked at beyond the last
_STRIDE = 1 << 18
_LONGEST = 1 << 20  # a longer value may be too long for the parser
_GAP = 32  # longest white space between two elements
_ATTRIBUTE, _TRACE, _TRACE_END, _EVENT, _EVENT_END = range(5)
_FOLLOWS = {
    (_TRACE, _EVENT),
    (_TRACE, _TRACE_END),
    (_EVENT, _EVENT_END),
    (_EVENT_END, _EVENT),
    (_EVENT_END, _TRACE_END),
    (_TRACE_END, _TRACE),
}
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


@dataclass
class Scanned:
    """Scanned plain traces. Attributes are in the order of the file; `event` is -1 for those of a trace."""

    traces: int
    event_trace: Ints  # of each event: its trace
    trace: Ints  # of each attribute
    event: Ints
    _texts: pa.Array  # four an attribute: key, what follows it, value, what follows it
    _values: pa.Array | None = field(default=None)  # set if some values differ from the text as written

    def keys(self) -> pa.Array:
        """Returns the key of every attribute."""
        return self._texts.take(array(np.arange(0, len(self._texts), 4, dtype=np.int32), pa.int32()))

    def values(self, attributes: Ints) -> pa.Array:
        """Returns the values of attributes by their positions. A negative position gives NULL."""
        if self._values is not None:
            return self._values.take(indices(attributes))
        return self._texts.take(indices(attributes * np.int32(4) + np.int32(2)))

    def coded(self, attributes: Ints) -> Coded:
        """Returns the values of attributes in dictionary encoding."""
        known = np.flatnonzero(attributes >= 0)
        texts = self.values(attributes[known]).dictionary_encode()
        codes = np.full(len(attributes), -1, np.int32)
        codes[known] = numbers(texts.indices, np.int32)
        return Coded(codes, texts.dictionary)

    def replace(self, attributes: Ints, texts: pa.Array) -> None:
        """Replaces the values of attributes. Their positions must ascend."""
        every = self.values(np.arange(len(self.trace), dtype=np.int32))
        marked: Bools = np.zeros(len(self.trace), bool)
        marked[attributes] = True
        self._values = pa.compute.replace_with_mask(every, booleans(marked), texts)

    def telling(self) -> Bools:
        """Tells which values say something."""
        offsets = np.frombuffer(self._texts.buffers()[1], np.int32)
        starts = offsets[2:-1:4]
        return filled_cells(
            offsets[3::4] - starts,
            starts,
            self._texts.buffers()[2],
            lambda places: self.values(places.astype(np.int32)).to_pylist(),
        )


def scan(padded: bytes) -> Scanned | None:
    """Scans `padded`, which must end with `PADDING` zero bytes.

    Returns None unless it contains whole plain traces only.
    """
    size = len(padded) - PADDING
    text = np.frombuffer(padded, np.uint8, size)
    places, low = _marks(text)
    if not len(places) or places[0]:
        return None
    opening = np.flatnonzero(text[places] == ord("<"))
    marks = np.diff(opening, append=len(places))
    is_attribute = marks == 5
    if not (is_attribute | (marks == 1)).all():
        return None
    starts = places[opening]
    quotes = places[(opening[is_attribute][:, None] + np.arange(1, 5)).ravel()].reshape(-1, 4)
    tags = _tags(padded, starts[~is_attribute])
    ends = _attribute_ends(padded, starts[is_attribute], quotes)
    if tags is None or ends is None:
        return None
    kinds = np.zeros(len(starts), np.uint8)
    kinds[~is_attribute] = tags
    all_ends = np.empty(len(starts), np.int32)
    all_ends[is_attribute] = ends
    all_ends[~is_attribute] = starts[~is_attribute] + np.where((tags == _TRACE) | (tags == _EVENT), 7, 8)
    if all_ends[-1] != size or not _only_space(padded, all_ends[:-1], starts[1:], low) or not _is_text(padded):
        return None
    return _placed(padded, quotes, kinds, tags)


def _marks(text: npt.NDArray[np.uint8]) -> tuple[Ints, int]:
    """Returns the positions of every `<` and quotation mark, and the number of control characters."""
    positions, low = [], 0
    for start in range(0, len(text), _STRIDE):
        part = text[start : start + _STRIDE]
        low += int(np.count_nonzero(part < 32))
        positions.append(np.flatnonzero((part == ord("<")) | (part == ord('"'))).astype(np.int32) + np.int32(start))
    return np.concatenate(positions) if positions else np.empty(0, np.int32), low


def _words(padded: bytes, kind: str) -> npt.NDArray[Any]:
    """Returns the text as little-endian numbers, one that starts at every byte."""
    width = np.dtype(kind).itemsize
    return np.ndarray((len(padded) - width + 1,), kind, padded, 0, (1,))


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_TYPES = [
    (_word(head[:8]), _word(head[-8:]), len(head))
    for head in (
        b"<string key=",
        b"<date key=",
        b"<int key=",
        b"<float key=",
        b"<boolean key=",
        b"<id key=",
    )
]
_BETWEEN = _word(b'" value=')
_TAGS = [
    (_word(tag), _word(b"\xff" * len(tag)), kind)
    for tag, kind in (
        (b"<trace>", _TRACE),
        (b"</trace>", _TRACE_END),
        (b"<event>", _EVENT),
        (b"</event>", _EVENT_END),
    )
]


def _tags(padded: bytes, starts: Ints) -> npt.NDArray[np.uint8] | None:
    words = _words(padded, "<u8")[starts]
    kinds = np.zeros(len(starts), np.uint8)
    for word, mask, kind in _TAGS:
        kinds[(words & mask) == word] = kind
    if not len(kinds) or not kinds.all() or kinds[0] != _TRACE or kinds[-1] != _TRACE_END:
        return None
    follows = np.zeros((5, 5), bool)
    for before, after in _FOLLOWS:
        follows[before, after] = True
    return kinds if follows[kinds[:-1], kinds[1:]].all() else None


def _attribute_ends(padded: bytes, starts: Ints, quotes: npt.NDArray[np.int32]) -> Ints | None:
    """Returns where each attribute ends, or None if one is not `<type key="..." value="..."/>`."""
    words = _words(padded, "<u8")
    first, heads, last = words[starts], quotes[:, 0] - starts, words[np.maximum(quotes[:, 0] - 8, 0)]
    good = np.zeros(len(starts), bool)
    for head, tail, length in _TYPES:
        good |= (first == head) & (last == tail) & (heads == length)
    good &= (words[quotes[:, 1]] == _BETWEEN) & (quotes[:, 2] - quotes[:, 1] == 8)
    good &= (quotes[:, 3] - quotes[:, 2] < _LONGEST) & (quotes[:, 1] - quotes[:, 0] < _LONGEST)
    behind = _words(padded, "<u4")[quotes[:, 3] + 1]
    short, spaced = (behind & 0xFFFF) == 0x3E2F, (behind & 0xFFFFFF) == 0x3E2F20
    if not (good & (short | spaced)).all():
        return None
    return quotes[:, 3] + np.where(short, np.int32(3), np.int32(4))


def _only_space(padded: bytes, starts: Ints, ends: Ints, low: int) -> bool:
    """Tells whether only white space is between the elements, and control characters are nowhere else."""
    lengths = ends - starts
    if len(lengths) and (lengths.min() < 0 or lengths.max() > _GAP):
        return False
    words, counted = _words(padded, "<u8"), 0
    while len(starts):
        here = np.minimum(lengths, 8)
        rest = words[np.minimum(starts, len(words) - 1)] & _MASKS[here]
        rest = rest[rest != 0]
        for _ in range(64):
            if not len(rest):
                break
            pattern = int(rest[0]).to_bytes(8, "little").rstrip(b"\0")
            if pattern.strip(b" \t\r\n"):
                return False
            same = rest == rest[0]
            counted += int(np.count_nonzero(same)) * sum(c != 32 for c in pattern)
            rest = rest[~same]
        if len(rest):
            return False
        more = lengths > 8
        starts, lengths = starts[more] + np.int32(8), lengths[more] - 8
    return counted == low


_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def _is_text(padded: bytes) -> bool:
    if padded.isascii():
        return True
    try:
        text = padded.decode()
    except UnicodeDecodeError:
        return False
    return "\ufffe" not in text and "\uffff" not in text  # the two that XML does not allow


def _placed(
    padded: bytes, quotes: npt.NDArray[np.int32], kinds: npt.NDArray[np.uint8], tags: npt.NDArray[np.uint8]
) -> Scanned | None:
    """Assigns each attribute to its trace or event."""
    before = np.cumsum(kinds != _ATTRIBUTE, dtype=np.int32)[kinds == _ATTRIBUTE] - np.int32(1)
    inside = tags[before]
    if (inside == _TRACE_END).any():
        return None
    trace_of_tag = np.cumsum(tags == _TRACE, dtype=np.int32) - np.int32(1)
    event_of_tag = np.cumsum(tags == _EVENT, dtype=np.int32) - np.int32(1)
    offsets = np.empty(4 * len(quotes) + 1, np.int32)
    offsets[:-1] = quotes.ravel()
    offsets[:-1:2] += 1
    offsets[-1] = offsets[-2] if len(quotes) else 0
    texts = pa.Array.from_buffers(pa.string(), 4 * len(quotes), [None, pa.py_buffer(offsets), pa.py_buffer(padded)])
    scanned = Scanned(
        traces=int(np.count_nonzero(tags == _TRACE)),
        event_trace=trace_of_tag[tags == _EVENT],
        trace=trace_of_tag[before],
        event=np.where(inside == _EVENT, event_of_tag[before], np.int32(-1)),
        _texts=texts,
    )
    return scanned if b"&" not in padded else _with_references(padded, quotes, scanned)


def _with_references(padded: bytes, quotes: npt.NDArray[np.int32], scanned: Scanned) -> Scanned | None:
    """Resolves references if all are in values and are predefined or character numbers, else returns None."""
    places = np.flatnonzero(np.frombuffer(padded, np.uint8) == ord("&")).astype(np.int32)
    owners = np.searchsorted(quotes[:, 3], places)
    if (owners == len(quotes)).any() or (quotes[owners, 2] > places).any():
        return None
    marked: Ints = np.unique(owners).astype(np.int32)
    try:
        scanned.replace(marked, strings([_resolved(text) for text in scanned.values(marked).to_pylist()]))
    except ValueError:
        return None
    return scanned


def _resolved(text: str) -> str:
    """Returns `text` with resolved references.

    Raises ValueError for a reference of another kind or no XML character.
    """
    if "&" in _REFERENCE.sub("", text):
        raise ValueError("no such reference")
    return _REFERENCE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return _NAMED[match[1]]
    code = int(match[2]) if match[2] else int(match[3], 16)
    if not (code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF):
        raise ValueError("no character")
    return chr(code)


_BLOCK = 1 << 22  # bytes that are read at once
_HEAD = 1 << 12  # where the log declares its namespaces
_LARGEST = 1 << 24  # a trace that is longer is read as it comes
SMALLEST = 1 << 16  # traces that are not all plain are parted down to this
_BEGIN, _END = b"<trace>", b"</trace>"


def read_stream(
    open_file: Callable[[], BinaryIO], reader: "XesReader", block: int = _BLOCK, smallest: int = SMALLEST
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
    held, block = b"", with_plain_namespaces(file.read(_HEAD)) + file.read(max(0, size - _HEAD))
    while block:
        held += block
        block = file.read(size)
        start = held.find(_BEGIN)
        end = held.rfind(_END) + len(_END)
        if start < 0:
            stream.end_of_traces(is_end=not block)  # what follows may end the log
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
    stream.end_of_traces(is_end=True)
    stream.feed(held)


def _place(open_file: Callable[[], BinaryIO]) -> etree.XMLSyntaxError | None:
    """Returns the error with its position in the whole file, because the parser did not count what was cut out."""
    stream = _Stream(None)
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


class _Stream:
    """`reader` gets the traces; without one the file is only parsed."""

    def __init__(self, reader: "XesReader | None", smallest: int = SMALLEST) -> None:
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
        if self._reader and self._is_between() and self._reader.plain(text.rstrip() + bytes(PADDING)):
            return
        middle = text.find(_BEGIN, len(text) // 2) if len(text) > self._smallest else -1
        if middle > 0 and self._between:
            self.traces(text[:middle])
            self.traces(text[middle:])
        else:
            self.feed(text)

    def end_of_traces(self, is_end: bool) -> None:
        """Passes on the traces that waited for the end of the file; where it is not the end, none wait any more."""
        for text in self._reader.waiting(is_end) if self._reader else ():
            self.traces(text)

    def close(self) -> None:
        """Ends the file."""
        root = self._parser.close()
        self._take()
        refuse_doctype(root)
        if self._log is None or etree.QName(root).localname != "log":
            raise InputError("it is no event log: the XML has no <log>")
        if self._reader:
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
                if self._reader and element.get(self._mark) is None:
                    self._reader.trace(element)
                self._forget(element)

    def _forget(self, element: Any) -> None:
        element.clear()
        if self._done is not None and (parent := self._done.getparent()) is not None:
            parent.remove(self._done)
        self._done = element


_MOST_KEYS = 1 << 14


def levels(scanned: Scanned) -> tuple[Level, Level]:
    """Returns traces and events. Raises UnusualError if a record has a key twice, or an empty key."""
    keys = scanned.keys().dictionary_encode()
    names, codes = keys.dictionary.to_pylist(), numbers(keys.indices, np.int32)
    if len(names) > _MOST_KEYS or "" in names:
        raise UnusualError
    of_event = scanned.event >= 0
    group = (codes * 2 + of_event).astype(np.uint16)
    order = np.argsort(group, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(group, minlength=2 * len(names)))
    filled = scanned.telling()
    traces, events = Level(scanned.traces, {}, scanned), Level(len(scanned.event_trace), {}, scanned)
    for number, (start, end) in enumerate(zip(np.concatenate(([0], ends[:-1])), ends, strict=True)):
        level, owner = (events, scanned.event) if number % 2 else (traces, scanned.trace)
        places = order[start:end]
        owners = owner[places]
        if (owners[1:] == owners[:-1]).any():
            raise UnusualError
        kept = filled[places]
        if kept.any():
            column = np.full(level.rows, -1, np.int32)
            column[owners[kept]] = places[kept]
            level.columns[names[number // 2]] = column
    return traces, events


_CASE_DEFAULTS = {
    "case": "concept:name",
    "title": "title",
    "description": "concept:description",
    "currency": "cost:currency",
}
_EVENT_DEFAULTS = {
    "activity": "concept:name",
    "time": "time:timestamp",
    "transition": "lifecycle:transition",
    "instance": "concept:instance",
    "actor": "org:resource",
    "cost": "cost:total",
    "currency": "cost:currency",
}


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every trace into `sink`. Raises InputError if the XML is malformed or no log."""
    read_stream(open_file, XesReader(settings, sink))


class XesReader:
    """Reads the traces of a log into a sink: plain ones by columns, the others one by one."""

    def __init__(self, settings: SourceSettings, sink: Assembler) -> None:
        columns = settings.columns.model_dump(exclude_none=True, exclude={"attributes"})
        stated_case = {k: v for k, v in columns.items() if k in CaseNames.model_fields or k == "success"}
        stated_event = {k: v for k, v in columns.items() if k in EventNames.model_fields and isinstance(v, str)}
        names = case_names(settings, _CASE_DEFAULTS | stated_case)
        self._id_key = names.pop("case")
        event_names = _EVENT_DEFAULTS | stated_event
        other_meaning = {"title", "description"} - stated_case.keys()  # of a trace's defaults in an event
        own = {name: key for name, key in names.items() if name not in other_meaning}
        self._trace_map = CaseMap(names | {"case": self._id_key}, settings.columns.attributes, sink.money)
        own_map = CaseMap(own, settings.columns.attributes, sink.money)
        self._events = EventMap(event_names, own_map, settings, TimeParser(settings.timezone, settings.time_format))
        self._sink = sink
        self._position = sink.skipped
        self._has_numbers = settings.columns.case is None  # cases without a name are numbered
        self._time_format = settings.time_format
        self._blocks = CaseBlocks(settings, Maps(self._trace_map, own_map, self._events, self._id_key), sink)
        self._by_columns = self._blocks.usable and not self._events.combines
        self._may_wait, self._waiting = True, list[tuple[int, bytes]]()

    def plain(self, padded: bytes) -> bool:
        """Reads whole traces (padded, see `scan`) by columns, or keeps them until the rest of the file is read.

        Returns False, without reading anything, if they must be read one by one.
        """
        try:
            scanned = scan(padded) if self._by_columns else None
            if scanned is None:
                return False
            traces, events = levels(scanned)
            try:
                self._position += self._block(traces, events)
            except UndecidedError:
                if not self._may_wait:
                    return False
                self._waiting.append((self._position, padded))
                self._position += events.rows
        except (UnusualError, TooLongError, BadValueError):
            return False
        return True

    def waiting(self, is_end: bool) -> Iterator[bytes]:
        """Yields the traces that were kept, each at its position of the file; from now on none are kept.

        `is_end`: the file was read to its end.
        """
        kept, self._waiting, self._may_wait = self._waiting, [], False
        self._blocks.is_told, end = is_end, self._position
        for self._position, padded in kept:
            yield padded[:-PADDING]
        self._position = end

    def _block(self, traces: Level, events: Level) -> int:
        for level in (traces, events) if self._sink.redactor.active else ():
            level.redact(self._sink.redactor.flat)
        self._blocks.ids(traces)
        places = events.places(self._events.keys["time"])
        known = places >= 0
        times = np.full(events.rows, NO_TIME, np.int64)
        if known.any():
            texts = events.scanned.values(places[known])
            times[known] = microseconds(texts, self._events.times, plain=not self._time_format)
        return self._blocks.add(traces, events, {"time": times}, self._sink.log_has_work)

    def trace(self, element: Any) -> None:
        """Reads one trace."""
        raw = self._sink.redactor.flat(values.telling(_attributes(element)))
        events = [child for child in element if _is_event(child)]
        case_id = raw.get(self._id_key) or (self._number_of(events) if self._has_numbers else None)
        if not case_id:
            self._reject_all(
                events, "no_case", f"its trace has no {self._id_key}; [columns] case in source.toml names the id"
            )
            return None
        if self._sink.is_repeated(case_id):
            self._position += len(events)  # the source reads the file again and puts the case together
            return None
        fields: dict[str, Any] = {}
        try:
            self._trace_map.collect(fields, raw)
            self._trace_map.collect_attributes(fields, raw)
        except BadValueError as error:
            cause = self._reject_all(events, error.code, f"its trace: {error.reason}", case_id)
            return None if cause is None else self._sink.case(Case(case_id, {}, []), cause)
        case = Case(case_id, fields, [])
        return self._sink.case(case, self._read_events(events, case, self._trace_map.currency(raw)))

    def _number_of(self, events: list[Any]) -> str | None:
        """Returns an id for a trace without a name, which is a case as well: the position of its first event."""
        return f"{self._sink.path}#{self._position + 1}" if events else None

    def stray(self, element: Any) -> None:
        """Rejects an event outside of all traces."""
        self._reject_all([element], "no_case", "the event stands outside every trace")

    def _read_events(self, elements: list[Any], case: Case, currency: Any) -> Cause | None:
        """Adds the usable events to the case, and returns the cause of the first rejected one."""
        cause: Cause | None = None
        is_held = self._sink.is_held(case.case_id)
        for element in elements:
            self._position += 1
            raw = self._sink.redactor.flat(values.telling(_attributes(element)))
            own: dict[str, Any] | None = {} if is_held else None
            try:
                event = self._events.event(raw, self._position, case.fields if own is None else own, currency)
            except BadValueError as error:
                rejected = self._sink.reject(self._position, error.code, error.reason, canonical(raw), case.case_id)
                cause = cause or rejected
            else:
                event.fields = own
                case.events.append(event)
        return cause

    def _reject_all(self, elements: list[Any], code: str, reason: str, case_id: str | None = None) -> Cause | None:
        """Rejects every event, and returns the cause of the first."""
        cause: Cause | None = None
        for element in elements:
            self._position += 1
            record = canonical(self._sink.redactor.flat(_attributes(element)))
            rejected = self._sink.reject(self._position, code, reason, record, case_id)
            cause = cause or rejected
        return cause


def _is_event(element: Any) -> bool:
    tag = element.tag
    return isinstance(tag, str) and tag.rpartition("}")[2] == "event"


def _attributes(element: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the attributes of an element by key. A nested attribute has the key of its parent as a prefix."""
    attributes: dict[str, Any] = {}
    for child in element:
        key, value = child.get("key"), child.get("value")
        if key is None:
            if len(child) and isinstance(child.tag, str) and child.tag.rpartition("}")[2] == "values":
                attributes |= _attributes(child, prefix)
            continue
        if value is not None:
            attributes[prefix + key] = value
        if len(child):
            attributes |= _attributes(child, f"{prefix}{key}.")
    return attributes
