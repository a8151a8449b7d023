"""Keeps the version of each source that is in use: the last one that was read without loss.

A source that cannot be read as it is keeps that version, and so does one whose new version made a later stage of the
rebuild fail. `wkg/kept/history.json` names the versions, by keyed hashes of the sources' names and files, and beside a
version that is not published yet the one that is (`before`). `wkg/kept/put_back.json` names the versions that failed.
They are kept files: an input of a rebuild, like the id ledger.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.core.versions import versions_of
from opus_pipelines.history.ingestion.plan import SourcePlan
from opus_pipelines.history.records.activity_kinds import ActivityKind
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.history.records.formats import log_formats
from opus_pipelines.lake.layout import PART, Lake, read_json

FAILED = "put_back.json"


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

    def __init__(self, forgotten: Forgotten, rows: Mapping[str, Any], failed: Mapping[str, Any]) -> None:
        self._forgotten, self._rows, self._failed = forgotten, rows, failed
        self._kept: dict[str, SourceVersion] = {}

    @classmethod
    def of(cls, lake: Lake, with_failed: bool = True) -> "SourceVersions":
        """Loads the versions that the lake keeps; without those that failed, they are tried again."""
        failed = read_json(lake.kept / FAILED) or {} if with_failed else {}
        of_this_code = {mark: row for mark, row in failed.items() if row["code"] == _code()}
        return cls(Forgotten.of(lake), read_json(_path(lake)) or {}, of_this_code)

    def get(self, source: str) -> SourceVersion | None:
        """Returns the last good version of a source, or None if there is none."""
        mark = self._forgotten.mark(source)
        row = self._rows.get(mark)
        if row is not None and self._has_failed(mark, row["content"]):
            row = row.get("before")
        if row is None:
            return None
        return SourceVersion(
            **{name: row[name] for name in SourceVersion.__dataclass_fields__ if name in row}
            | {name: tuple(row.get(name, ())) for name in ("files", "without", "open_cases")}
        )

    def why_failed(self, source: str, content: str) -> str | None:
        """Returns at what this version of a source failed after it was read, or None."""
        mark = self._forgotten.mark(source)
        return self._failed[mark]["reason"] if self._has_failed(mark, content) else None

    def _has_failed(self, mark: str, content: str) -> bool:
        return mark in self._failed and self._failed[mark]["content"] == content

    def keep(self, source: str, version: SourceVersion) -> None:
        """Records the version of a source that is in use from now on."""
        self._kept[self._forgotten.mark(source)] = version

    def marks(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Returns keyed hashes of file paths."""
        return tuple(sorted(map(self._forgotten.mark, paths)))

    def save(self, lake: Lake) -> None:
        """Saves the versions in use, and no other. The caller must hold the lake's lock."""
        rows = {mark: _as_json(version) | self._before(mark, version) for mark, version in sorted(self._kept.items())}
        if rows != (read_json(_path(lake)) or {}):
            lake.replace_json(_path(lake), rows)

    def _before(self, mark: str, version: SourceVersion) -> dict[str, Any]:
        """Returns the published version beside one that is not published yet."""
        row = self._rows.get(mark, {})
        before = row.get("before")
        if before is None and row and row["content"] != version.content and not self._has_failed(mark, row["content"]):
            before = row
        return {} if before is None or before["content"] == version.content else {"before": before}


def put_back(lake: Lake, failed: Mapping[str, tuple[str, str]]) -> None:
    """Records the versions that failed after they were read: by source its content, and at what it failed.

    The next reading puts their sources back. The caller holds the lock.
    """
    forgotten, known = Forgotten.of(lake), read_json(lake.kept / FAILED) or {}
    rows = {
        forgotten.mark(source): {"content": content, "reason": reason, "code": _code()}
        for source, (content, reason) in failed.items()
    }
    if rows:
        lake.replace_json(lake.kept / FAILED, known | rows)


def try_again(lake: Lake, sources: Iterable[str]) -> None:
    """Forgets that the last versions of these sources failed."""
    known, marks = read_json(lake.kept / FAILED) or {}, set(map(Forgotten.of(lake).mark, sources))
    if marks & set(known):
        lake.replace_json(lake.kept / FAILED, {mark: row for mark, row in known.items() if mark not in marks})


def published(lake: Lake) -> None:
    """Records that the versions in use are published: no earlier one is kept beside them. The caller holds the lock."""
    rows, failed = read_json(_path(lake)) or {}, read_json(lake.kept / FAILED) or {}
    if any("before" in row for row in rows.values()):
        rows = {mark: {name: row[name] for name in row if name != "before"} for mark, row in rows.items()}
        lake.replace_json(_path(lake), rows)
    in_use = {mark: row["content"] for mark, row in rows.items()}
    if failed and (left := {m: row for m, row in failed.items() if in_use.get(m) != row["content"]}) != failed:
        lake.replace_json(lake.kept / FAILED, left)


def _code() -> str:
    """Returns what a failure may depend on besides the source: a later version is tried again."""
    return f"{version_of('opus-pipelines')} {versions_of('manifest')}"


def _as_json(version: SourceVersion) -> dict[str, Any]:
    lists = {"files": list(version.files), "without": list(version.without)}
    lists["open_cases"] = list(version.open_cases)
    return vars(version) | lists | {"stated": dict(sorted(version.stated.items()))}


def contents_in_use(lake: Lake) -> set[str]:
    """Returns the contents of all versions in use."""
    rows = list((read_json(_path(lake)) or {}).values())
    return {row["content"] for row in [*rows, *(row["before"] for row in rows if "before" in row)]}


def why_held(
    plan: SourcePlan, rows: Sequence[Mapping[str, Any]], versions: SourceVersions, max_share: float
) -> str | None:
    """Returns why the newly read rows must not replace the version in use, or None if they may.

    `rows` are the rows of history/sources of the source's files as read now. If the source has no earlier version,
    nothing of it is used then.
    """
    if plan.settings is None:
        return plan.refused
    if (failed := versions.why_failed(plan.name, plan.content)) is not None:
        return f"its new version was read, and then failed ({failed}); `opus rebuild --full` tries it again"
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
