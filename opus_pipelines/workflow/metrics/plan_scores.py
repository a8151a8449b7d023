"""Scores of a plan whose steps have the reference's names: sets of steps, sets of links, order, edit distance.

Bootstrap intervals of a mean score are drawn over groups of similar items; the same values give the same interval.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np

from opus_pipelines.workflow.metrics.opus_metrics import kendall_tau

Link = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """Steps by name in their order, and the links between them; without links, consecutive steps are linked."""

    steps: tuple[str, ...]
    links: frozenset[Link] | None = None

    @property
    def all_links(self) -> frozenset[Link]:
        """The stated links, or those of consecutive steps."""
        return frozenset(pairwise(self.steps)) if self.links is None else self.links


@dataclass(frozen=True)
class PlanScores:
    """Scores of one plan, each from 0 to 1, but `order` from -1 to 1.

    Attributes:
        precision: share of the plan's steps that the reference has.
        recall: share of the reference's steps that the plan has.
        node_f1: F1 of the sets of steps.
        link_f1: F1 of the sets of links; 1 where both have none.
        exact: 1 where the steps and their order are the reference's.
        first: 1 where the first step is the reference's.
        order: Kendall's tau of the common steps; None where fewer than two are common.
    """

    precision: float
    recall: float
    node_f1: float
    link_f1: float
    exact: float
    first: float
    order: float | None


def plan_scores(plan: Plan, reference: Plan) -> PlanScores:
    """Returns the scores of a plan; one without steps has 0 everywhere, unless the reference has none either."""
    own, gold = set(plan.steps), set(reference.steps)
    if not own:
        same = float(not gold)
        return PlanScores(same, same, same, same, same, same, None)
    both = len(own & gold)
    return PlanScores(
        precision=both / len(own),
        recall=both / len(gold) if gold else 0.0,
        node_f1=f1(own, gold),
        link_f1=f1(plan.all_links, reference.all_links),
        exact=float(plan.steps == reference.steps),
        first=float(plan.steps[:1] == reference.steps[:1]),
        order=_order(plan.steps, reference.steps),
    )


def f1(own: Collection[object], gold: Collection[object]) -> float:
    """Returns 2 |A and B| / (|A| + |B|) of two sets; 1 where both are empty."""
    if not own and not gold:
        return 1.0
    return 2 * len(set(own) & set(gold)) / (len(own) + len(gold))


def _order(steps: Sequence[str], gold: Sequence[str]) -> float | None:
    place = {step: n for n, step in reversed(list(enumerate(gold)))}
    common = [(n, place[step]) for n, step in enumerate(dict.fromkeys(steps)) if step in place]
    return kendall_tau(common, len(gold)) if len(common) > 1 else None


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


_DRAWS = 2_000


def interval(values: Sequence[float], groups: Sequence[Hashable]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean of `values`, each of which belongs to one of `groups`.

    Items of one group are alike, so that a draw takes whole groups. For a paired difference, pass the differences.
    """
    low, high = np.percentile(drawn_means(np.array(values), groups), [2.5, 97.5])
    return float(low), float(high)


def drawn_means(values: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """Returns the mean of each draw of whole groups, [_DRAWS, ...] for values [n, ...]."""
    place = {group: n for n, group in enumerate(dict.fromkeys(groups))}
    of = np.array([place[group] for group in groups])
    draws = np.random.default_rng(0).integers(0, len(place), (_DRAWS, len(place)))
    weight = np.stack([np.bincount(drawn, minlength=len(place)) for drawn in draws])[:, of]
    return np.asarray(weight @ values / weight.sum(1).reshape(-1, *[1] * (values.ndim - 1)))
