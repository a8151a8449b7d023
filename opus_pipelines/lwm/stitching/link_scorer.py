"""Which tasks belong beside each other: a link scorer of one industry's Work Knowledge Graph, for stitched plans.

Algorithm 2 of LWM joins the parts of a stitched plan by it.

A logistic regression tells from the texts and the neighbourhoods of two tasks how likely an edge joins them. It learns
from the graph itself: a fifth of the edges is taken out and foretold from the others, several times. Where two parts of
the work are to be joined, it names the tasks of history between them better than the cosine of the texts, and ranks new
edges as well as a graph attention network (docs/explanation/what-was-measured.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opus_pipelines.lwm.merging.join_components import Similarity
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.graph import WorkGraph

_MOST_COMPARED = 600  # of an industry that are compared, those of most cases
HELD, ROUNDS, NEGATIVES = 0.2, 20, 3  # share of the edges taken out, how often, and pairs without an edge for each
FEWEST_EDGES = 10  # from which the graph teaches anything
WEAKEST = 1.0  # of the regularisation of the weights (scikit-learn's C)


@dataclass(frozen=True)
class LinkGraph:
    """A graph as the scorer sees it: `vectors` [tasks, d] of the texts, `counts` [tasks] of cases, `edges` [tasks,
    tasks] (boolean, from the row to the column).
    """

    vectors: np.ndarray
    counts: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, graph: WorkGraph, vectors: Mapping[str, np.ndarray], tasks: list[str]) -> "LinkGraph":
        """These tasks with the edges between them; a task without a vector is like no other by its text."""
        place = {task: n for n, task in enumerate(tasks)}
        edges = np.zeros((len(tasks), len(tasks)), bool)
        for one, other in graph.edges:
            if one in place and other in place and one != other:
                edges[place[one], place[other]] = True
        dimension = max((len(vector) for vector in vectors.values()), default=1)
        texts = [vectors.get(task, np.zeros(dimension)) for task in tasks]
        counts = np.array([graph.tasks[task].implementations for task in tasks], float)
        return cls(np.stack(texts), counts, edges)


def pair_features(graph: LinkGraph, known: np.ndarray) -> np.ndarray:
    """[tasks, tasks, features] of every pair, from the known edges [tasks, tasks] and the texts.

    The first four are the usual scores of links: cosine, common neighbours, Adamic and Adar's (2003), preferential
    attachment. The others are counts of directed paths, neighbours and cases.
    """
    edge = known.astype(float)
    both = np.minimum(1.0, edge + edge.T)
    degree = both.sum(1)
    weight = 1 / np.log(np.maximum(2.0, degree) + 0.5)
    row = lambda values: np.log1p(np.broadcast_to(values[:, None], edge.shape))
    columns = [
        graph.vectors @ graph.vectors.T,
        np.log1p(both @ both),
        both @ (both * weight[:, None]),
        np.log1p(np.outer(degree, degree)),
        edge.T,
        np.log1p(edge @ edge),
        np.log1p(edge @ edge.T),
        np.log1p(edge.T @ edge),
        np.log1p(edge @ edge.T @ edge),
        row(edge.sum(1)),
        row(edge.sum(0)).T,
        row(graph.counts),
        row(graph.counts).T,
    ]
    return np.stack(columns, axis=-1)


def masked(graph: LinkGraph, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The edges that are left, and pairs [n, 2] to foretell with their labels [n]: the others, and drawn non-edges."""
    pairs = np.argwhere(graph.edges)
    out = draw.random(len(pairs)) < HELD
    known = graph.edges.copy()
    known[tuple(pairs[out].T)] = False
    none = np.argwhere(~graph.edges & ~np.eye(len(known), dtype=bool))
    size = min(len(none), NEGATIVES * max(1, int(out.sum())))
    asked = np.concatenate([pairs[out], none[draw.choice(len(none), size, replace=False)]])
    return known, asked, np.append(np.ones(int(out.sum())), np.zeros(size))


def link_chances(graph: LinkGraph, seed: int = 0) -> np.ndarray:
    """[tasks, tasks] how likely an edge leads from the row to the column, by the regression; zero where the graph has
    too few edges or none missing to learn from.
    """
    from sklearn.linear_model import LogisticRegression  # half of the imports of a process that generates; few ask

    draw, x, y = np.random.default_rng(seed), [], []
    if graph.edges.sum() < FEWEST_EDGES:
        return np.zeros(graph.edges.shape)
    for _ in range(ROUNDS):
        known, asked, labels = masked(graph, draw)
        x.append(pair_features(graph, known)[tuple(asked.T)])
        y.append(labels)
    joined, labels = np.concatenate(x), np.concatenate(y)
    if len(np.unique(labels)) < 2:
        return np.zeros(graph.edges.shape)
    mean, scale = joined.mean(0), joined.std(0) + 1e-9
    model = LogisticRegression(C=WEAKEST, max_iter=1000).fit((joined - mean) / scale, labels)
    whole = (pair_features(graph, graph.edges) - mean) / scale
    chances = model.predict_proba(whole.reshape(-1, whole.shape[-1]))[:, 1]
    return np.asarray(chances.reshape(graph.edges.shape).round(6))


class LinkScorer:
    """The similarity of two tasks by the link scorer of an industry (None: of all), learnt when it is first asked."""

    def __init__(self, index: SnapshotIndex, industry: str | None) -> None:
        self._index, self._industry = index, industry
        self._place: dict[str, int] = {}
        self._chances = np.zeros((0, 0))

    def similarity(self, one: str, other: str) -> float:
        """The higher chance of an edge between the two, of both directions; 0 for a task that is not compared."""
        if not self._place:
            self._learn()
        a, b = self._place.get(one), self._place.get(other)
        return 0.0 if a is None or b is None else float(max(self._chances[a, b], self._chances[b, a]))

    def _learn(self) -> None:
        graph = self._index.graph
        own = [t for t, task in graph.tasks.items() if self._industry is None or self._industry in task.industries]
        tasks = sorted(own, key=lambda task: (-graph.tasks[task].implementations, task))[:_MOST_COMPARED]
        self._place = {task: n for n, task in enumerate(tasks)}
        if tasks:
            self._chances = link_chances(LinkGraph.of(graph, self._index.task_vectors, tasks))


def links_of(index: SnapshotIndex, industry: str | None) -> Similarity:
    """The similarity of the tasks of an industry, made once for each index."""
    found = index.links.get(industry)
    if not isinstance(found, LinkScorer):
        found = index.links[industry] = LinkScorer(index, industry)
    return found.similarity
