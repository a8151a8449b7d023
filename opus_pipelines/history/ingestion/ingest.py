"""Reads history into the lake.

Every changed source is read whole into a new immutable folder, and history/sources records what became of each file. A
source that cannot be read without loss keeps its last good version (`source_versions`), with the reason. What was read
without an error and may yet be wrong is told: columns of case and activity that may be exchanged (each activity then
becomes a case, and each case an activity), and prices of `[rates]` without effect.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS, SOURCES
from opus_pipelines.history.ingestion.parallel_files import FileReadPool, ParallelReading
from opus_pipelines.history.ingestion.plan import FilePlan, SourcePlan, plan_history, strays
from opus_pipelines.history.ingestion.read_file import FileResult, Progress, write_sorted
from opus_pipelines.history.ingestion.read_source import SourceResult, read_source
from opus_pipelines.history.ingestion.source_versions import SourceVersion, SourceVersions, unreadable, usable, why_held
from opus_pipelines.history.records.activity_kinds import ActivityKind, activity_names, unknown_names
from opus_pipelines.history.records.arrow_arrays import strings
from opus_pipelines.history.records.forgotten_clients import WITHHELD, Forgotten, private_key
from opus_pipelines.history.records.formats import TABLES
from opus_pipelines.history.records.money import COST_PARTS, GROUP_ATTRIBUTES, NO_GROUP, model_names, remark
from opus_pipelines.history.records.raw import Counts
from opus_pipelines.history.records.source_settings import FILE_NAME, SourceSettings, TokenPrice
from opus_pipelines.lake.layout import PART, Lake, read_table, table_of

MOST_BY_CHANCE = 0.5  # share of the cases of a file whose ids may be names of activities
MOST_PLAUSIBLE = 20  # activities that a small log may have although it has fewer cases


def more_activities(activities: int, cases: int) -> str | None:
    """Returns that there are implausibly many activities, or None."""
    if activities <= max(MOST_PLAUSIBLE, cases):
        return None
    return f"more activities ({activities:,}) than cases ({cases:,}); are the columns of case and activity exchanged?"


def exchange_doubt(activities: Collection[str], ids: Sequence[Collection[str]], cases: int) -> str | None:
    """Returns a sentence without names of the data where the columns may be exchanged, or None.

    `ids` are the cases of each file. A few ids may be names of activities by chance, as short codes are.
    """
    for of_file in ids:
        both = sum(name in of_file for name in activities)
        if both > MOST_BY_CHANCE * len(of_file):
            return (
                f"{both:,} of {len(of_file):,} cases of one file have names of activities; are the columns of case and "
                "activity exchanged in it?"
            )
    return more_activities(len(activities), cases)


NEAREST = 3
TELL_THE_KIND = (
    "name the column or field that says human, model or code with actor_kind under [columns] or [task], or state "
    "prices by person or role"
)


@dataclass(frozen=True)
class UnpricedSteps:
    """Steps that the hourly prices by kind of actor do not reach.

    `kinds` are the kinds with a stated price an hour. Of the source's `steps`, `of_kinds` have one of these kinds, and
    `unknown` have a working time and no cost, because nothing tells their kind.
    """

    kinds: tuple[str, ...]
    steps: int
    of_kinds: int
    unknown: int

    def __str__(self) -> str:
        return (
            f"[rates] {', '.join(self.kinds)}: no price of a kind of actor reaches {self.unknown:,} of {self.steps:,} "
            f"occurrences with a working time, because nothing says what kind of actor did them; {TELL_THE_KIND}"
        )


def unknown_rates(rates: Iterable[str], folder: Path) -> list[str]:
    """Returns a message for each name that is no person, role, group, AI model or kind of actor in `folder`."""
    left = [name for name in rates if name not in COST_PARTS]
    if not left:
        return []
    known = set(_names(folder))
    models = {model_names(name)[0] for name in known}
    return [
        (
            f"[rates] states {name!r}, and no person, role, AI model or kind of actor of the source is called so; "
            f"{_near(name, known)}"
        )
        for name in left
        if name not in known and model_names(name)[0] not in models
    ]


def unpriced_steps(rates: Mapping[str, float | TokenPrice], folder: Path) -> UnpricedSteps | None:
    """Returns the steps without a cost that a stated price of a kind would reach if their kind were known, or None."""
    kinds = tuple(name for name, rate in rates.items() if name in COST_PARTS and isinstance(rate, float))
    steps = of_kinds = unknown = 0
    columns = [f"tasks.list.element.{name}" for name in ("actor_kind", "duration_ms", "cost_usd")]
    for file in sorted(folder.glob("*.parquet")) if kinds else ():
        for batch in pq.ParquetFile(file).iter_batches(columns=columns):
            tasks = pc.list_flatten(batch["tasks"])
            kind, time, cost = (pc.struct_field(tasks, name) for name in ("actor_kind", "duration_ms", "cost_usd"))
            steps += len(tasks)
            of_kinds += pc.sum(pc.is_in(kind, strings(kinds))).as_py() or 0
            without = pc.and_(pc.and_(pc.is_null(kind), pc.is_null(cost)), pc.is_valid(time))
            unknown += pc.sum(without).as_py() or 0
    return UnpricedSteps(kinds, steps, of_kinds, unknown) if unknown else None


def _names(folder: Path) -> Iterator[str]:
    """Yields every actor name of the source, at least once."""
    columns = [f"tasks.list.element.{name}" for name in ("actor", "actor_kind", "model", "attributes")]
    for file in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=columns):
            steps = pc.list_flatten(batch["tasks"])
            for name in ("actor", "actor_kind", "model"):
                yield from (value for value in pc.unique(pc.struct_field(steps, name)).to_pylist() if value)
            attributes = pc.struct_field(steps, "attributes")
            groups = attributes.items.filter(pc.is_in(attributes.keys, strings(GROUP_ATTRIBUTES)))
            yield from (
                value for value in pc.unique(groups).to_pylist() if value and value.strip().lower() not in NO_GROUP
            )


def _near(name: str, known: set[str]) -> str:
    folded = {k.casefold(): k for k in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.casefold(), sorted(folded), n=NEAREST, cutoff=0.4)
    names = [folded[k] for k in near] or sorted(known)[:NEAREST]
    return (
        f"the nearest: {', '.join(map(repr, names))}"
        if near
        else f"it has: {', '.join(map(repr, names)) or 'no names at all'}"
    )


FEW = 20  # files of a source up to which each has a line of progress of its own


def _report_source(plan: SourcePlan, result: SourceResult, progress: Progress) -> None:
    """Reports a line for each file, or one line for all files if they are many."""
    results = result.files
    for file, file_result in zip(plan.files, results, strict=True):
        if file_result.reason or len(plan.files) <= FEW:
            progress(
                f"{plan.name}/{file.path}: "
                + (f"rejected: {file_result.reason}" if file_result.reason else _summary(file_result.counts))
            )
        if file_result.mixed_encodings:
            progress(f"{plan.name}/{file.path}: {file_result.mixed_encodings}")
    if result.joined_cases:
        progress(f"{plan.name}: {result.joined_cases:,} cases stand in several files or places and were put together")
    if plan.settings and (
        missing_rates := remark((code for r in results for code in r.counts.currencies), plan.settings)
    ):
        progress(f"{plan.name}: {missing_rates}")
    if len(plan.files) > FEW:
        whole, cases = sum(r.reason is not None for r in results), sum(r.counts.implementations for r in results)
        progress(f"{plan.name}: {len(results):,} files ({whole:,} rejected whole), {cases:,} cases")


def _summary(counts: Counts) -> str:
    not_work = counts.not_work - counts.duplicates - counts.corrected  # these are told by themselves
    return (
        f"{counts.records:,} records ({counts.used:,} used, {not_work:,} no work, {counts.rejected:,} "
        "rejected), "
        f"{counts.implementations:,} cases"
        + (f", {counts.quarantined:,} put aside whole" if counts.quarantined else "")
        + (f", {counts.duplicates:,} records came twice" if counts.duplicates else "")
        + (f", {counts.corrected:,} were corrected" if counts.corrected else "")
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_QUARANTINED_SHARE = 0.01


@dataclass
class SourceState:
    """The current state of one source in the lake.

    `held` is the reason why the source keeps an earlier version, or None if the version read last is in use.
    """

    source: str
    folder: Path
    content: str
    industry: str | None
    merge: bool
    status: str
    implementations: int
    stated: Mapping[str, ActivityKind] = field(default_factory=dict)  # kinds of activities that source.toml states
    held: str | None = None
    by_activities: bool = False  # the activities of a case decide its outcome, by the rule [success] of source.toml
    open_cases: tuple[str, ...] = ()  # what source.toml states of cases that still run


@dataclass
class HistoryState:
    """The current state of all history in the lake.

    `sources` has those with implementations, by name, and `files` the rows of history/sources. `failed` has a message
    for each file or source that could not be read. `held` has those messages that are about a source which keeps its
    last good version, or of which nothing is used because it has none.
    """

    sources: list[SourceState] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    changed: bool = False
    failed: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class HistoryOptions:
    """The options of `read_history`.

    `force` reads unchanged sources too. `plans` is the result of `plan_history` if the caller has it already, because
    planning hashes every file. `usd_per_unit` has the exchange rates of opus.toml, which only the planning uses.
    `parallel` says when files are read in parallel; the result does not depend on it.
    `max_quarantined_share` is the share of a source's cases that may be quarantined; above it the source keeps its last
    good version. `home` is the lake of that version if everything is rebuilt in another lake. `accept` gets the sources
    before anything about them is saved, and raises an error where they must not be used.
    """

    force: bool = False
    plans: Sequence[SourcePlan] | None = None
    usd_per_unit: Mapping[str, float] | None = None
    parallel: ParallelReading = field(default_factory=ParallelReading)
    max_quarantined_share: float = MAX_QUARANTINED_SHARE
    home: Lake | None = None
    accept: Callable[[Sequence[SourceState]], None] = lambda sources: None


def read_history(
    lake: Lake,
    history: Path,
    now: datetime,
    options: HistoryOptions | None = None,
    progress: Progress = lambda line: None,
) -> HistoryState:
    """Reads the sources that changed and leaves the others as they are.

    `now` sets only first_seen and last_read. A file that is rejected whole adds a message to `failed`, and the run
    continues. Raises InputError if there is no history folder.
    """
    options = options or HistoryOptions()
    private_key(lake)  # the first rebuild creates it
    plans = plan_history(history, options.usd_per_unit, lake) if options.plans is None else options.plans
    earlier_rows = {(row["source"], row["path"]): row for row in _rows_before(lake)}
    versions = SourceVersions.of(lake, with_failed=not options.force)
    run = _HistoryRun(lake, options, earlier_rows, now, versions, progress)
    state = HistoryState(failed=strays(history))
    to_read = [plan for plan in plans if run.is_to_read(plan)]
    with run.reading(to_read) as reading:
        for plan in plans:
            run.source(plan, reading if plan in to_read else None, state)
    options.accept(state.sources)
    run.versions.save(lake)
    state.changed |= {_identity(row) for row in state.files} != {
        _identity(row) for row in earlier_rows.values() if row["status"] != "gone"
    }
    present = {(row["source"], row["path"]) for row in state.files}
    state.files += [
        row | {"status": "gone", "version": None} for key, row in earlier_rows.items() if key not in present
    ]
    state.sources.sort(key=lambda s: s.source)
    state.files.sort(key=lambda row: (row["source"], row["path"]))
    if state.files != [earlier_rows[key] for key in sorted(earlier_rows)] or not earlier_rows:
        _write_sources(lake, state.files)
    return state


@dataclass
class _HistoryRun:
    """The state of one run that the reading of each source depends on."""

    lake: Lake
    options: HistoryOptions
    earlier_rows: dict[tuple[str, str], dict[str, Any]]  # of history/sources, by source and path
    now: datetime
    versions: SourceVersions
    progress: Progress

    def is_to_read(self, plan: SourcePlan) -> bool:
        """Tells whether the source, or what its settings allow, changed since it was last read."""
        if plan.settings is None or not plan.files:
            return False
        old = [(self.earlier_rows.get((plan.name, f.path)), f.content_hash) for f in plan.files]
        same = all(
            row is not None and row["content_hash"] == content and row["status"] != "gone" for row, content in old
        )
        if self.options.force or not same:
            return True
        rows = [row for row, _ in old if row is not None]
        plan = _as_read(plan.leaving_out(Forgotten.of(self.lake)), rows)
        if self.versions.why_failed(plan.name, plan.content) is not None:
            return False
        is_there = (self.lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content) / PART).exists()
        is_held = why_held(plan, rows, self.versions, self.options.max_quarantined_share) is not None
        if any(row["status"] == "held" for row in rows):
            return not is_held and not is_there
        return is_held or not is_there

    @contextmanager
    def reading(self, plans: list[SourcePlan]) -> Iterator[FileReadPool | None]:
        if not plans:
            yield None
            return
        with self.lake.staging() as folder:
            pool = FileReadPool(plans, Forgotten.of(self.lake), folder, self.options.parallel, self.progress)
            with pool.running():
                yield pool

    def source(self, plan: SourcePlan, reading: FileReadPool | None, state: HistoryState) -> None:
        """Reads a source, or leaves it as it is, and adds it to the state.

        `reading` is None if it is not to be read.
        """
        rows, result, withheld = self._rows(plan, reading)
        plan = _as_read(plan.leaving_out(Forgotten.of(self.lake)), rows)
        held = why_held(plan, rows, self.versions, self.options.max_quarantined_share)
        if result is not None:
            _publish(self.lake, plan, result, withheld, is_used=held is None)
        if plan.settings is not None:
            state.failed += [
                f"{plan.name}/{row['path']}: {row['reason']}" for row in rows if row["status"] == "rejected"
            ]
        if held is None:
            version = self._new_version(plan, rows, result)
        else:
            version = usable(self.lake, self.options.home or self.lake, plan, self.versions.get(plan.name))
            line = f"{plan.name}: {held}; " + _in_use(version)
            state.held.append(line)
            state.failed.append(line)
            self.progress(line)
            rows = [row if row["status"] == "rejected" else row | {"status": "held", "reason": held} for row in rows]
        is_read = result is not None and held is None
        state.changed |= is_read
        read = {} if plan.settings is None else {"content": plan.content}
        state.files += [row | read | {"version": version.content if version else None} for row in rows]
        if version is not None:
            self.versions.keep(plan.name, version)
            if version.implementations:
                state.sources.append(
                    SourceState(
                        plan.name,
                        version.folder(self.lake, plan.name),
                        version.content,
                        version.industry,
                        version.merge,
                        "held" if held else "loaded" if is_read else "unchanged",
                        version.implementations,
                        version.stated,
                        held,
                        version.by_activities,
                        version.open_cases,
                    )
                )
                state.failed += _unknown_activities(plan.name, state.sources[-1])
                state.failed += (
                    [f"{plan.name}: {version.doubt} `opus check {plan.name}` shows it"] if version.doubt else []
                )
                if held is None:
                    state.failed += _unknown_rates(plan, state.sources[-1].folder)

    def _new_version(
        self, plan: SourcePlan, rows: list[dict[str, Any]], result: SourceResult | None
    ) -> SourceVersion | None:
        count = sum(row["implementations"] or 0 for row in rows)
        if plan.settings is None or all(row["status"] == "rejected" for row in rows):
            return None
        files = self.versions.marks(row["path"] for row in rows if row["records_used"])
        settings = plan.settings
        without = self.versions.marks(unreadable(row) for row in rows if row["status"] == "rejected")
        return SourceVersion(
            plan.content,
            settings.constant("industry"),
            settings.merge,
            count,
            files,
            settings.activities.stated,
            without,
            settings.success is not None and settings.success.by_activities,
            self._doubt(plan, result),
            settings.forecasts.stated,
        )

    def _doubt(self, plan: SourcePlan, result: SourceResult | None) -> str | None:
        """Returns what may be wrong of a source that was read without an error; of an unchanged one as it was kept."""
        if result is None:
            before = self.versions.get(plan.name)
            return before.doubt if before else None
        if TABLES.isdisjoint(file.format for file in plan.files):
            return None
        activities = activity_names(self.lake.folder(IMPLEMENTATIONS, source_key=plan.name, content=plan.content))
        return exchange_doubt(activities, [file.case_ids for file in result.files], result.implementations)

    def _rows(
        self, plan: SourcePlan, reading: FileReadPool | None
    ) -> tuple[list[dict[str, Any]], SourceResult | None, bool]:
        """Returns the rows of history/sources of one source, its result, and whether a forgotten client occurred."""
        old = {f.path: self.earlier_rows.get((plan.name, f.path)) for f in plan.files}
        if plan.settings is None:
            refused = FileResult(reason=plan.refused)
            return [_row(plan, f, refused, old[f.path], self.now) for f in plan.files], None, False
        if not plan.files:
            return [], None, False
        if reading is None:
            return [_unchanged(row, plan.settings) for row in old.values() if row is not None], None, False
        result = read_source(plan, Forgotten.of(self.lake), reading)
        _report_source(plan, result, self.progress)
        plan = _leave_out(self.lake, plan, result.left_out)
        rows = [_row(plan, f, r, old[f.path], self.now) for f, r in zip(plan.files, result.files, strict=True)]
        return rows, result, bool(result.left_out)


def _in_use(version: SourceVersion | None) -> str:
    if version is None:
        return "it has no earlier version: nothing of it is used"
    return f"its last good version stays in use ({version.implementations:,} cases)"


def _rows_before(lake: Lake) -> list[dict[str, Any]]:
    """Returns the rows of history/sources.

    Times are converted as numbers: Arrow's own conversion to Python times imports pandas, which takes a second or two.
    """
    table = read_table(SOURCES, lake.folder(SOURCES))
    for place, column in enumerate(SOURCES.columns):
        if column.type_name == "ts":
            table = table.set_column(place, column.name, table[column.name].cast(pa.int64()))
    times = [c.name for c in SOURCES.columns if c.type_name == "ts"]
    return [row | {name: _EPOCH + timedelta(microseconds=row[name]) for name in times} for row in table.to_pylist()]


def _identity(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["source"], row["path"], row["content_hash"]


def _as_read(plan: SourcePlan, rows: list[dict[str, Any]]) -> SourcePlan:
    """Completes the plan after reading with the currencies of the amounts and the files that were lost."""
    plan = plan.in_currencies(code for row in rows for code in row.get("currencies") or ())
    known = {f.path: f.content_hash for f in plan.files}
    lost = sorted(row["path"] for row in rows if row["content_hash"] != known[row["path"]])
    return replace(plan, content=make_id("h", plan.content, lost)) if lost else plan


def _unchanged(row: dict[str, Any], settings: SourceSettings) -> dict[str, Any]:
    """Returns the row of an unchanged file. Its reason is recomputed, because the exchange rates may have changed."""
    if row["status"] == "rejected":
        return row
    return row | {"status": "unchanged", "reason": remark(row.get("currencies") or (), settings)}


def _leave_out(lake: Lake, plan: SourcePlan, clients: set[str]) -> SourcePlan:
    """Records which forgotten clients were left out of the source."""
    known = Forgotten.of(lake)
    updated = known.with_cases_in(plan.name, clients)
    if updated != known:
        updated.save(lake)
    return plan.leaving_out(updated)


def _publish(lake: Lake, plan: SourcePlan, result: SourceResult, withheld: bool, is_used: bool) -> None:
    """Publishes the rejects, then the implementations, so that a reader of the second finds the first.

    A version that is not used publishes only its rejects. `withheld`: a forgotten client occurred. A rejected record
    does not show whose it is, so the texts of all rejects are then withheld.
    """
    implementations, rejects = result.spools()
    for dataset, spools in (
        ((REJECTS, rejects), (IMPLEMENTATIONS, implementations)) if is_used else ((REJECTS, rejects),)
    ):
        with lake.staging() as staged:
            change = _withheld if withheld and dataset is REJECTS else None
            write_sorted(dataset, spools, staged / "new", change)
            lake.publish(staged / "new", lake.folder(dataset, source_key=plan.name, content=plan.content))
    result.drop()


def _withheld(rejects: pa.Table) -> pa.Table:
    text = pa.repeat(pa.scalar(WITHHELD), len(rejects))
    for name in ("reason", "record"):
        rejects = rejects.set_column(rejects.schema.get_field_index(name), name, text)
    place = rejects.schema.get_field_index("case_id")
    return rejects.set_column(place, "case_id", pa.nulls(len(rejects), pa.string()))


def _row(
    plan: SourcePlan, file: FilePlan, result: FileResult, old: dict[str, Any] | None, now: datetime
) -> dict[str, Any]:
    reason = result.reason or (plan.settings and remark(result.counts.currencies, plan.settings))
    content = digest("lost", file.content_hash) if result.lost else file.content_hash
    return {
        "source": plan.name,
        "path": file.path,
        "content_hash": content,
        "bytes": file.bytes,
        "format": file.format,
        "status": "rejected" if result.reason else "loaded",
        **result.counts.row(),
        "first_seen": old["first_seen"] if old else now,
        "last_read": now,
        "reason": reason,
        "encoding": result.encoding,
        "mixed_encodings": result.mixed_encodings,
        "content": None,
        "version": None,
    }


def _unknown_activities(name: str, source: SourceState) -> list[str]:
    """Returns a message for each name of `[activities]` that the source does not have."""
    if not source.stated:
        return []
    return [f"{name}/{FILE_NAME}: {line}" for line in unknown_names(source.stated, activity_names(source.folder))]


def _unknown_rates(plan: SourcePlan, folder: Path) -> list[str]:
    """Returns a message for each price of `[rates]` without effect: no actor has its name, or no step its kind."""
    rates = plan.settings.rates if plan.settings else {}
    unpriced = unpriced_steps(rates, folder)
    lines = [*unknown_rates(rates, folder), *([str(unpriced)] if unpriced and not unpriced.of_kinds else [])]
    return [f"{plan.name}/{FILE_NAME}: {line}" for line in lines]


def _write_sources(lake: Lake, rows: list[dict[str, Any]]) -> None:
    table = table_of(SOURCES, rows)
    lake.replace(lake.folder(SOURCES) / PART, lambda path: pq.write_table(table, path, compression="zstd"), copy=False)


__all__ = ["HistoryOptions", "HistoryState", "SourceState", "plan_history", "read_history"]
