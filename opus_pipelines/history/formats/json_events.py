"""Reads JSON whose records are the events of a log, not its cases: a line each, or the objects of one list.

A record is read as a row of a table, whose columns are the dotted paths of its values.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.json_lines import numbered_lines
from opus_pipelines.history.formats.jsonl import LINE_BYTES, PATIENCE, parsed_line, refuse_line
from opus_pipelines.history.formats.table_log import TableLog
from opus_pipelines.history.formats.whole_file import not_too_deep, read_json
from opus_pipelines.history.records.assembler import Assembler
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError, day_comes_first, flatten, is_numeric_date

WHOLE_BYTES = 1 << 26  # of a file that is one list


def read(open_file: Callable[[], BinaryIO], settings: SourceSettings, sink: Assembler) -> None:
    """Reads every record as an event. Raises InputError where it cannot be told which path is what."""
    with not_too_deep(), open_file() as file:
        found = records(file, open_file, partial(refuse_line, sink))
        first = list(islice(found, PATIENCE))
        if not first and not sink.counts.records:
            raise InputError("the file is empty")
        header = list(dict.fromkeys(key for _, record in first for key in record))
        table = TableLog(header, settings, sink)
        dates = [str(record.get(header[place], "")) for _, record in first for place in table.time_columns]
        if any(map(is_numeric_date, dates)):
            table.times.day_first = sink.day_first_of(day_comes_first(dates))
        for position, record in chain(first, found):
            table.row(position, record)
        table.finish()


def records(
    file: BinaryIO, open_file: Callable[[], BinaryIO], refuse: Callable[[int, BadValueError, bytes], None]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the position and the flat values of each record. `refuse` takes lines that are none, with the reason.

    Raises InputError where a file that is one document has no list of objects.
    """
    lines = numbered_lines(file, LINE_BYTES)
    first = list(islice(lines, 2))
    if first and (len(first) == 1 or not _is_object(first[0][1])):
        listed = _listed(read_json(open_file, WHOLE_BYTES, "write a record a line"), is_line=_is_object(first[0][1]))
        yield from enumerate(map(flatten, listed), start=1)
        return
    for position, line in chain(first, lines):
        try:
            yield position, flatten(parsed_line(line))
        except BadValueError as error:
            refuse(position, error, line)


def _is_object(line: bytes) -> bool:
    plain = line.removeprefix(b"\xef\xbb\xbf").strip()
    return plain.startswith(b"{") and plain.endswith(b"}")


def _listed(content: Any, is_line: bool) -> list[dict[str, Any]]:
    lists = content.values() if isinstance(content, dict) else [content]
    objects = [[one for one in some if isinstance(one, dict)] for some in lists if isinstance(some, list)]
    best = max(objects, key=len, default=[])
    if not best and is_line and isinstance(content, dict):
        return [content]
    if not best:
        raise InputError("it has no list of objects, each of which would be an event")
    return best
