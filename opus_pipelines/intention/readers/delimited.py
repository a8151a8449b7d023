"""CSV and TSV, row by row: a large table costs time to count, never memory."""

import csv
from typing import Any

from opus_pipelines.errors import InputError
from opus_pipelines.intention.readers.document import Document, Reading
from opus_pipelines.intention.readers.encoding import lines, open_text
from opus_pipelines.intention.readers.limits import MAX_LINE
from opus_pipelines.intention.readers.table import beyond, table_text

_SAMPLE = 4096


def read(document: Document) -> Reading:
    """Lines of `column: value`; rows past the limit are counted."""
    stream, note = open_text(document, newline="")
    csv.field_size_limit(MAX_LINE)
    with stream:
        dialect = _dialect(document)
        try:
            text, taken, seen = table_text(csv.reader(lines(stream, MAX_LINE), dialect))
        except csv.Error as error:
            raise InputError(f"not a table that can be read: {error}") from None
    return Reading(text, tuple(filter(None, (note, beyond(taken, seen)))))


def _dialect(document: Document) -> Any:
    stream, _ = open_text(document, newline="")
    with stream:
        try:
            sample = stream.read(_SAMPLE)
        except UnicodeDecodeError:
            return csv.excel  # the reading itself meets the same byte, and says so
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel_tab if document.name.lower().endswith(".tsv") else csv.excel
