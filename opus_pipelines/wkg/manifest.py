"""What stands beside a snapshot's tables: its manifest, the kept files, the pointer; each written in one atomic step."""

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.embedding.encoder import ENCODERS
from opus_pipelines.lake.layout import Lake, read_json, write_atomically, write_json
from opus_pipelines.task_matching.id_ledger import added, ledger_rows, ledger_table, read_ledger
from opus_pipelines.task_matching.resolve import Resolution
from opus_pipelines.task_matching.source_names import names_place
from opus_pipelines.wkg.aggregates import SourcePart
from opus_pipelines.wkg.changes import write_changes
from opus_pipelines.wkg.checks import CheckResult
from opus_pipelines.wkg.gamma import LambdaRule
from opus_pipelines.wkg.graph_metrics import GRAPH_ENGINES
from opus_pipelines.wkg.staged import SnapshotBuild


def settings_that_matter(settings: Settings) -> dict[str, Any]:
    """The settings a snapshot depends on; λ stands apart, and neither the passages of a batch nor the choice
    between the built-in graph engines change anything.
    """
    return {
        "wkg": settings.wkg.model_dump(mode="json", by_alias=True, exclude={"lambda_"}),
        "graph": settings.graph.model_dump(
            mode="json", include={"pagerank_damping", "pagerank_rounds", "community_rounds"}
        )
        | ({"engine": added} if (added := GRAPH_ENGINES.origin(settings.graph.engine)) else {}),
        "priors": settings.priors.model_dump(mode="json"),
        "encoder": settings.encoder.model_dump(mode="json", exclude={"batch_size"})
        | ({"added": added} if (added := ENCODERS.origin(settings.encoder.model)) else {}),
    }


def write(build: SnapshotBuild, checks: list[CheckResult], now: datetime) -> None:
    """manifest.json into the staged folder."""
    write_json(
        build.folder / "manifest.json",
        {
            "snapshot": build.snapshot_id,
            "published_at": stamp(now),
            "inputs": {
                "sources": [_source(build, part) for part in build.parts],
                "ledger": digest(ledger_rows(build.resolution.ids)),
            },
            "settings": settings_that_matter(build.settings),
            "lambda": build.lambda_,
            "lambda_kept": build.rule.kept,
            "gamma_unit": build.rule.unit,
            "counts": build.counts,
            "checks": [check.as_dict() for check in checks],
            "drift": {"from": build.last.name, **build.drift.figures()} if build.last and build.drift else None,
            "engines": {"mining": "spark", "graph": build.graph_engine},
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("pyspark", "pyarrow", "opus-pipelines")},
            },
            "code_version": versions_of("manifest"),
            **build.figures,
            "timings": build.timings | {"mined_sources": build.mined},
        },
    )


def keep(lake: Lake, resolution: Resolution, rule: LambdaRule, lambda_: float | None) -> None:
    """Bring the id ledger up to date, and set λ of its unit where this snapshot chose it. Written before the snapshot
    is visible: what is kept without it is taken up again by the next run, which gives the same ids and the same λ.
    """
    path = lake.kept / "ids.parquet"
    known = read_ledger(path)
    if (ledger := added(known, resolution.ids)) != known:
        table = ledger_table(ledger)
        write_atomically(path, lambda p: pq.write_table(table, p, compression="zstd"))
    if rule.value is None and lambda_ is not None:
        kept = read_json(lake.kept / "lambda.json") or {}
        write_json(lake.kept / "lambda.json", kept | {rule.unit: {"lambda": lambda_, "chosen_from": rule.token}})


def point(lake: Lake, snapshot: str, now: datetime, **more: Any) -> None:
    """Make a snapshot the current one; `more` stands in the pointer beside it, and `before`: the snapshot that it
    takes the place of.
    """
    before = lake.current_snapshot()
    write_changes(lake, before, snapshot)
    write_json(
        lake.root / "wkg" / "current.json", {"snapshot": snapshot, "before": before, "published_at": stamp(now), **more}
    )


def stamp(now: datetime) -> str:
    """A moment as the manifests write it: UTC, whole seconds."""
    return now.astimezone(UTC).isoformat(timespec="seconds")


def _source(build: SnapshotBuild, part: SourcePart) -> dict[str, Any]:
    place = part.folder.relative_to(build.lake.root) if part.folder.is_relative_to(build.lake.root) else part.folder
    aggregates, names = part.place(build.lake), names_place(build.lake, part.source, part.content)
    return {
        "source": part.source,
        "content": part.content,
        "folder": place.as_posix(),
        **{
            key: folder.relative_to(build.lake.root).as_posix()
            for key, folder in (("aggregates", aggregates), ("names", names))
        },
    }
