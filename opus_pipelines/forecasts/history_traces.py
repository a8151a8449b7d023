"""Implementations of the lake, or of an export of running cases, as traces."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from opus_pipelines.core.errors import InputError
from opus_pipelines.forecasts.traces import Trace
from opus_pipelines.history.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.history.records.files import data_files
from opus_pipelines.history.records.source_settings import FILE_NAME
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.estimates.open_cases import Events, continuations

COLUMNS = ["case_id", "kind", "client", "contract", "attributes", "success", "tasks"]
STEP = ("task_key", "started_at", "ended_at", "actor", "cost_usd")  # what is read of a step
BATCH_CASES = 4_096
PROBABLY_ENDED = 0.5  # chance of having ended from which a case of history is taken to have ended
YES = frozenset({"1", "true", "yes", "y", "open", "running"})


@dataclass(frozen=True)
class OpenRule:
    """The attribute of a case that says that it still runs, and the value that says so; None: any word for yes."""

    attribute: str
    value: str | None = None

    @classmethod
    def of(cls, text: str) -> "OpenRule":
        """Reads `ATTRIBUTE` or `ATTRIBUTE=VALUE`."""
        attribute, equals, value = text.partition("=")
        return cls(attribute.strip(), value.strip() if equals else None)

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether a case with these attributes still runs.

        Raises:
            InputError: the case has no such attribute.
        """
        if self.attribute not in attributes:
            known = ", ".join(sorted(attributes)) or "none"
            raise InputError(
                f"cases have no attribute {self.attribute!r} that says whether they are open; they have: {known}. "
                "Name it in `attributes` of source.toml"
            )
        found = attributes[self.attribute].strip()
        return found == self.value if self.value is not None else found.lower() in YES


@dataclass(frozen=True)
class CaseRecord:
    """A trace with what else is known of its case."""

    trace: Trace
    client: str | None
    contract: str | None


def history_records(folder: Path, rule: OpenRule | None) -> list[CaseRecord]:
    """The executed cases in a folder of implementations, in the order of their ids.

    Without a rule, a case is open where it has more likely not ended, by the silence since its last event
    (`wkg.estimates.open_cases`).
    """
    cases = _cases(folder)
    if rule is not None:
        return [_record(case, rule.holds(case.attributes)) for case in cases]
    return [_record(case, p < PROBABLY_ENDED) for case, p in zip(cases, _p_ended(cases), strict=True)]


def export_records(lake: Lake, source: Path, export: Path, rates: Mapping[str, float]) -> list[CaseRecord]:
    """The cases of an export (a file or a folder), read with the settings of the history folder `source`; all are open.

    Names are masked with the key of `lake`, as they are in its history. `rates`: dollars per unit of a currency.

    Raises:
        InputError: the export holds no case that can be read.
    """
    files = [export] if export.is_file() else [Path(file) for file in data_files(export)]
    with tempfile.TemporaryDirectory(prefix="opus-forecast-") as folder:
        history, work = Path(folder) / "history", Lake(Path(folder) / "lake")
        (history / source.name).mkdir(parents=True)
        for file in files:
            shutil.copyfile(file, history / source.name / file.name)
        if (source / FILE_NAME).is_file():
            shutil.copyfile(source / FILE_NAME, history / source.name / FILE_NAME)
        if (lake.kept / "private.key").is_file():
            work.kept.mkdir(parents=True)
            shutil.copyfile(lake.kept / "private.key", work.kept / "private.key")
        options = HistoryOptions(usd_per_unit=rates, max_quarantined_share=1.0)
        state = read_history(work, history, datetime.now(UTC), options)
        if not state.sources:
            why = "; ".join(state.failed) or "it holds no cases"
            raise InputError(f"{export} cannot be read with the settings of source {source.name}: {why}")
        return [_record(case, True) for case in _cases(state.sources[0].folder)]


@dataclass(frozen=True, slots=True)
class _Case:
    """What forecasting takes of an implementation. Its events are in order of time; `times` are seconds."""

    case_id: str
    client: str | None
    contract: str | None
    attributes: dict[str, str]
    success: bool | None
    activities: list[str]
    times: np.ndarray
    resources: list[str | None]
    costs_usd: list[float | None]


def _cases(folder: Path) -> list[_Case]:
    """The executed cases in a folder, in the order of their ids.

    The files are read in batches and only what is needed, since a source may have millions of cases. A column that an
    older file lacks is unknown.
    """
    columns = [*(name for name in COLUMNS if name != "tasks"), *(f"tasks.list.element.{name}" for name in STEP)]
    same: dict[str, str] = {}  # one object for each text, however often it occurs
    found = [
        case
        for file in sorted(folder.glob("*.parquet"))
        for batch in pq.ParquetFile(file).iter_batches(BATCH_CASES, columns=columns)
        for row in batch.to_pylist()
        if row.get("kind") == "executed" and (case := _case(row, same)).activities
    ]
    return sorted(found, key=lambda case: case.case_id)


def _case(row: Mapping[str, Any], same: dict[str, str]) -> _Case:
    timed = [t for t in row["tasks"] or () if t["ended_at"] or t["started_at"]]
    tasks = sorted(timed, key=lambda t: t["ended_at"] or t["started_at"])
    return _Case(
        case_id=str(row["case_id"]),
        client=_same(row.get("client"), same),
        contract=_same(row.get("contract"), same),
        attributes={same.setdefault(k, k): same.setdefault(v, v) for k, v in row.get("attributes") or ()},
        success=row.get("success"),
        activities=[same.setdefault(t["task_key"], t["task_key"]) for t in tasks],
        times=np.array([(t["ended_at"] or t["started_at"]).timestamp() for t in tasks], float),
        resources=[_same(t.get("actor"), same) for t in tasks],
        costs_usd=[t.get("cost_usd") for t in tasks],
    )


def _same(text: str | None, same: dict[str, str]) -> str | None:
    return None if text is None else same.setdefault(text, text)


def _record(case: _Case, is_open: bool) -> CaseRecord:
    trace = Trace(
        case_id=case.case_id,
        activities=case.activities,
        times=case.times.tolist(),
        resources=case.resources,
        costs_usd=case.costs_usd,
        is_open=is_open,
        success=None if is_open else case.success,
    )
    return CaseRecord(trace, case.client, case.contract)


def _p_ended(cases: Sequence[_Case]) -> list[float]:
    names = sorted({name for case in cases for name in case.activities})
    code = {name: n for n, name in enumerate(names)}
    events = Events(
        np.array([len(case.activities) for case in cases], np.int64),
        np.array([code[name] for case in cases for name in case.activities], np.int64),
        np.concatenate([np.zeros(0), *(case.times for case in cases)]),
    )
    return continuations(events, [case.attributes for case in cases]).p_ended.tolist()
