"""Which assets Dagster shows as stale."""

import warnings
from collections.abc import Iterable

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest


def observe(definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
    """What "Observe sources" in the UI does: the inputs are hashed anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job = definitions.resolve_implicit_global_asset_job_def()
        chosen = [dg.AssetKey(["inputs", name]) for name in ("history", "settings", "intakes")]
        result = job.execute_in_process(instance=instance, asset_selection=chosen)
    assert result.success


def stale(definitions: dg.Definitions, instance: dg.DagsterInstance, partitions: Iterable[str]) -> dict[str, list[str]]:
    """The stale assets, each with its stale partitions; one without partitions has the partition ""."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = definitions.resolve_asset_graph()
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        found = {
            node.key.to_user_string(): [
                key or ""
                for key in (sorted(partitions) if node.is_partitioned else [None])
                if resolver.get_status(node.key, key) is StaleStatus.STALE
            ]
            for node in graph.asset_nodes
        }
    return {name: keys for name, keys in sorted(found.items()) if keys}
