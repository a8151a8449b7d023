"""Finds the edges and tasks of a log: which steps follow each other, and how often.

The settings of a single file that nobody prepared are guessed from its first rows. What was discovered is shown as one
line of counts and the most frequent tasks and edges.
"""

import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import parse
from opus_pipelines.history.ingestion.onboarding.layouts import arranged
from opus_pipelines.history.ingestion.onboarding.propose import first_draft, kind_of
from opus_pipelines.history.ingestion.onboarding.report import ASSUMED_ZONE, Stated, source_text
from opus_pipelines.history.ingestion.onboarding.trial import reading
from opus_pipelines.history.records.arrow_arrays import Longs, array, consecutive, numbers
from opus_pipelines.history.records.assembler import Assembler, LogFile, OtherFiles, Outlets
from opus_pipelines.history.records.files import open_data
from opus_pipelines.history.records.formats import Format
from opus_pipelines.history.records.raw import COUNT_COLUMNS, Counts, Reject
from opus_pipelines.history.records.redaction import mask_texts
from opus_pipelines.history.records.source_settings import SourceSettings

COUNTED_COLUMNS = (
    "weight",
    *(f"tasks.list.element.{f}" for f in ("task_key", "started_at", "ended_at", "predecessors")),
)


class Tally:
    """Adds up edges and tasks of the implementations in batches, which have at least COUNTED_COLUMNS."""

    def __init__(self, masks: bool = False, names: bool = False) -> None:
        """`masks`: the names of tasks are masked, those of persons in them where `names` says so."""
        self._masks, self._names = masks, names
        self._edges: list[pa.Table] = []
        self._tasks: list[pa.Table] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the implementations of a batch."""
        steps = pc.list_flatten(batch["tasks"])
        coded = pc.struct_field(steps, "task_key").dictionary_encode()
        names, code = coded.dictionary, numbers(coded.indices, np.int32)
        if self._masks and len(names):
            masked = mask_texts(names, self._names).dictionary_encode()
            names, code = masked.dictionary, numbers(masked.indices, np.int32)[code]
        lengths = numbers(pc.list_value_length(batch["tasks"]), np.int32).astype(np.int64)
        case = np.repeat(np.arange(len(lengths)), lengths)
        weight = numbers(batch["weight"].cast(pa.int64()), np.int64)[case]
        seen = pc.coalesce(pc.struct_field(steps, "started_at"), pc.struct_field(steps, "ended_at"))
        places, filled = np.cumsum(lengths), lengths > 0
        starts, ends = np.zeros_like(weight), np.zeros_like(weight)
        starts[(places - lengths)[filled]] = weight[(places - lengths)[filled]]
        ends[places[filled] - 1] = weight[places[filled] - 1]
        columns = {"task": array(code, pa.int32()), "case": array(case, pa.int64()), "seen": seen}
        columns |= {name: array(one, pa.int64()) for name, one in (("n", weight), ("starts", starts), ("ends", ends))}
        self._tasks.append(_counted(pa.table(columns), {"task": names}, ["starts", "ends"]))
        before, after = consecutive(lengths, pc.struct_field(steps, "predecessors"))
        pairs: dict[str, Longs] = {"case": case[after], "n": weight[after]}
        columns = {"src": array(code[before], pa.int32()), "dst": array(code[after], pa.int32())}
        columns |= {name: array(one, pa.int64()) for name, one in pairs.items()}
        columns["seen"] = seen.take(array(after, pa.int64()))
        self._edges.append(_counted(pa.table(columns), {"src": names, "dst": names}))

    def edges(self) -> pa.Table:
        """Returns a row for each pair of tasks, sorted by the names of both."""
        return _summed(self._edges, ["src", "dst"], {"transitions": "n", "cases": "cases"})

    def tasks(self) -> pa.Table:
        """Returns a row for each task, sorted by its name."""
        counts = {"occurrences": "n", "cases": "cases", "starts": "starts", "ends": "ends"}
        return _summed(self._tasks, ["task"], counts)


def _counted(rows: pa.Table, names: Mapping[str, pa.Array], more: Sequence[str] = ()) -> pa.Table:
    """Returns a row for each key of `names`: how often, in how many cases, and when first and last it occurs."""
    keys, counts = list(names), ["n", *more]
    sums, seen = [(name, "sum") for name in counts], [("seen", "min"), ("seen", "max")]
    in_cases = rows.group_by([*keys, "case"]).aggregate([*sums, ("n", "max"), *seen])
    sums = [(f"{name}_sum", "sum") for name in counts]
    whole = in_cases.group_by(keys).aggregate([*sums, ("n_max", "sum"), ("seen_min", "min"), ("seen_max", "max")])
    columns = {key: texts.take(whole[key].combine_chunks()) for key, texts in names.items()}
    columns |= {name: whole[f"{name}_sum_sum"] for name in counts}
    return pa.table(
        columns | {"cases": whole["n_max_sum"], "seen_min": whole["seen_min_min"], "seen_max": whole["seen_max_max"]}
    )


def _summed(parts: list[pa.Table], keys: list[str], counts: Mapping[str, str]) -> pa.Table:
    """Adds up parts, sorted by key. `counts` has the counts by the name that they get."""
    if not parts:
        return pa.table({name: pa.array([], pa.string()) for name in keys})
    sums = [(name, "sum") for name in counts.values()]
    whole = pa.concat_tables(parts).group_by(keys).aggregate([*sums, ("seen_min", "min"), ("seen_max", "max")])
    shown = {key: whole[key] for key in keys} | {new: whole[f"{name}_sum"] for new, name in counts.items()}
    shown |= {"first_seen": whole["seen_min_min"], "last_seen": whole["seen_max_max"]}
    return pa.table(shown).sort_by([(key, "ascending") for key in keys])


@dataclass(frozen=True)
class Discovered:
    """What a log shows: edges, tasks, the counts of its records, and the rejects by code and reason."""

    edges: pa.Table
    tasks: pa.Table
    counts: Counts
    rejects: Counter[tuple[str, str]]


def discover(place: Path, usd_per_unit: Mapping[str, float]) -> Discovered:
    """Returns what the source in this folder shows. Raises InputError if nothing of it can be read.

    `usd_per_unit` has the exchange rates of opus.toml.
    """
    tally = Tally()
    with reading(place, usd_per_unit) as trial:
        if trial.folder is None:
            raise InputError("\n".join(trial.failed) or f"{place}: no case can be read of it")
        for file in sorted(trial.folder.glob("*.parquet")):
            with pq.ParquetFile(file) as stored:
                for batch in stored.iter_batches(columns=list(COUNTED_COLUMNS)):
                    tally.add(batch)
        totals: dict[str, Any] = {name: trial.total(column) for name, column in COUNT_COLUMNS.items()}
        return Discovered(tally.edges(), tally.tasks(), Counts(**totals), trial.rejects)


def discover_file(file: Path, kind: Format, settings: SourceSettings) -> Discovered:
    """Returns what one file shows, with the settings of its source. Raises InputError if it cannot be read.

    Its implementations are counted and then forgotten.
    """
    tally, rejects = Tally(settings.redact.mask_text, settings.redact.mask_names), Counter[tuple[str, str]]()

    def count_reject(reject: Reject) -> None:
        rejects[reject.code, reject.reason] += 1

    with tempfile.TemporaryDirectory(prefix="opus-discover-") as folder:
        outlets = Outlets(tally.add, count_reject, folder=Path(folder), are_kept=False)
        sink = Assembler(LogFile(file.name, file.name, kind), settings, OtherFiles(), outlets)
        kind.reader()(partial(open_data, file), settings, sink)
        sink.finish()
    return Discovered(tally.edges(), tally.tasks(), sink.counts, rejects)


_EPOCH, _MICROS_A_DAY = date(1970, 1, 1).toordinal(), 86_400_000_000
Table = tuple[str, list[str], list[list[Any]]]


def headline(name: str, found: Discovered) -> str:
    """Returns the counts of records, cases, tasks and edges, and the period."""
    counts, tasks = found.counts, found.tasks
    first, last = _day(pc.min(tasks["first_seen"])), _day(pc.max(tasks["last_seen"]))
    period = f", {first} to {last}" if first and last else ", no times"
    return (
        f"{name}: {counts.records:,} records, {counts.implementations:,} cases, {tasks.num_rows:,} tasks, "
        f"{found.edges.num_rows:,} edges{period}"
    )


def _day(moment: pa.Scalar) -> date | None:
    """Returns the day of a moment. Arrow's own conversion imports pandas, which takes a fifth of a second."""
    micros = moment.cast(pa.int64()).as_py()
    return None if micros is None else date.fromordinal(_EPOCH + micros // _MICROS_A_DAY)


def set_aside(found: Discovered) -> list[str]:
    """Returns a line for the cases that were set aside, and for each of the three most frequent reasons."""
    counts = found.counts
    if not counts.rejected:
        return []
    lines = [f"{counts.rejected:,} records rejected; {counts.quarantined:,} cases with such a record are not counted"]
    causes = [(count, reason) for (code, reason), count in found.rejects.items() if code != "case_quarantined"]
    return lines + [f"{count:,} records: {reason}" for count, reason in sorted(causes, reverse=True)[:3]]


def tables(found: Discovered, top: int) -> list[Table]:
    """Returns the `top` most frequent tasks and edges, each with its title and columns."""
    tasks = ("Tasks", found.tasks, "occurrences", ["task"])
    edges = ("Edges", found.edges, "transitions", ["src", "dst"])
    return [_table(title, rows, by, names, top) for title, rows, by, names in (tasks, edges)]


def _table(title: str, rows: pa.Table, by: str, names: list[str], top: int) -> Table:
    shown = rows.sort_by([(by, "descending"), *((name, "ascending") for name in names)]).slice(0, top)
    of = f": the {top:,} most frequent of {rows.num_rows:,}" if rows.num_rows > top else ""
    columns = [name for name in rows.column_names if name not in ("first_seen", "last_seen")]
    return title + of, columns, [list(row.values()) for row in shown.select(columns).to_pylist()]


def settings_of_file(file: Path, stated: Stated) -> tuple[SourceSettings, list[str]]:
    """Returns the settings with which a file can be read, and a line for each that is assumed.

    Raises InputError if it cannot be told which column is what.
    """
    kind = kind_of(file)
    _, _, sample, stated = arranged([file], [kind], stated)
    draft = first_draft([file], [kind], sample, stated)
    settings = parse(SourceSettings, tomllib.loads(source_text(draft)), file.name)
    notes = [f"{key} {draft.plain.get(key, '')}: {why}" for key, why in draft.notes.items() if "assumed" in why]
    zone = settings.timezone or stated.timezone or ASSUMED_ZONE
    return settings.model_copy(update={"timezone": zone, "format": kind}), notes
