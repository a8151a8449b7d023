"""The formats of history: one module each, behind one interface, with one line here. A new format changes nothing else.

A reader is `read(open_file, settings, sink)`: it opens the file (anew for every pass), hands each case to `sink.case`
and each record that it cannot use to `sink.reject`, and raises InputError where the file as a whole cannot be read.
"""

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, cast

from opus_pipelines.core.registry import Registry, takes

TABLES = frozenset({"csv", "parquet", "xlsx", "json_events"})  # formats whose columns a person or a guess names
# The function `read` of a format's module. It takes what opens the file, the SourceSettings and the Assembler, whose
# modules need the formats and so are not named here.
FormatReader = Callable[[Callable[[], BinaryIO], Any, Any], None]


@dataclass(frozen=True)
class Format:
    """One format: the endings of its files (.gz may follow), its module, and what its rejects' positions count."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    position_unit: str
    record_is_case: bool  # else a record is an event
    kind: Literal["executed", "model"] = "executed"  # of its implementations, unless source.toml says otherwise
    also: tuple[str, ...] = ()  # endings of other formats that it reads where source.toml states it

    def reader(self) -> FormatReader:
        """The module's `read`; imported only now, so that a night with nothing new loads no parser."""
        return cast(FormatReader, importlib.import_module(self.module).read)


OBJECT_CENTRIC = (".ocel.json", ".jsonocel", ".ocel.xml", ".xmlocel", ".ocel.csv", ".ocel.sqlite", ".sqlite")
FORMATS = (
    Format("xes", (".xes",), "opus_pipelines.history.formats.xes", "record", False),
    Format("csv", (".csv", ".tsv"), "opus_pipelines.history.formats.csv_log", "line", False),
    Format("jsonl", (".jsonl", ".ndjson"), "opus_pipelines.history.formats.jsonl", "line", True),
    Format(
        "json_events",
        (".events.jsonl", ".events.json"),
        "opus_pipelines.history.formats.json_events",
        "record",
        False,
        also=(".jsonl", ".ndjson", ".json"),
    ),
    Format("parquet", (".parquet",), "opus_pipelines.history.formats.parquet_log", "record", False),
    Format("xlsx", (".xlsx", ".xlsm"), "opus_pipelines.history.formats.xlsx_log", "line", False),
    Format("bpmn", (".bpmn", ".bpmn20.xml"), "opus_pipelines.history.formats.bpmn", "record", True, "model"),
    Format("ocel", OBJECT_CENTRIC, "opus_pipelines.history.formats.ocel", "record", False),
    Format("n8n", (".json",), "opus_pipelines.history.formats.n8n", "record", False, "model"),
)


def _misfit(name: str, added: Any) -> str:
    if not isinstance(added, Format):
        return f"it must be an opus_pipelines.history.records.formats.Format, but is a {type(added).__name__}"
    if added.name != name:
        return f"its format has the name {added.name!r}"
    taken = {suffix: known.name for known in FORMATS for suffix in known.suffixes}
    if clash := [f"{suffix} ({taken[suffix]})" for suffix in added.suffixes if suffix in taken]:
        return f"another format reads {', '.join(clash)}"
    try:
        return takes(added.reader(), "open_file", "settings", "sink")
    except (ImportError, AttributeError) as error:
        return f"its module {added.module} has no function `read` ({error})"


LOG_FORMATS: Registry[Format] = Registry("log_formats", {f.name: f for f in FORMATS}, _misfit)


def log_formats() -> tuple[Format, ...]:
    """Returns the built-in formats, and then those that installed distributions add."""
    return tuple(LOG_FORMATS.entries().values())


_BINARY = (
    (b"PAR1", "a Parquet file: name it *.parquet"),
    (
        b"SQLite format 3\0",
        "a SQLite database: an object-centric log (OCEL) in it is read as *.ocel.sqlite",
    ),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook of the old form (.xls), or one with a password: save it as .xlsx"),
    (b"%PDF", "a PDF document: export the table as CSV or .xlsx"),
    (b"\x1f\x8b", "packed with gzip: name it *.gz"),
    (b"7z\xbc\xaf", "a 7z archive: unpack it"),
    (b"Rar!", "a RAR archive: unpack it"),
    (b"BZh", "packed with bzip2: unpack it"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
)
_ZIPPED = {b"xl/": "an Excel workbook: name it *.xlsx", b"word/": "a Word document: export the table as CSV or .xlsx"}
_PAGE = re.compile(rb"\s*(<!doctype html|<html|<table|<head|<meta\b)", re.IGNORECASE)
_SPREADSHEET = b"urn:schemas-microsoft-com:office:spreadsheet"


def what_it_is(head: bytes) -> str | None:
    """Returns what a file is that is no text, or a web page, by its first bytes, and what to do; None for a text."""
    if head.startswith(b"PK\x03\x04"):
        return next((what for part, what in _ZIPPED.items() if part in head), "a ZIP archive: unpack it")
    if _PAGE.match(head) or _SPREADSHEET in head:
        return "a table that was saved as a web page or as XML: open it in a spreadsheet program, and save it as .xlsx"
    known = next((what for magic, what in _BINARY if head.startswith(magic)), None)
    is_utf16 = head[:2] in (b"\xff\xfe", b"\xfe\xff") or 0 in (head[:64:2].count(0), head[1:64:2].count(0))
    return known or ("no text: export the table as CSV or .xlsx" if b"\0" in head and not is_utf16 else None)


def format_of(file_name: str, stated: str | None = None) -> Format | None:
    """Returns the format that the ending of a file's name states, else the one that the settings state, else None.

    The longest ending decides: `.ocel.json` comes before `.json`. A stated format that also reads the ending wins.
    """
    name = file_name.lower().removesuffix(".gz")
    formats = log_formats()
    if wider := next((f for f in formats if f.name == stated and name.endswith(f.also)), None):
        return wider
    endings = [(len(suffix), f) for f in formats for suffix in f.suffixes if name.endswith(suffix)]
    if endings:
        return max(endings, key=lambda ending: ending[0])[1]
    return next((f for f in formats if f.name == stated), None)
