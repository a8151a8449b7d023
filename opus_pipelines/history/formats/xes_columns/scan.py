"""Finds the plain part of a XES log without an XML parser: traces in the form in which nearly all logs are written.

    <trace> <string key="..." value="..."/> ... <event> <date key="..." value="..."/> ... </event> ... </trace>

Text that is accepted here is well-formed XML that lxml reads in the same way. Anything unusual - other elements or
attributes, nesting, comments, single quotes, line ends inside values, entities beyond the predefined ones - gives None,
and the caller then uses the parser.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from opus_pipelines.history.columns.values import Coded
from opus_pipelines.history.records.arrow_arrays import Bools, Ints, array, booleans, indices, numbers, strings

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

    def lengths(self) -> Ints:
        """Returns the number of bytes of every value as written."""
        offsets = np.frombuffer(self._texts.buffers()[1], np.int32)
        return offsets[3::4] - offsets[2:-1:4]


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
