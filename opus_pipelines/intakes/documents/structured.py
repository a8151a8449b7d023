"""Reads JSON, JSON Lines and XML as lines of `path: value`."""

import json
from collections.abc import Iterator
from typing import Any

from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import SAFE_XML
from opus_pipelines.intakes.documents import html
from opus_pipelines.intakes.documents.document import (
    MAX_CHARACTERS,
    MAX_LINE,
    MAX_ROWS,
    MAX_TREE_BYTES,
    MAX_VALUES,
    Document,
    DocumentText,
    counted,
    decode,
    lines,
    open_text,
)
from opus_pipelines.intakes.documents.tables import beyond


class Pairs(tuple[tuple[str, Any], ...]):
    """A JSON object as all its pairs, so that a repeated name loses no value."""


def read_json(document: Document) -> DocumentText:
    """Returns every value with its path. Values beyond the limit are counted."""
    text, note = decode(document.content(MAX_TREE_BYTES))
    try:
        value = json.loads(text, object_pairs_hook=Pairs)
    except ValueError as error:
        raise InputError(f"not JSON: {error}") from None
    values = list(flat(value))
    left_out = f"{len(values) - MAX_VALUES:,} of {len(values):,} values" if len(values) > MAX_VALUES else None
    return DocumentText("\n".join(values[:MAX_VALUES]), tuple(filter(None, (note, left_out))))


def flat(value: Any) -> Iterator[str]:
    """Yields a line for every value that is not null, in the order of the document."""
    stack = [("", value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, Pairs):
            stack += [(f"{place}.{k}" if place else k, v) for k, v in reversed(item)]
        elif isinstance(item, list):
            stack += [(place, v) for v in reversed(item)]
        elif item is not None:
            yield f"{place}: {item}" if place else str(item)


def read_json_lines(document: Document) -> DocumentText:
    """Returns every record as lines of `path: value`. Records beyond the limit are counted, not parsed."""
    stream, note = open_text(document)
    records: list[str] = []
    seen = length = 0
    with stream:
        for line in lines(stream, MAX_LINE):
            if not line.strip():
                continue
            seen += 1
            if len(records) == seen - 1 and seen <= MAX_ROWS and length <= MAX_CHARACTERS:
                records.append(_record(line, seen))
                length += len(records[-1])
    return DocumentText("\n\n".join(records), tuple(filter(None, (note, beyond(len(records), seen)))))


def _record(line: str, number: int) -> str:
    try:
        return "\n".join(flat(json.loads(line, object_pairs_hook=Pairs)))
    except ValueError as error:
        raise InputError(f"record {number} is not JSON: {error}") from None


_XHTML = "{http://www.w3.org/1999/xhtml}html"


def read_xml(document: Document) -> DocumentText:
    """Returns every text and attribute with its path; values beyond the limit are counted. XHTML is read as a page.

    Raises InputError where the XML is broken or declares entities.
    """
    data = document.content(MAX_TREE_BYTES)
    html.refuse_huge_tags(data)
    parser = etree.XMLParser(**SAFE_XML)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"the XML is broken: {' '.join(str(error.msg).split())}") from None
    declared: Any = root.getroottree().docinfo.internalDTD
    if declared is not None and next(iter(declared.iterentities()), None) is not None:
        raise InputError("it declares entities, which can hide a bomb or another file; save it without them")
    if root.tag == _XHTML:
        return html.of_html(data)
    values = list(_values(root))
    left_out = [f"{len(values) - MAX_VALUES:,} of {len(values):,} values"] if len(values) > MAX_VALUES else []
    if comments := sum(1 for _ in root.iter(etree.Comment)):
        left_out.append(counted(comments, "comment"))
    if instructions := sum(1 for _ in root.iter(etree.PI)):
        left_out.append(counted(instructions, "processing instruction"))
    if entities := sum(1 for _ in root.iter(etree.Entity)):
        left_out.append(counted(entities, "entity that it does not explain", "entities that it does not explain"))
    return DocumentText("\n".join(values[:MAX_VALUES]), tuple(left_out))


def _values(root: Any) -> Iterator[str]:
    """Yields a line for every attribute and every text; text with markup inside it is one line."""
    stack = [(root, "")]
    while stack:
        element, above = stack.pop()
        path = f"{above}.{_local(element.tag)}" if above else _local(element.tag)
        yield from (
            f"{path}@{_local(name)}: {' '.join(value.split())}"
            for name, value in element.attrib.items()
            if value.strip()
        )
        children = [child for child in element if isinstance(child.tag, str)]
        own = [element.text, *(child.tail for child in element)]
        if any(part and part.strip() for part in own):
            yield f"{path}: {' '.join(' '.join(element.itertext(etree.Element)).split())}"
        else:
            stack += [(child, path) for child in reversed(children)]


def _local(name: str) -> str:
    return name.rpartition("}")[2]
