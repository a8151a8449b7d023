"""The sub-graphs of the Work Knowledge Graph for an Intention, LWM (6)-(8)."""

from collections.abc import Sequence

from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.routing import Routed
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs.neighbourhoods import neighbourhoods
from opus_pipelines.wkg.subgraphs.steiner_tree import SubWKG, steiner

# Similar cases whose first and last task an SWKG must reach, so that a sequence in it can begin and end.
ENDS_OF_CASES = 3


def subgraphs_of(graph: WorkGraph, routed: Sequence[Routed], cases: Sequence[SimilarCase]) -> list[SubWKG]:
    """Return one SWKG for each neighbourhood of the routed tasks and of the first and last tasks of similar cases."""
    seeds = {r.id: r.similarity for r in routed}
    for case in [c for c in cases if c.tasks][:ENDS_OF_CASES]:
        for task in (case.tasks[0], case.tasks[-1]):
            seeds.setdefault(task, min([r.similarity for r in routed], default=0.0))
    near = neighbourhoods(graph, sorted(seeds.items()))
    return [steiner(graph, n.terminals, n.tasks) for n in near]
