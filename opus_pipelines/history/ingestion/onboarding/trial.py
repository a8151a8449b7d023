"""Reads one source alone, with provisional settings, into a temporary lake, to show what a rebuild would make of it.

The implementations are summarised: period, costs, times, resources, attributes of cases, and candidates for an outcome.
"""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.schemas import IMPLEMENTATIONS, REJECTS
from opus_pipelines.core.settings_files import toml_listed
from opus_pipelines.history.ingestion.ingest import HistoryOptions, HistoryState, read_history
from opus_pipelines.history.ingestion.plan import SourcePlan, plan_source
from opus_pipelines.history.records.activity_kinds import Classified, Evidence, by_activity, evidence_of
from opus_pipelines.history.records.arrow_arrays import mix_bits
from opus_pipelines.history.records.files import placed
from opus_pipelines.history.records.source_settings import FILE_NAME, SourceSettings, load_source
from opus_pipelines.lake.layout import Lake, read_table


@dataclass(frozen=True)
class Trial:
    """The result of a trial reading of a source.

    `folder` has its implementations, None if there are none. `files` are the rows of history/sources. `rejects` counts
    the rejected records by code and reason. `evidence` has the counts by activity, and `whole` those of all cases.
    """

    name: str
    settings: SourceSettings
    folder: Path | None
    files: list[dict[str, Any]]
    failed: list[str]
    rejects: Counter[tuple[str, str]]
    evidence: dict[str, Evidence]
    whole: Evidence

    def total(self, column: str) -> int:
        """Returns the sum of a count over all files."""
        return sum(row[column] or 0 for row in self.files)


@contextmanager
def trial_lake(name: str, files: Sequence[Path], rates: Mapping[str, float] | None = None) -> Iterator["TrialLake"]:
    """Yields a source `name` with these files in a temporary folder, which is removed at the end.

    `rates` has the dollars per unit of a currency.
    """
    with tempfile.TemporaryDirectory(prefix="opus-init-") as folder:
        yield TrialLake(Path(folder), name, files, rates or {})


class TrialLake:
    """A source that can be read repeatedly with different settings."""

    def __init__(self, root: Path, name: str, files: Sequence[Path], rates: Mapping[str, float]) -> None:
        self._root, self.name, self._rates = root, name, rates
        self.source = root / "history" / name
        self.source.mkdir(parents=True)
        for file in files:
            target = self.source / placed(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            _link_or_copy(file, target)

    def read(self, toml: str) -> Trial:
        """Reads the files with this source.toml. Raises SettingsError if it is invalid."""
        (self.source / FILE_NAME).write_text(toml, "utf-8")
        load_source(self.source)
        with tempfile.TemporaryDirectory(dir=self._root) as lake:
            plan = plan_source(self.source, self._rates, hard_links=True)
            return _kept(_read_alone(plan, Path(lake), self._rates), self._root / "implementations")


@contextmanager
def reading(source: Path, rates: Mapping[str, float] | None = None) -> Iterator[Trial]:
    """Reads a source in its own folder. Raises SettingsError if its source.toml is invalid.

    `rates` has the dollars per unit of a currency.
    """
    load_source(source)
    with tempfile.TemporaryDirectory(prefix="opus-check-") as folder:
        yield _read_alone(plan_source(source.resolve(), rates or {}), Path(folder) / "lake", rates or {})


def _read_alone(plan: SourcePlan, lake_folder: Path, rates: Mapping[str, float]) -> Trial:
    """Reads one source into a new lake, as if no other stood beside it."""
    lake, source = Lake(lake_folder), plan.folder
    lake_folder.mkdir(parents=True, exist_ok=True)
    alone = lake_folder / ".history"
    alone.mkdir()
    state = read_history(lake, alone, datetime.now(UTC), HistoryOptions(plans=[plan], usd_per_unit=rates))
    folder = state.sources[0].folder if state.sources else None
    evidence, whole = by_activity(evidence_of(folder)) if folder else ({}, Evidence())
    settings = load_source(source)
    settings = settings.model_copy(update={"usd_per_unit": {**rates, **settings.usd_per_unit}})
    return Trial(source.name, settings, folder, state.files, state.failed, _rejects(lake, state), evidence, whole)


def _rejects(lake: Lake, state: HistoryState) -> Counter[tuple[str, str]]:
    if not any(row["records_rejected"] for row in state.files):
        return Counter()
    folders = sorted((lake.root / REJECTS.name).glob("*/*"))
    rows = read_table(REJECTS, *folders, columns=["reason_code", "reason"]).to_pylist()
    return Counter((row["reason_code"], row["reason"]) for row in rows)


def _kept(trial: Trial, place: Path) -> Trial:
    """Returns the trial with its implementations moved to `place`, so that they remain after its lake is removed."""
    shutil.rmtree(place, ignore_errors=True)
    if trial.folder is None:
        return trial
    shutil.copytree(trial.folder, place)
    return Trial(**{**trial.__dict__, "folder": place})


def _link_or_copy(file: Path, to: Path) -> None:
    try:
        to.hardlink_to(file.resolve())
    except OSError:  # another disk, or a file system without hard links
        shutil.copyfile(file, to)


KNOWN_AT_START = 0.9  # share of the cases with the attribute whose first event has it
CONSTANT = 0.98  # share of the cases in which it never changes
OFTEN = 0.02  # share of the cases below which an ending is no candidate


@dataclass(frozen=True)
class Findings:
    """Counts of a source.

    `priced`, `timed`, `waited` and `named` count tasks with a cost, a working time, a waiting time and a resource.
    `succeeded` and `failed` count cases with a known outcome. `case_attributes` counts the cases that have each
    attribute. `constant_attributes` are attributes of events that never change within a case and are known at its
    first event. `endings` counts the cases by their last activity. `alike_ids` are ids of cases that are another
    spelling of one before (blanks, leading zeros, ".0", case of letters, Unicode form), `alike_by_decimals` tells
    whether they differ by ".0" alone, and `ids_as_activities` are names that are both a case and an activity.
    `titles` has the title of each activity of a process model whose key is not its title. `repeated` are the steps
    that equal an earlier one of their case, and `repeated_usd` what they cost. `drawn_actors` are the lanes and
    assignees that tasks of process models name; `with_drawn_actor` counts them.
    """

    cases: int
    tasks: int
    first: datetime | None
    last: datetime | None
    priced: int
    timed: int
    waited: int
    named: int
    with_text: int
    succeeded: int
    failed: int
    case_attributes: Counter[str]
    constant_attributes: tuple[str, ...]
    endings: Counter[str]
    alike_ids: tuple[str, ...] = ()
    alike_by_decimals: bool = False
    ids_as_activities: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    drawn_actors: tuple[str, ...] = ()
    with_drawn_actor: int = 0
    repeated: int = 0
    repeated_usd: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """A rule that could decide whether a case succeeded.

    It has the lines of TOML, and the numbers of cases that it would call successful and failed.
    """

    toml: str
    succeeded: int
    failed: int


def findings_of(trial: Trial) -> Findings:
    """Summarises the trial's implementations."""
    if trial.folder is None:
        return Findings(0, 0, None, None, 0, 0, 0, 0, 0, 0, 0, Counter(), (), Counter())
    table = pa.concat_tables(
        [pq.ParquetFile(file).read(columns=_COLUMNS) for file in sorted(trial.folder.glob("*.parquet"))]
    )
    table = table.combine_chunks()
    nothing = pa.array([], IMPLEMENTATIONS.schema.field("tasks").type)
    tasks = pa.concat_arrays(table["tasks"].chunks) if table["tasks"].num_chunks else nothing
    steps = pc.list_flatten(tasks)
    success = Counter(table["success"].to_pylist())
    is_drawn = pc.equal(table["kind"].combine_chunks(), "model")
    drawn_tasks = pc.list_flatten(tasks.filter(is_drawn))
    drawn, ids = pc.struct_field(drawn_tasks, "actor"), table["case_id"].to_pylist()
    return Findings(
        cases=table.num_rows,
        tasks=len(steps),
        first=pc.min(table["started_at"]).as_py(),
        last=pc.max(pc.coalesce(table["ended_at"], table["started_at"])).as_py(),
        priced=_known_count(pc.struct_field(steps, "cost_usd")),
        timed=_known_count(pc.struct_field(steps, "duration_ms")),
        waited=_known_count(pc.struct_field(steps, "wait_ms")),
        named=sum(evidence.named for evidence in trial.evidence.values()),
        with_text=_known_count(pc.coalesce(table["title"], table["description"])),
        succeeded=success[True],
        failed=success[False],
        case_attributes=Counter(key for chunk in table["attributes"].chunks for key in chunk.keys.to_pylist()),
        constant_attributes=constant_attributes(tasks),
        endings=_endings(tasks),
        alike_ids=_alike(ids),
        alike_by_decimals=_alike_by_decimals(ids),
        ids_as_activities=tuple(sorted(set(ids) & trial.evidence.keys())),
        titles=_titles(drawn_tasks),
        drawn_actors=tuple(sorted(pc.unique(drawn.drop_null()).to_pylist())),
        with_drawn_actor=_known_count(drawn),
        **_repeated(tasks),
    )


def _repeated(tasks: pa.ListArray) -> dict[str, Any]:
    """Counts the steps that equal an earlier one of their case in all that is known, and adds up what they cost."""
    steps, case = pc.list_flatten(tasks), pc.list_parent_indices(tasks).to_numpy().astype(np.int64)
    fields = {
        name: pc.struct_field(steps, name) for name in ("task_key", "actor", "started_at", "ended_at", "cost_usd")
    }
    total = case.view(np.uint64)
    for column in fields.values():
        codes = column.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False).astype(np.uint64)
        total = mix_bits(total * np.uint64(0x9E3779B97F4A7C15) + codes)
    _, place, counts = np.unique(total, return_inverse=True, return_counts=True)
    rows = pa.array(
        np.flatnonzero((counts[place] > 1) & pc.is_valid(fields["started_at"]).to_numpy(zero_copy_only=False))
    )
    told = (pc.struct_field(steps, "attributes").take(rows), *(column.take(rows) for column in fields.values()))
    owners = case[rows.to_numpy()].tolist()
    seen: set[str] = set()
    count, usd = 0, 0.0
    for owner, *values in zip(owners, *(column.to_pylist() for column in told), strict=True):
        key = repr((owner, values))
        if key in seen:
            count, usd = count + 1, usd + (values[-1] or 0.0)
        seen.add(key)
    return {"repeated": count, "repeated_usd": usd}


def _titles(steps: pa.StructArray) -> dict[str, str]:
    """Returns the first title of each activity whose titles are not its key."""
    keys, titles = pc.struct_field(steps, "task_key"), pc.struct_field(steps, "title")
    other = pc.fill_null(pc.not_equal(keys, titles), False)
    pairs = zip(keys.filter(other).to_pylist(), titles.filter(other).to_pylist(), strict=True)
    found: dict[str, str] = {}
    for key, title in pairs:
        found.setdefault(key, title)
    return found


_DECIMALS = re.compile(r"^(\d+)[.,]0+$")


def _alike(ids: Iterable[str]) -> tuple[str, ...]:
    """Returns the ids that a person would take for another one: equal but for blanks, zeros and Unicode form."""
    first: dict[str, str] = {}
    return tuple(one for one in ids if first.setdefault(_bare(one), one) != one)


def _alike_by_decimals(ids: Sequence[str]) -> bool:
    """Tells whether some ids are other spellings of another one, and each of them by ".0" alone."""
    whole = {_DECIMALS.sub(r"\1", one) for one in ids}
    return len(whole) < len(set(ids)) and len(whole) == len(set(map(_bare, ids)))


def _bare(ident: str) -> str:
    """Returns an id in one Unicode form and case of letters, with single blanks, without leading zeros and ".0"."""
    bare = " ".join(normalize("NFC", ident).casefold().split())
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", _DECIMALS.sub(r"\1", bare))


_STEP = ("task_key", "title", "actor", "started_at", "ended_at", "duration_ms", "wait_ms", "cost_usd", "attributes")
_COLUMNS = [
    "case_id",
    "kind",
    "started_at",
    "ended_at",
    "success",
    "title",
    "description",
    "attributes",
    *(f"tasks.list.element.{name}" for name in _STEP),
]


def _known_count(values: pa.Array) -> int:
    return len(values) - int(values.null_count)


def constant_attributes(tasks: pa.ListArray) -> tuple[str, ...]:
    """Returns the attributes of events that belong to the case: the same in all its events, and known at the first."""
    case = pc.list_parent_indices(tasks).to_numpy()
    maps = pc.struct_field(pc.list_flatten(tasks), "attributes")
    filled = np.diff(maps.offsets.to_numpy())
    step = np.repeat(np.arange(len(maps)), filled)
    keys, values = maps.keys.dictionary_encode(), maps.items.dictionary_encode()
    if not len(step):
        return ()
    key, value = (array.indices.to_numpy(zero_copy_only=False).astype(np.int64) for array in (keys, values))
    names, of_case = keys.dictionary.to_pylist(), case[step].astype(np.int64)
    first = np.ones(len(case), bool)
    first[1:] = case[1:] != case[:-1]
    many = np.bincount(case, minlength=int(case.max()) + 1) > 1
    pairs = of_case * len(names) + key
    distinct = np.unique(np.stack([pairs, value]), axis=1)[0]
    pair, counts = np.unique(distinct, return_counts=True)
    at_start = np.isin(pair, pairs[first[step]])
    long_enough = many[pair // len(names)]
    stable = []
    for place, name in enumerate(names):
        mine = pair % len(names) == place
        several = mine & long_enough
        constant = not several.any() or (counts[several] == 1).mean() >= CONSTANT
        if constant and at_start[mine].mean() >= KNOWN_AT_START:
            stable.append(name)
    return tuple(sorted(stable))


def outcome_candidates(findings: Findings, kinds: dict[str, Classified], trial: Trial) -> list[Outcome]:
    """Returns rules that could decide success, with their counts. It chooses none of them."""
    candidates: list[Outcome] = []
    if not trial.whole.cases:
        return candidates  # process models were never carried out: they have no outcomes
    refused = sorted(name for name, kind in kinds.items() if kind.kind == "outcome")
    if refused:
        bad = _cases_with(trial.folder, set(refused))
        candidates.append(Outcome(f"contains_none_of = {toml_listed(refused)}", findings.cases - bad, bad))
    endings = [name for name, _ in findings.endings.most_common() if name not in refused]
    for name in endings[:3]:
        good = findings.endings[name]
        if OFTEN * findings.cases <= good < findings.cases:
            candidates.append(Outcome(f"last_activity_in = {toml_listed([name])}", good, findings.cases - good))
    return candidates


def _cases_with(folder: Path | None, names: set[str]) -> int:
    wanted, count = pa.array(sorted(names)), 0
    for file in sorted(folder.glob("*.parquet")) if folder else ():
        for batch in pq.ParquetFile(file).iter_batches(columns=["tasks.list.element.task_key"]):
            hit = pc.is_in(pc.struct_field(pc.list_flatten(batch["tasks"]), "task_key"), wanted)
            count += len(pc.unique(pc.list_parent_indices(batch["tasks"]).filter(hit)))
    return count


def _endings(tasks: pa.ListArray) -> Counter[str]:
    ends = np.cumsum(pc.fill_null(pc.list_value_length(tasks), 0).to_numpy(zero_copy_only=False))
    lengths = np.diff(np.concatenate([[0], ends]))
    keys = pc.struct_field(pc.list_flatten(tasks), "task_key").take(pa.array(ends[lengths > 0] - 1))
    return Counter({row["values"]: row["counts"] for row in pc.value_counts(keys).to_pylist()})


def attribute_values(folder: Path, name: str) -> Counter[str]:
    """Returns the values of a case attribute, with the number of cases that have each."""
    counts: Counter[str] = Counter()
    for file in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=["attributes"]):
            values = pc.map_lookup(batch["attributes"], name, "first").drop_null()
            counts.update({row["values"]: row["counts"] for row in pc.value_counts(values).to_pylist()})
    return counts
