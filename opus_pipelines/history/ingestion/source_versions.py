"""Keeps the version of each source that is in use: the last one that was read without loss.

A source that cannot be read as it is keeps that version. `wkg/kept/history.json` names the versions, by keyed hashes of
the sources' names and files. It is a kept file: an input of a rebuild, like the id ledger.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.ingestion.plan import SourcePlan
from opus_pipelines.history.records.activity_kinds import ActivityKind
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import log_formats
from opus_pipelines.lake.layout import PART, Lake, read_json


@dataclass(frozen=True)
class SourceVersion:
    """One version of a source: its partition of history/implementations, its settings and its number of cases.

    `stated` has the kinds of activities that its settings stated, `by_activities` tells whether the activities of a
    case decide its outcome by the rule of the settings, `files` has the hashes of the files that its cases came from,
    and `without` the hashes of the files that could not be read then. `doubt` says what was read without an error and
    may yet be wrong, without a name of the data. `open_cases` is what the settings state of cases that still run.
    """

    content: str
    industry: str | None
    merge: bool
    implementations: int
    files: tuple[str, ...]
    stated: Mapping[str, ActivityKind] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    by_activities: bool = False
    doubt: str | None = None
    open_cases: tuple[str, ...] = ()

    def folder(self, lake: Lake, source: str) -> Path:
        """Returns the folder of its implementations."""
        return lake.folder(IMPLEMENTATIONS, source_key=source, content=self.content)


class SourceVersions:
    """The versions in use, by source."""

    def __init__(self, forgotten: Forgotten, versions: Mapping[str, SourceVersion]) -> None:
        self._forgotten, self._versions = forgotten, dict(versions)
        self._kept: dict[str, SourceVersion] = {}

    @classmethod
    def of(cls, lake: Lake) -> "SourceVersions":
        """Loads the versions that the lake keeps."""
        kept = read_json(_path(lake)) or {}
        versions = {
            mark: SourceVersion(
                **{name: row[name] for name in SourceVersion.__dataclass_fields__ if name in row}
                | {name: tuple(row.get(name, ())) for name in ("files", "without", "open_cases")}
            )
            for mark, row in kept.items()
        }
        return cls(Forgotten.of(lake), versions)

    def get(self, source: str) -> SourceVersion | None:
        """Returns the last good version of a source, or None if there is none."""
        return self._versions.get(self._forgotten.mark(source))

    def keep(self, source: str, version: SourceVersion) -> None:
        """Records the version of a source that is in use from now on."""
        self._kept[self._forgotten.mark(source)] = version

    def marks(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Returns keyed hashes of file paths."""
        return tuple(sorted(map(self._forgotten.mark, paths)))

    def save(self, lake: Lake) -> None:
        """Saves the versions in use, and no other. The caller must hold the lake's lock."""
        rows = {mark: _as_json(version) for mark, version in sorted(self._kept.items())}
        if rows != (read_json(_path(lake)) or {}):
            lake.replace_json(_path(lake), rows)


def _as_json(version: SourceVersion) -> dict[str, Any]:
    lists = {"files": list(version.files), "without": list(version.without)}
    lists["open_cases"] = list(version.open_cases)
    return vars(version) | lists | {"stated": dict(sorted(version.stated.items()))}


def contents_in_use(lake: Lake) -> set[str]:
    """Returns the contents of all versions in use."""
    return {row["content"] for row in (read_json(_path(lake)) or {}).values()}


def why_held(
    plan: SourcePlan, rows: Sequence[Mapping[str, Any]], versions: SourceVersions, max_share: float
) -> str | None:
    """Returns why the newly read rows must not replace the version in use, or None if they may.

    `rows` are the rows of history/sources of the source's files as read now. If the source has no earlier version,
    nothing of it is used then.
    """
    if plan.settings is None:
        return plan.refused
    # Each model stands for itself: one that is lost truncates no other.
    models = {f.name for f in log_formats() if f.kind == "model"}
    event_logs = {f.name for f in log_formats() if f.kind == "executed" and not f.record_is_case}
    logs = [row for row in rows if row["format"] not in models and row["records"] is not None]
    lost = sum((row["cases_quarantined"] or 0) + (row["records_without_case"] or 0) for row in logs)
    cases = lost + sum(row["implementations"] or 0 for row in logs)
    if lost > max_share * cases:
        records = sum(row["records_rejected"] or 0 for row in logs)
        total = sum(row["records"] or 0 for row in logs)
        return (
            f"{lost:,} of {cases:,} cases ({lost / cases:.1%}) would be put aside because of rejected records, and at "
            f"most {max_share:.1%} "
            f"may be (history.max_quarantined_share); {records:,} of {total:,} records are rejected, see `opus query "
            "rejects_by_reason`"
        )
    version = versions.get(plan.name)
    if version is None:
        return None
    known, without = set(version.files), set(version.without)
    for row in rows:
        is_lost = row["status"] == "rejected" and (
            row["format"] in event_logs or versions.marks([row["path"]])[0] in known
        )
        if is_lost and row["bytes"] and versions.marks([unreadable(row)])[0] not in without:
            return f"{row['path']} cannot be read, and cases of the version in use may stand in it ({row['reason']})"
    return None


def unreadable(row: Mapping[str, Any]) -> str:
    """Returns a key that distinguishes the states of a file that cannot be read."""
    return f"{row['path']}\n{row['content_hash']}"


def usable(lake: Lake, home: Lake, plan: SourcePlan, version: SourceVersion | None) -> SourceVersion | None:
    """Returns the version if its rows still exist, without the cases of clients who were forgotten since."""
    if version is None:
        return None
    folder = version.folder(lake, plan.name)
    if not (folder / PART).is_file() and lake is not home and (version.folder(home, plan.name) / PART).is_file():
        with lake.staging() as staged:
            shutil.copytree(version.folder(home, plan.name), staged / "new")
            lake.publish(staged / "new", folder)
    if not (folder / PART).is_file():
        return None
    forgotten = Forgotten.of(lake)
    clients = pq.ParquetFile(folder / PART).read(columns=["client"])["client"].unique().to_pylist()
    theirs = sorted(client for client in clients if forgotten.holds(client))
    return _without(lake, plan.name, version, theirs, forgotten) if theirs else version


def _without(
    lake: Lake, source: str, version: SourceVersion, clients: list[str], forgotten: Forgotten
) -> SourceVersion:
    rows = pq.ParquetFile(version.folder(lake, source) / PART).read()
    left = rows.filter(
        pa.compute.invert(pa.compute.fill_null(pa.compute.is_in(rows["client"], pa.array(clients)), False))
    )
    content = make_id("h", version.content, sorted(map(forgotten.mark, clients)))
    remaining = replace(version, content=content, implementations=left.num_rows)
    with lake.staging() as staged:
        (staged / "new").mkdir()
        pq.write_table(left, staged / "new" / PART, compression="zstd")
        lake.publish(staged / "new", remaining.folder(lake, source))
    return remaining


def _path(lake: Lake) -> Path:
    return lake.kept / "history.json"
