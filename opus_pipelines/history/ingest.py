"""History into the lake: every changed source is read whole into a new immutable folder; history/sources says what became of each file."""

import gc
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.errors import InputError
from opus_pipelines.history.assembler import Assembler, Seen
from opus_pipelines.history.files import open_data
from opus_pipelines.history.formats import FORMATS
from opus_pipelines.history.plan import FilePlan, SourcePlan, plan_history, strays
from opus_pipelines.history.records import Counts
from opus_pipelines.lake import PART, Lake, read_table, table_of, write_atomically, write_table
from opus_pipelines.schemas import IMPLEMENTATIONS, REJECTS, SOURCES

Progress = Callable[[str], None]
_QUIET_SECONDS = 5.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNREADABLE = (InputError, OSError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError)


@dataclass
class SourceState:
    """One source as the lake has it now."""

    source: str
    folder: Path
    content: str
    industry: str | None
    merge: bool
    status: str
    implementations: int


@dataclass
class HistoryState:
    """All of history as the lake has it now. `sources`: those with implementations, by name; `files`: the rows of history/sources."""

    sources: list[SourceState] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    changed: bool = False
    failed: list[str] = field(default_factory=list)


@dataclass
class _FileResult:
    counts: Counts
    batches: list[pa.RecordBatch]
    rejects: list[dict[str, Any]]
    reason: str | None = None


def read_history(
    lake: Lake, history: Path, now: datetime, force: bool = False, progress: Progress = lambda line: None,
    plans: Sequence[SourcePlan] | None = None,
) -> HistoryState:
    """Read what changed, leave the rest alone. `now` dates first_seen and last_read only; `force` reads unchanged sources too.
    `plans`: what `plan_history` said, where it was asked already: it hashes every file.

    A file rejected whole is a line in `failed`, and the rest goes on. Raises InputError where there is no history folder.
    """
    plans = plan_history(history) if plans is None else plans
    before = {(row["source"], row["path"]): row for row in _rows_before(lake)}
    state = HistoryState(failed=strays(history))
    for plan in plans:
        rows, status = _source(lake, plan, before, now, force, progress)
        state.files += rows
        state.failed += _failures(plan, rows)
        state.changed |= status == "loaded"
        count = sum(row["implementations"] for row in rows)
        if count and plan.settings is not None:
            folder = lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content)
            industry = plan.settings.constant("industry")
            state.sources.append(SourceState(plan.name, folder, plan.content, industry, plan.settings.merge, status, count))
    state.changed |= {_identity(row) for row in state.files} != {_identity(row) for row in before.values() if row["status"] != "gone"}
    seen = {(row["source"], row["path"]) for row in state.files}
    state.files += [row | {"status": "gone"} for key, row in before.items() if key not in seen]
    state.sources.sort(key=lambda s: s.source)
    state.files.sort(key=lambda row: (row["source"], row["path"]))
    if state.files != [before[key] for key in sorted(before)] or not before:
        _write_sources(lake, state.files)
    return state


def _rows_before(lake: Lake) -> list[dict[str, Any]]:
    """The rows of history/sources. Times pass as numbers: Arrow's own way to Python times imports pandas, which takes a second or two."""
    table = read_table(SOURCES, lake.folder(SOURCES))
    for place, column in enumerate(SOURCES.columns):
        if column.type_name == "ts":
            table = table.set_column(place, column.name, table[column.name].cast(pa.int64()))
    times = [c.name for c in SOURCES.columns if c.type_name == "ts"]
    return [row | {name: _EPOCH + timedelta(microseconds=row[name]) for name in times} for row in table.to_pylist()]


def _identity(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["source"], row["path"], row["content_hash"]


def _source(
    lake: Lake, plan: SourcePlan, before: dict[tuple[str, str], dict[str, Any]], now: datetime, force: bool, progress: Progress
) -> tuple[list[dict[str, Any]], str]:
    """The rows of history/sources of one source, and its status."""
    old = {f.path: before.get((plan.name, f.path)) for f in plan.files}
    if plan.settings is None:
        refused = _FileResult(Counts(), [], [], plan.refused)
        return [_row(plan, f, refused, old[f.path], now) for f in plan.files], "rejected"
    folder = lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content)
    same = all((row := old[f.path]) is not None and row["content_hash"] == f.content_hash and row["status"] != "gone" for f in plan.files)
    if same and not force and (folder / PART).exists():
        return [row | {"status": _unchanged(row)} for row in old.values() if row is not None], "unchanged"
    if not plan.files:
        return [], "rejected"
    results = _read_source(plan, progress)
    _publish(lake, plan, results)
    return [_row(plan, f, result, old[f.path], now) for f, result in zip(plan.files, results, strict=True)], "loaded"


def _unchanged(row: dict[str, Any]) -> str:
    return "rejected" if row["status"] == "rejected" else "unchanged"


FEW = 20  # files of a source up to which each has a line of progress of its own


def _read_source(plan: SourcePlan, progress: Progress) -> list[_FileResult]:
    seen = Seen()
    results = []
    for file in plan.files:
        result = _read_file(plan, file, seen, progress)
        results.append(result)
        if result.reason or len(plan.files) <= FEW:
            progress(f"{plan.name}/{file.path}: " + (f"rejected: {result.reason}" if result.reason else _summary(result.counts)))
    if len(plan.files) > FEW:
        whole, cases = sum(r.reason is not None for r in results), sum(r.counts.implementations for r in results)
        progress(f"{plan.name}: {len(results):,} files ({whole:,} rejected whole), {cases:,} cases")
    return results


def _read_file(plan: SourcePlan, file: FilePlan, seen: Seen, progress: Progress) -> _FileResult:
    """All of a file or nothing: where it breaks off, what was read of it is dropped with it."""
    if file.refused is not None or plan.settings is None:
        return _FileResult(Counts(), [], [], file.refused)
    kind = next(f for f in FORMATS if f.name == file.format)
    sink = Assembler(plan.name, file.path, plan.settings, seen, kind, _ticker(f"{plan.name}/{file.path}", progress))
    try:
        with _no_collection():
            kind.reader()(lambda: open_data(file.file), plan.settings, sink)
            sink.finish()
    except _UNREADABLE as error:
        return _FileResult(Counts(), [], [], _why(error))
    seen.case_ids |= sink.case_ids
    rows = [
        {"source": plan.name, "path": file.path, "position": r.position, "position_unit": kind.position_unit, "reason_code": r.code,
         "reason": r.reason, "record": r.record}
        for r in sink.rejects
    ]
    return _FileResult(sink.counts, sink.builder.batches, rows)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Records hold no cycles; looking for some in millions of them takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _why(error: BaseException) -> str:
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return f"the gzip file is broken or cut off ({error}); fetch it again"
    if isinstance(error, UnicodeError):
        return f"it is not text in the encoding that it claims ({error})"
    return str(error).encode("utf-8", "replace").decode()


def _publish(lake: Lake, plan: SourcePlan, results: Iterable[_FileResult]) -> None:
    """Rejects before implementations: whoever finds the second finds the first."""
    results = list(results)
    implementations = pa.Table.from_batches([b for r in results for b in r.batches], schema=IMPLEMENTATIONS.schema)
    rejects = table_of(REJECTS, [row for r in results for row in r.rejects])
    for dataset, table in ((REJECTS, rejects), (IMPLEMENTATIONS, implementations)):
        with lake.staging() as staged:
            write_table(dataset, table, staged / "new")
            lake.publish(staged / "new", lake.folder(dataset, source_key=plan.name, content=plan.content))


def _row(plan: SourcePlan, file: FilePlan, result: _FileResult, old: dict[str, Any] | None, now: datetime) -> dict[str, Any]:
    return {
        "source": plan.name, "path": file.path, "content_hash": file.content_hash, "bytes": file.bytes, "format": file.format,
        "status": "rejected" if result.reason else "loaded", **result.counts.row(),
        "first_seen": old["first_seen"] if old else now, "last_read": now, "reason": result.reason,
    }


def _failures(plan: SourcePlan, rows: list[dict[str, Any]]) -> list[str]:
    if plan.refused is not None:
        return [plan.refused]
    return [f"{row['source']}/{row['path']}: {row['reason']}" for row in rows if row["status"] == "rejected"]


def _write_sources(lake: Lake, rows: list[dict[str, Any]]) -> None:
    table = table_of(SOURCES, rows)
    write_atomically(lake.folder(SOURCES) / PART, lambda path: pq.write_table(table, path, compression="zstd"))


def _summary(counts: Counts) -> str:
    return (
        f"{counts.records:,} records ({counts.used:,} used, {counts.not_work:,} no work, {counts.rejected:,} rejected), "
        f"{counts.implementations:,} cases"
    )


def _ticker(name: str, progress: Progress) -> Callable[[int], None]:
    """Says now and then how far a long file is."""
    began = said = monotonic()

    def tick(records: int) -> None:
        nonlocal said
        if (at := monotonic()) - said >= _QUIET_SECONDS:
            said = at
            progress(f"{name}: {records:,} records, {records / (at - began):,.0f} a second")

    return tick


__all__ = ["HistoryState", "SourceState", "plan_history", "read_history"]
