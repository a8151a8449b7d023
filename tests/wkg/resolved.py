"""Task resolution without similar names: by pins and normalised names alone."""

from collections.abc import Iterable, Mapping

from opus_pipelines.wkg.resolution.ledger import Entry
from opus_pipelines.wkg.resolution.merging import merges_of
from opus_pipelines.wkg.resolution.nodes import Identity, Merge, SourceNames, nodes_of
from opus_pipelines.wkg.resolution.pins import Pins
from opus_pipelines.wkg.resolution.resolve import Resolution, identify


def resolve(
    sources: Iterable[SourceNames], ledger: Mapping[Identity, Entry], merge: Merge, pins: Pins | None = None, across: bool = False
) -> Resolution:
    """Every raw key of every source with its task, by pins and normalised names alone."""
    pins = pins or Pins()
    nodes = nodes_of(sources, merge, pins, across)
    return identify(nodes, merges_of(nodes, pins, across), ledger)
