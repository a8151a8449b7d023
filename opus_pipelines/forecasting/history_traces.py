"""Implementations of the lake, or of an export of running cases, as traces."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.estimates.open_cases import continuations
from opus_pipelines.event_logs.files import data_files
from opus_pipelines.event_logs.source_settings import FILE_NAME
from opus_pipelines.forecasting.traces import Trace
from opus_pipelines.ingestion.ingest import HistoryOptions, read_history
from opus_pipelines.lake.layout import Lake, read_table

COLUMNS = ["case_id", "kind", "client", "contract", "attributes", "success", "tasks"]
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
    (`estimates.open_cases`).
    """
    rows = _rows(read_table(IMPLEMENTATIONS, folder, columns=COLUMNS))
    if rule is not None:
        return [_record(row, rule.holds(dict(row["attributes"] or ()))) for row in rows]
    ended = _p_ended(rows)
    return [_record(row, p < PROBABLY_ENDED) for row, p in zip(rows, ended, strict=True)]


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
        rows = _rows(read_table(IMPLEMENTATIONS, state.sources[0].folder, columns=COLUMNS))
    return [_record(row, True) for row in rows]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    rows = [row for row in table.to_pylist() if row["kind"] == "executed" and row["tasks"]]
    for row in rows:
        timed = [t for t in row["tasks"] if t["ended_at"] or t["started_at"]]
        row["tasks"] = sorted(timed, key=lambda t: t["ended_at"] or t["started_at"])
    return sorted((row for row in rows if row["tasks"]), key=lambda row: str(row["case_id"]))


def _record(row: dict[str, Any], is_open: bool) -> CaseRecord:
    tasks = row["tasks"]
    trace = Trace(
        case_id=str(row["case_id"]),
        activities=[t["task_key"] for t in tasks],
        times=_seconds(tasks),
        resources=[t["actor"] for t in tasks],
        costs_usd=[t["cost_usd"] for t in tasks],
        is_open=is_open,
        success=None if is_open else row["success"],
    )
    return CaseRecord(trace, row["client"], row["contract"])


def _seconds(tasks: Sequence[Mapping[str, Any]]) -> list[float]:
    return [(t["ended_at"] or t["started_at"]).timestamp() for t in tasks]


def _p_ended(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    names = sorted({t["task_key"] for row in rows for t in row["tasks"]})
    code = {name: n for n, name in enumerate(names)}
    activities = [np.array([code[t["task_key"]] for t in row["tasks"]], np.int64) for row in rows]
    times = [np.array(_seconds(row["tasks"]), float) for row in rows]
    return [c.p_ended for c in continuations(activities, times, [dict(row["attributes"] or ()) for row in rows])]
