"""Algorithm 2 of LWM: a Workflow Graph that falls apart is joined by tasks of the WKG that are like those at its edges.

Input and output touch every sequence, so connectivity is judged without them (spec B; else nothing would ever fall
apart). How alike two tasks are is the caller's: the cosine of their embeddings now, a trained graph attention network's
later.
"""

from collections.abc import Callable
from dataclasses import replace

from opus_pipelines.lwm.workflow_graph import WFG, WfgEdge, WfgNode
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.task_order import INPUT, OUTPUT

Similarity = Callable[[str, str], float]
STEP = 0.05  # Δα
LEAST = 0.3  # α below which nothing is alike: the guard without which a WKG that is itself in parts would never end it
MOST_ADDED = 60


def join_components(
    wfg: WFG, graph: WorkGraph, similarity: Similarity, step: float = STEP, least: float = LEAST, most: int = MOST_ADDED
) -> WFG:
    """The WFG with tasks and edges added, origin `algorithm2`, until it hangs together; unchanged where α or `most`
    run out before.

    A round lowers the threshold α by `step` and adds every task of the WKG beside one of the WFG that is at least so
    like it, with the WKG's edges between the two (paper: GAT_WKG), and the WKG's edges among the WFG's own tasks that
    are at least so alike.
    """
    found, alpha = wfg, 1.0
    while len(connected_components(found)) > 1:
        alpha = round(alpha - step, 9)
        found = _enhanced(found, graph, similarity, alpha)
        if alpha < least or len(found.nodes) > len(wfg.nodes) + most:
            return wfg
    return found


def connected_components(wfg: WFG) -> list[set[str]]:
    """The weakly connected parts of the tasks, input and output left out, in order of their first task."""
    near: dict[str, set[str]] = {n: set() for n in wfg.nodes if n not in (INPUT, OUTPUT)}
    for a, b in wfg.edges:
        if a in near and b in near:
            near[a].add(b)
            near[b].add(a)
    parts, left = [], dict.fromkeys(sorted(near))
    while left:
        part, frontier = set[str](), [next(iter(left))]
        while frontier:
            node = frontier.pop()
            if node in left:
                del left[node]
                part.add(node)
                frontier.extend(near[node])
        parts.append(part)
    return parts


def _enhanced(wfg: WFG, graph: WorkGraph, similarity: Similarity, alpha: float) -> WFG:
    """One round at the threshold."""
    nodes, edges = dict(wfg.nodes), dict(wfg.edges)
    for node in sorted(wfg.nodes.keys() & graph.tasks.keys()):
        beside = [(node, t) for t in graph.successors.get(node, ())] + [
            (t, node) for t in graph.predecessors.get(node, ())
        ]
        for pair in beside:
            other = pair[0] if pair[1] == node else pair[1]
            if other != node and pair not in edges and similarity(node, other) >= alpha:
                known = graph.edges[pair]
                nodes.setdefault(other, WfgNode(other, other, "algorithm2", ()))
                edges[pair] = WfgEdge(*pair, "algorithm2", known.gamma, known.one_minus_gamma, known.transitions, ())
    return replace(wfg, nodes=dict(sorted(nodes.items())), edges=dict(sorted(edges.items())))
