"""History into the lake: every changed source is read whole into a new immutable folder; history/sources says what became of each file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.history.activity_evidence import activity_names
from opus_pipelines.history.activity_kinds import ActivityKind, unknown_names
from opus_pipelines.history.assembler import Seen
from opus_pipelines.history.money import remark
from opus_pipelines.history.plan import FilePlan, SourcePlan, plan_history, strays
from opus_pipelines.history.privacy.forgotten import WITHHELD, Forgotten, private_key
from opus_pipelines.history.read_file import FileResult, Progress
from opus_pipelines.history.records import Counts
from opus_pipelines.history.side_by_side import Reading
from opus_pipelines.history.source_settings import FILE_NAME, SourceSettings
from opus_pipelines.history.spool import write_sorted
from opus_pipelines.ids import digest, make_id
from opus_pipelines.lake import PART, Lake, read_table, table_of, write_atomically
from opus_pipelines.schemas import IMPLEMENTATIONS, REJECTS, SOURCES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
    stated: Mapping[str, ActivityKind] = field(default_factory=dict)  # kinds of activities that source.toml states


@dataclass
class HistoryState:
    """All of history as the lake has it now. `sources`: those with implementations, by name; `files`: the rows of history/sources."""

    sources: list[SourceState] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    changed: bool = False
    failed: list[str] = field(default_factory=list)


def read_history(
    lake: Lake, history: Path, now: datetime, force: bool = False, progress: Progress = lambda line: None,
    plans: Sequence[SourcePlan] | None = None, usd_per_unit: Mapping[str, float] | None = None,
    processes: int = 0,
) -> HistoryState:
    """Read what changed, leave the rest alone. `now` dates first_seen and last_read only; `force` reads unchanged sources too.
    `plans`: what `plan_history` said, where it was asked already: it hashes every file. `usd_per_unit`: the rates of opus.toml.
    `processes`: at most so many read files side by side (0: one a core); the result is the same.

    A file rejected whole is a line in `failed`, and the rest goes on. Raises InputError where there is no history folder.
    """
    private_key(lake)  # made by the first rebuild
    plans = plan_history(history, usd_per_unit, lake) if plans is None else plans
    before = {(row["source"], row["path"]): row for row in _rows_before(lake)}
    state = HistoryState(failed=strays(history))
    to_read = [plan for plan in plans if _is_to_read(lake, plan, before, force)]
    with _reading(lake, to_read, processes, progress) as reading:
        for plan in plans:
            rows, status = _source(lake, plan, before, now, reading if plan in to_read else None, progress)
            plan = _as_read(plan.leaving_out(Forgotten.of(lake)), rows)
            state.files += rows
            state.failed += _failures(plan, rows)
            state.changed |= status == "loaded"
            count = sum(row["implementations"] for row in rows)
            if count and plan.settings is not None:
                folder = lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content)
                industry = plan.settings.constant("industry")
                state.sources.append(SourceState(
                    plan.name, folder, plan.content, industry, plan.settings.merge, status, count, plan.settings.activities.stated,
                ))
                state.failed += _unknown_activities(plan, folder)
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


def _is_to_read(lake: Lake, plan: SourcePlan, before: dict[tuple[str, str], dict[str, Any]], force: bool) -> bool:
    if plan.settings is None or not plan.files:
        return False
    old = [(before.get((plan.name, f.path)), f.content_hash) for f in plan.files]
    same = all(row is not None and row["content_hash"] == content and row["status"] != "gone" for row, content in old)
    return force or not same or not (lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content) / PART).exists()


@contextmanager
def _reading(lake: Lake, plans: list[SourcePlan], processes: int, progress: Progress) -> Iterator[Reading | None]:
    if not plans:
        yield None
        return
    with lake.staging() as folder:
        reading = Reading(plans, Forgotten.of(lake), folder, processes, progress)
        with reading.running():
            yield reading


def _source(
    lake: Lake, plan: SourcePlan, before: dict[tuple[str, str], dict[str, Any]], now: datetime, reading: Reading | None, progress: Progress
) -> tuple[list[dict[str, Any]], str]:
    """The rows of history/sources of one source, and its status. `reading`: None where it is not to be read."""
    old = {f.path: before.get((plan.name, f.path)) for f in plan.files}
    if plan.settings is None:
        refused = FileResult(reason=plan.refused)
        return [_row(plan, f, refused, old[f.path], now) for f in plan.files], "rejected"
    if not plan.files:
        return [], "rejected"
    if reading is None:
        return [_unchanged(row, plan.settings) for row in old.values() if row is not None], "unchanged"
    results, clients = _read_source(plan, Forgotten.of(lake), reading, progress)
    plan = _leave_out(lake, plan, clients)
    rows = [_row(plan, f, result, old[f.path], now) for f, result in zip(plan.files, results, strict=True)]
    _publish(lake, _as_read(plan, rows), results, withheld=bool(clients))
    return rows, "loaded"


def _as_read(plan: SourcePlan, rows: list[dict[str, Any]]) -> SourcePlan:
    """The plan with what is known of its files once they are read: the currencies of their amounts, and which of them were lost."""
    plan = plan.in_currencies(code for row in rows for code in row.get("currencies") or ())
    known = {f.path: f.content_hash for f in plan.files}
    lost = sorted(row["path"] for row in rows if row["content_hash"] != known[row["path"]])
    return replace(plan, content=make_id("h", plan.content, lost)) if lost else plan


def _unchanged(row: dict[str, Any], settings: SourceSettings) -> dict[str, Any]:
    """A row of a file that is as it was; which rates are lacking may have changed all the same, to and fro."""
    if row["status"] == "rejected":
        return row
    return row | {"status": "unchanged", "reason": remark(row.get("currencies") or (), settings)}


FEW = 20  # files of a source up to which each has a line of progress of its own


def _read_source(plan: SourcePlan, forgotten: Forgotten, reading: Reading, progress: Progress) -> tuple[list[FileResult], set[str]]:
    """What came of each file, and which forgotten clients were met."""
    seen = Seen(forgotten=forgotten)
    results = []
    for file in plan.files:
        result = reading.read(plan, file, seen)
        results.append(result)
        if result.reason or len(plan.files) <= FEW:
            progress(f"{plan.name}/{file.path}: " + (f"rejected: {result.reason}" if result.reason else _summary(result.counts)))
    if plan.settings and (said := remark((code for r in results for code in r.counts.currencies), plan.settings)):
        progress(f"{plan.name}: {said}")
    if len(plan.files) > FEW:
        whole, cases = sum(r.reason is not None for r in results), sum(r.counts.implementations for r in results)
        progress(f"{plan.name}: {len(results):,} files ({whole:,} rejected whole), {cases:,} cases")
    return results, seen.left_out


def _leave_out(lake: Lake, plan: SourcePlan, clients: set[str]) -> SourcePlan:
    """Remember whom the source was read without."""
    known = Forgotten.of(lake)
    found = known.found_in(plan.name, clients)
    if found != known:
        found.save(lake)
    return plan.leaving_out(found)


def _publish(lake: Lake, plan: SourcePlan, results: Sequence[FileResult], withheld: bool) -> None:
    """Rejects before implementations: whoever finds the second finds the first.

    `withheld`: a forgotten client was met. A rejected record does not tell whose it is: no text of any is kept.
    """
    rejects = [r.rejects for r in results if r.rejects is not None]
    implementations = [r.implementations for r in results if r.implementations is not None]
    for dataset, spools in ((REJECTS, rejects), (IMPLEMENTATIONS, implementations)):
        with lake.staging() as staged:
            change = _withheld if withheld and dataset is REJECTS else None
            write_sorted(dataset, spools, staged / "new", change)
            lake.publish(staged / "new", lake.folder(dataset, source_key=plan.name, content=plan.content))
        for spool in spools:
            spool.drop()


def _withheld(rejects: pa.Table) -> pa.Table:
    told = pa.repeat(pa.scalar(WITHHELD), len(rejects))
    for name in ("reason", "record"):
        rejects = rejects.set_column(rejects.schema.get_field_index(name), name, told)
    return rejects


def _row(plan: SourcePlan, file: FilePlan, result: FileResult, old: dict[str, Any] | None, now: datetime) -> dict[str, Any]:
    reason = result.reason or (plan.settings and remark(result.counts.currencies, plan.settings))
    content = digest("lost", file.content_hash) if result.lost else file.content_hash
    return {
        "source": plan.name, "path": file.path, "content_hash": content, "bytes": file.bytes, "format": file.format,
        "status": "rejected" if result.reason else "loaded", **result.counts.row(),
        "first_seen": old["first_seen"] if old else now, "last_read": now, "reason": reason,
    }


def _failures(plan: SourcePlan, rows: list[dict[str, Any]]) -> list[str]:
    if plan.refused is not None:
        return [plan.refused]
    return [f"{row['source']}/{row['path']}: {row['reason']}" for row in rows if row["status"] == "rejected"]


def _unknown_activities(plan: SourcePlan, folder: Path) -> list[str]:
    """A line for each name of `[activities]` that the source does not have."""
    stated = plan.settings.activities.stated if plan.settings else {}
    return [f"{plan.name}/{FILE_NAME}: {line}" for line in unknown_names(stated, activity_names(folder))] if stated else []


def _write_sources(lake: Lake, rows: list[dict[str, Any]]) -> None:
    table = table_of(SOURCES, rows)
    write_atomically(lake.folder(SOURCES) / PART, lambda path: pq.write_table(table, path, compression="zstd"))


def _summary(counts: Counts) -> str:
    return (
        f"{counts.records:,} records ({counts.used:,} used, {counts.not_work:,} no work, {counts.rejected:,} rejected), "
        f"{counts.implementations:,} cases"
    )


__all__ = ["HistoryState", "SourceState", "plan_history", "read_history"]
