"""Counts the evidence for the kind of each activity from the implementations of a source.

All counts are exact integers, so counts of several files or parts of a source can be added. The implementations are
streamed through Arrow, one batch of cases at a time; Spark is not used.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.history.records.activity_kinds import Evidence
from opus_pipelines.history.records.step_arrays import distinct

_TEXT, _COUNT = pa.string(), pa.int64()
KEY = ("industry", "task_key")
COUNTS = {
    "occurrences": "events of this activity",
    "executed": "of these, in cases that were carried out (not in a process model)",
    "first": "of the executed, at the start of their case",
    "last": "of the executed, at the end of their case",
    "followed": "of the executed, with another activity after them in the same case",
    "repeat_follows": "of the followed, where the next activity had already been done in this case",
    "named": "of the executed, with a resource that names a person, team or role",
    "automatic": "of the executed, done by a resource that names a system, or by a program",
    "timed": "of the executed, with a known working time",
    "instant": "of the timed, with a working time of zero",
    "waited": "of the executed, with a known waiting time before them",
    "no_wait": "of the waited, with a waiting time of zero",
    "dated": "of the executed, with a known time",
    "whole_hour": (
        "of the dated, at a whole hour (no minutes, no seconds): typical for a date that was written "
        "without a time of day"
    ),
    "cases": "executed cases that hold the activity",
    "cases_known": "of these, with a known outcome",
    "cases_succeeded": "of the cases_known, that succeeded",
}
EVIDENCE = pa.schema([(name, _TEXT) for name in KEY] + [(name, _COUNT) for name in COUNTS])

_STEP = ("task_key", "actor", "actor_kind", "started_at", "ended_at", "duration_ms", "wait_ms")
COLUMNS = ["industry", "kind", "success", "weight", *(f"tasks.list.element.{name}" for name in _STEP)]
NOBODY = frozenset(
    {"", "-", "n/a", "na", "nan", "none", "null", "missing", "undefined", "unknown", "unbekannt", "not set", "(null)"}
)
SYSTEMS = frozenset(
    {
        "system",
        "sys",
        "auto",
        "automatic",
        "automated",
        "batch",
        "batch job",
        "bot",
        "robot",
        "cron",
        "scheduler",
        "workflow engine",
        "job",
        "program",
        "application",
        "automatisch",
        "automat",
        "systeem",
        "stapelverarbeitung",
    }
)
_HOUR = 3_600_000_000  # microseconds


def evidence_of(folder: Path) -> pa.Table:
    """Counts the evidence of all activities in the Parquet files of `folder`.

    The rows are sorted by key. One row per industry has no task_key: it counts all cases.
    """
    files = sorted(folder.glob("*.parquet"))
    return add_up(
        evidence_of_batch(batch) for file in files for batch in pq.ParquetFile(file).iter_batches(columns=COLUMNS)
    )


def activity_names(folder: Path) -> list[str]:
    """Returns the names of all activities in the Parquet files of `folder`, sorted."""
    names: set[str] = set()
    for file in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=["tasks.list.element.task_key"]):
            names.update(pc.unique(pc.struct_field(pc.list_flatten(batch["tasks"]), "task_key")).to_pylist())
    return sorted(names - {None})


def by_activity(table: pa.Table) -> tuple[dict[str, Evidence], Evidence]:
    """Returns the evidence of a source by activity name, and the counts of all its cases.

    The counts are summed over the industries of the source.
    """
    per_activity: dict[str, Evidence] = {}
    whole = Evidence()
    for row in table.to_pylist():
        counts = Evidence(**{name: row[name] for name in COUNTS})
        if row["task_key"] is None:
            whole += counts
        else:
            per_activity[row["task_key"]] = per_activity.get(row["task_key"], Evidence()) + counts
    return per_activity, whole


def add_up(parts: Iterable[pa.Table]) -> pa.Table:
    """Adds the evidence of several parts and sorts the result by key. The order of the parts does not matter."""
    table = pa.concat_tables([EVIDENCE.empty_table(), *parts])
    summed = table.group_by(list(KEY)).aggregate([(name, "sum") for name in COUNTS]).rename_columns([*KEY, *COUNTS])
    return (
        summed.take(pc.sort_indices(summed, sort_keys=[(name, "ascending", "at_start") for name in KEY]))
        .cast(EVIDENCE)
        .combine_chunks()
    )


def evidence_of_batch(batch: pa.RecordBatch) -> pa.Table:
    """Counts the evidence of one batch of implementations."""
    steps, lists = pc.list_flatten(batch["tasks"]), batch["tasks"]
    case = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    encoded = pc.struct_field(steps, "task_key").dictionary_encode()
    key, names = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary
    weight = pc.fill_null(batch["weight"], 1).to_numpy()
    executed = pc.fill_null(pc.not_equal(batch["kind"], "model"), True).to_numpy(zero_copy_only=False)
    industry = batch["industry"].dictionary_encode("encode")
    of_industry = industry.indices.to_numpy().astype(np.int64)
    facts = _facts(steps, case, key, executed[case])
    rows = _per_key(
        of_industry[case] * max(len(names), 1) + key, {name: fact * weight[case] for name, fact in facts.items()}
    )
    code = rows.pop("code")
    keys = {
        "industry": industry.dictionary.take(pa.array(code // max(len(names), 1))),
        "task_key": names.take(pa.array(code % max(len(names), 1))),
    }
    every_case = {"industry": batch["industry"], "task_key": pa.nulls(len(batch), _TEXT)}
    cases = _cases(batch, executed, weight)
    return add_up(
        [
            _table(keys, rows),
            _table(every_case, cases),
            _case_counts(batch["industry"], case, key, names, cases),
        ]
    )


def _facts(steps: pa.StructArray, case: np.ndarray, key: np.ndarray, executed: np.ndarray) -> dict[str, np.ndarray]:
    """Computes, for every step of a case that was carried out, which of the counted facts hold.

    Each array has one element per step.
    """
    n = len(case)
    first = np.ones(n, bool)
    first[1:] = case[1:] != case[:-1]
    last = np.ones(n, bool)
    last[:-1] = first[1:]
    again = np.ones(n, bool)
    again[np.unique(case * (key.max(initial=0) + 1) + key, return_index=True)[1]] = False
    next_again = np.zeros(n, bool)
    next_again[:-1] = again[1:] & ~first[1:]
    named, automatic = _who(steps)
    time = pc.coalesce(pc.struct_field(steps, "started_at"), pc.struct_field(steps, "ended_at")).cast(_COUNT)
    dated = _known(time)
    facts = {
        "executed": executed,
        "first": first,
        "last": last,
        "followed": ~last,
        "repeat_follows": next_again,
        "named": named,
        "automatic": automatic,
        "dated": dated,
        "whole_hour": dated & (pc.fill_null(time, 1).to_numpy(zero_copy_only=False) % _HOUR == 0),
    }
    for known, zero, column in (("timed", "instant", "duration_ms"), ("waited", "no_wait", "wait_ms")):
        values = pc.struct_field(steps, column)
        facts[known] = _known(values)
        facts[zero] = pc.fill_null(pc.equal(values, 0.0), False).to_numpy(zero_copy_only=False)
    return {"occurrences": np.ones(n, bool)} | {name: fact & executed for name, fact in facts.items()}


def _who(steps: pa.StructArray) -> tuple[np.ndarray, np.ndarray]:
    """Computes two flags for every step: a person, team or role is named; a system or program did it."""
    actor = pc.utf8_lower(
        pc.utf8_trim_whitespace(pc.fill_null(pc.struct_field(steps, "actor"), ""))
    ).dictionary_encode()
    names = actor.dictionary.to_pylist()
    nobody = np.array([name in NOBODY for name in names], bool)
    system = np.array([name in SYSTEMS for name in names], bool)
    index = actor.indices.to_numpy(zero_copy_only=False)
    kind = pc.fill_null(pc.struct_field(steps, "actor_kind"), "")
    program = pc.is_in(kind, pa.array(["code", "model"])).to_numpy(zero_copy_only=False)
    human = pc.equal(kind, "human").to_numpy(zero_copy_only=False)
    if not len(index):
        return human, program
    automatic = program | system[index]
    return (human & ~nobody[index] | ~nobody[index]) & ~automatic, automatic


def _case_counts(
    industry: pa.Array, case: np.ndarray, key: np.ndarray, names: pa.Array, counts: dict[str, np.ndarray]
) -> pa.Table:
    """Counts the executed cases that contain each activity, and how many succeeded, from the counts per case."""
    size = max(len(names), 1)
    pairs = distinct(case * size + key)
    of_case, of_key = pairs // size, pairs % size
    columns = {"industry": industry.take(pa.array(of_case)), "task_key": names.take(pa.array(of_key))}
    return _table(columns, {name: values[of_case] for name, values in counts.items()})


def _cases(batch: pa.RecordBatch, executed: np.ndarray, weight: np.ndarray) -> dict[str, np.ndarray]:
    known = pc.is_valid(batch["success"]).to_numpy(zero_copy_only=False) & executed
    right = pc.fill_null(batch["success"], False).to_numpy(zero_copy_only=False) & executed
    return {"cases": executed * weight, "cases_known": known * weight, "cases_succeeded": right * weight}


def _per_key(code: np.ndarray, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    codes, place = np.unique(code, return_inverse=True)
    sums = {}
    for name, value in values.items():
        sums[name] = np.zeros(len(codes), np.int64)
        np.add.at(sums[name], place, value)
    return {"code": codes} | sums


def _table(columns: dict[str, pa.Array], counts: dict[str, np.ndarray]) -> pa.Table:
    """Builds rows of evidence. Counts that are not given are 0."""
    size = len(next(iter(columns.values())))
    zero = np.zeros(size, np.int64)
    return pa.table(
        [*(columns[name] for name in KEY), *(pa.array(counts.get(name, zero), _COUNT) for name in COUNTS)],
        schema=EVIDENCE,
    )


def _known(values: pa.Array) -> np.ndarray:
    known: np.ndarray = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return known
