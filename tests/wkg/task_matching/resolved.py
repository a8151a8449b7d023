"""Task resolution without similar names: by pins and normalised names alone."""

from collections.abc import Iterable, Mapping

from opus_pipelines.wkg.task_matching.id_ledger import Entry
from opus_pipelines.wkg.task_matching.names import Identity, Merge, SourceNames, nodes_of
from opus_pipelines.wkg.task_matching.pins import Pins
from opus_pipelines.wkg.task_matching.resolve import Resolution, identify, merges_of


def resolve(
    sources: Iterable[SourceNames],
    ledger: Mapping[Identity, Entry],
    merge: Merge,
    pins: Pins | None = None,
    across: bool = False,
) -> Resolution:
    """Every raw key of every source with its task, by pins and normalised names alone."""
    pins = pins or Pins()
    nodes = nodes_of(sources, merge, pins, across)
    return identify(nodes, merges_of(nodes, pins, across), ledger)
