"""Reads JSON Lines from the front, one paragraph for each record."""

import json

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import Document, DocumentText
from opus_pipelines.intakes.documents.encoding import lines, open_text
from opus_pipelines.intakes.documents.json_record import Pairs, flat
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS, MAX_LINE, MAX_ROWS
from opus_pipelines.intakes.documents.tables import beyond


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
