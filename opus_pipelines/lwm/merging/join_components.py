"""Algorithm 2 of LWM: it joins the components of a disconnected Workflow Graph with similar tasks of the WKG.

Input and output touch every sequence, so connectivity is judged without them (spec B); otherwise no graph would be
disconnected. The caller gives the similarity of two tasks: the cosine of their embeddings, or between the parts of a
stitched plan how likely an edge joins them (`lwm.stitching.link_scorer`), where the paper has a graph attention
network.
"""

from collections.abc import Callable
from dataclasses import replace

from opus_pipelines.lwm.merging.workflow_graph import WFG, WfgEdge, WfgNode
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.model import INPUT, OUTPUT

Similarity = Callable[[str, str], float]
STEP = 0.05  # Δα
LEAST = 0.3  # least α: below it no tasks are similar; the search ends here where the WKG itself is not connected
MOST_ADDED = 60


def join_components(
    wfg: WFG, graph: WorkGraph, similarity: Similarity, least: float = LEAST, most: int = MOST_ADDED
) -> WFG:
    """Add tasks and edges, with origin `algorithm2`, until the WFG is connected.

    Each round lowers the threshold α by `STEP`. It adds every task of the WKG that is a neighbour of a task of the
    WFG with a similarity of at least α, with the edges of the WKG between the two (paper: GAT_WKG), and the edges
    of the WKG between tasks of the WFG with such a similarity. Returns the WFG unchanged where α falls below
    `least`, or more than `most` tasks are added, before it is connected.
    """
    joined, alpha = wfg, 1.0
    while len(connected_components(joined)) > 1:
        alpha = round(alpha - STEP, 9)
        joined = _enhanced(joined, graph, similarity, alpha)
        if alpha < least or len(joined.nodes) > len(wfg.nodes) + most:
            return wfg
    return joined


def connected_components(wfg: WFG) -> list[set[str]]:
    """Return the weakly connected components of the tasks, without input and output, by their first task."""
    neighbours: dict[str, set[str]] = {n: set() for n in wfg.nodes if n not in (INPUT, OUTPUT)}
    for a, b in wfg.edges:
        if a in neighbours and b in neighbours:
            neighbours[a].add(b)
            neighbours[b].add(a)
    parts, unvisited = [], dict.fromkeys(sorted(neighbours))
    while unvisited:
        part, frontier = set[str](), [next(iter(unvisited))]
        while frontier:
            node = frontier.pop()
            if node in unvisited:
                del unvisited[node]
                part.add(node)
                frontier.extend(neighbours[node])
        parts.append(part)
    return parts


def _enhanced(wfg: WFG, graph: WorkGraph, similarity: Similarity, alpha: float) -> WFG:
    """Return the WFG after one round with the threshold `alpha`."""
    nodes, edges = dict(wfg.nodes), dict(wfg.edges)
    for node in sorted(wfg.nodes.keys() & graph.tasks.keys()):
        neighbours = [(node, t) for t in graph.successors.get(node, ())] + [
            (t, node) for t in graph.predecessors.get(node, ())
        ]
        for pair in neighbours:
            other = pair[0] if pair[1] == node else pair[1]
            if other != node and pair not in edges and similarity(node, other) >= alpha:
                known = graph.edges[pair]
                nodes.setdefault(other, WfgNode(other, other, "algorithm2", ()))
                edges[pair] = WfgEdge(*pair, "algorithm2", known.gamma, known.one_minus_gamma, known.transitions, ())
    return replace(wfg, nodes=dict(sorted(nodes.items())), edges=dict(sorted(edges.items())))
