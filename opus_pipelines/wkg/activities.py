"""The kind of every task of the graph: each source's activities are classified by their own evidence, then merged by task."""

from collections import defaultdict
from collections.abc import Iterable

import pyarrow.parquet as pq

from opus_pipelines.history.activity_evidence import by_activity
from opus_pipelines.history.activity_kinds import Classified, classify_source, merged
from opus_pipelines.lake import Lake
from opus_pipelines.wkg.aggregates import SourcePart


def kinds_of(lake: Lake, parts: Iterable[SourcePart]) -> dict[str, Classified]:
    """Kind by task id. The evidence lies beside the aggregates of each source; the order of `parts` changes nothing."""
    found: dict[str, list[tuple[str, str, int, Classified]]] = defaultdict(list)
    for part in parts:
        evidence, whole = by_activity(pq.ParquetFile(part.place(lake) / "activities.parquet").read())
        classified = classify_source(evidence, whole, dict(part.stated))
        tasks = {(key, task) for _, key, task in part.aliases if key in classified}
        for key, task in sorted(tasks):
            found[task].append((part.source, key, evidence[key].occurrences, classified[key]))
    return {task: merged(rows) for task, rows in found.items()}
