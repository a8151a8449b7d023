"""The formats of history: one module each, behind one interface, with one line here. A new format changes nothing else.

A reader is `read(open_file, settings, sink)`: it opens the file (anew for every pass), hands each case to `sink.case`
and each record that it cannot use to `sink.reject`, and raises InputError where the file as a whole cannot be read.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, cast

if TYPE_CHECKING:
    from opus_pipelines.event_logs.assembler import Assembler
    from opus_pipelines.event_logs.source_settings import SourceSettings


class FormatReader(Protocol):
    """What a format's module must have."""

    def __call__(self, open_file: Callable[[], BinaryIO], settings: "SourceSettings", sink: "Assembler") -> None: ...


@dataclass(frozen=True)
class Format:
    """One format: the endings of its files (.gz may follow), its module, and what its rejects' positions count."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    position_unit: str
    record_is_case: bool  # else a record is an event
    kind: Literal["executed", "model"] = "executed"  # of its implementations, unless source.toml says otherwise

    def reader(self) -> FormatReader:
        """The module's `read`; imported only now, so that a night with nothing new loads no parser."""
        return cast(FormatReader, importlib.import_module(self.module).read)


FORMATS = (
    Format("xes", (".xes",), "opus_pipelines.log_formats.xes", "record", False),
    Format("csv", (".csv", ".tsv"), "opus_pipelines.log_formats.csv_log", "line", False),
    Format("jsonl", (".jsonl", ".ndjson"), "opus_pipelines.log_formats.jsonl", "line", True),
    Format("parquet", (".parquet",), "opus_pipelines.log_formats.parquet_log", "record", False),
    Format("bpmn", (".bpmn", ".bpmn20.xml"), "opus_pipelines.log_formats.bpmn", "record", True, "model"),
    Format("ocel", (".ocel.json",), "opus_pipelines.log_formats.ocel", "record", False),
    Format(
        "n8n", (".json",), "opus_pipelines.log_formats.n8n", "record", False, "model"
    ),  # after every longer ending in .json
)


def format_of(file_name: str, stated: str | None = None) -> Format | None:
    """The format that a file's name tells, else the one that the settings state, else None."""
    name = file_name.lower().removesuffix(".gz")
    told = next((f for f in FORMATS if name.endswith(f.suffixes)), None)
    return told or next((f for f in FORMATS if f.name == stated), None)
