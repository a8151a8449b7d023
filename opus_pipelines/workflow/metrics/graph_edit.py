"""Graph edit distance of two workflows whose tasks have names."""

from dataclasses import dataclass

import networkx as nx

from opus_pipelines.workflow.metrics.plan_scores import Plan

MAX_EXACT_TASKS = 7  # of the larger workflow; the exact search takes exponential time


@dataclass(frozen=True)
class EditDistance:
    """The number of edits, and whether no smaller number exists; `similarity` is 1 - distance / size of both graphs."""

    distance: float
    similarity: float
    is_exact: bool


def graph_edit_distance(own: Plan, gold: Plan) -> EditDistance:
    """Returns the least number of tasks and links that must be added, removed or renamed.

    Every edit costs 1; to rename a task keeps its links. Where the larger workflow has more than `MAX_EXACT_TASKS`
    tasks, the distance is an upper bound: the better one of the edit path of equal names and the first one of the
    search of Abu-Aisheh et al. (2015), which begins with an assignment of tasks.
    """
    first, second = _graph(own), _graph(gold)
    size = sum(len(g.nodes) + len(g.edges) for g in (first, second))
    is_exact = max(len(first), len(second)) <= MAX_EXACT_TASKS
    bound = float(
        len(set(first) ^ set(second)) + len(set(first.edges) ^ set(second.edges))
    )  # tasks of equal names are the same, all others are removed and added
    search = nx.optimize_graph_edit_distance(first, second, node_match=_same_name, upper_bound=bound)
    for distance in search:
        bound = min(bound, float(distance))
        if not is_exact:
            break
    return EditDistance(bound, 1.0 - bound / size if size else 1.0, is_exact or bound == 0)


def _graph(plan: Plan) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from((step, {"name": step}) for step in plan.steps)
    graph.add_edges_from(sorted(link for link in plan.all_links if set(link) <= set(plan.steps)))
    return graph


def _same_name(one: dict[str, str], other: dict[str, str]) -> bool:
    return one["name"] == other["name"]
