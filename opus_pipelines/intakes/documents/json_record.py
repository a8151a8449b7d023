"""Reads JSON as lines of `path: value`."""

import json
from collections.abc import Iterator
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import Document, DocumentText
from opus_pipelines.intakes.documents.encoding import decode
from opus_pipelines.intakes.documents.limits import MAX_TREE_BYTES, MAX_VALUES


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
