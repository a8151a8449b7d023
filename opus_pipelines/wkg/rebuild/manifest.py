"""Writes the manifest of a snapshot and the kept files, each in one atomic step."""

import platform
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import version
from typing import Any

import pyarrow.parquet as pq

from opus_pipelines.core.errors import CheckResult
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.lake.layout import Lake, read_json, write_json
from opus_pipelines.language.embedding.encoder import ENCODERS
from opus_pipelines.wkg.drift import Drift
from opus_pipelines.wkg.graph import LambdaRule
from opus_pipelines.wkg.graph_metrics import GRAPH_ENGINES
from opus_pipelines.wkg.rebuild.aggregates import SourcePart
from opus_pipelines.wkg.rebuild.records import Rebuild
from opus_pipelines.wkg.task_matching.id_ledger import added, ledger_rows, ledger_table, read_ledger
from opus_pipelines.wkg.task_matching.names import names_place
from opus_pipelines.wkg.task_matching.resolve import Resolution
from opus_pipelines.wkg.upkeep.rollback import stamp


def settings_that_matter(settings: Settings) -> dict[str, Any]:
    """Returns the settings that the content of a snapshot depends on, without λ.

    The batch size of the encoder and the choice between the built-in graph engines change nothing.
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


def write(rebuild: Rebuild, checks: Iterable[CheckResult], drift: Drift | None, now: datetime) -> None:
    """Writes manifest.json into the staged folder. `drift`: from the snapshot that is current now."""
    snapshot, mined, embedded = rebuild.snapshot, rebuild.mined(), rebuild.embedded()
    write_json(
        snapshot.folder / "manifest.json",
        {
            "snapshot": snapshot.snapshot_id,
            "published_at": stamp(now),
            "inputs": {
                "sources": [_source(rebuild.work, part) for part in rebuild.parts],
                "open_cases": {part.source: part.open_cases for part in rebuild.parts if part.open_cases},
                "outcomes_by_activities": [part.source for part in rebuild.parts if part.by_activities],
                "ledger": digest(ledger_rows(rebuild.resolution.ids)),
            },
            "settings": settings_that_matter(rebuild.settings),
            "lambda": mined.lambda_,
            "lambda_kept": rebuild.rule.kept,
            "gamma_unit": rebuild.rule.unit,
            "counts": {**mined.counts, **embedded.counts},
            "checks": [check.as_dict() for check in checks],
            "drift": {"from": snapshot.last.name, **drift.figures()} if snapshot.last and drift else None,
            "engines": {**mined.engines, "search": "faiss"},
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("pyspark", "pyarrow", "opus-pipelines")},
            },
            "code_version": versions_of("manifest"),
            **embedded.figures,
            "timings": rebuild.step_timings() | rebuild.taken("publish") | {"mined_sources": list(mined.sources)},
        },
    )


def keep(lake: Lake, resolution: Resolution, rule: LambdaRule, lambda_: float | None) -> None:
    """Updates the id ledger, and stores λ of its unit when this snapshot chose it.

    Both are written before the snapshot is visible. If the rebuild dies in between, the next one reads them and gives
    the same ids and the same λ.
    """
    path = lake.kept / "ids.parquet"
    known = read_ledger(path)
    if (ledger := added(known, resolution.ids)) != known:
        table = ledger_table(ledger)
        lake.replace(path, lambda p: pq.write_table(table, p, compression="zstd"))
    if rule.value is None and lambda_ is not None:
        kept = read_json(lake.kept / "lambda.json") or {}
        chosen = {"lambda": lambda_, "chosen_from": rule.token}
        lake.replace_json(lake.kept / "lambda.json", kept | {rule.unit: chosen})


def _source(work: Lake, part: SourcePart) -> dict[str, Any]:
    place = part.folder.relative_to(work.root) if part.folder.is_relative_to(work.root) else part.folder
    aggregates, names = part.place(work), names_place(work, part.source, part.content)
    return {
        "source": part.source,
        "content": part.content,
        "folder": place.as_posix(),
        **{
            key: folder.relative_to(work.root).as_posix()
            for key, folder in (("aggregates", aggregates), ("names", names))
        },
    }
