#!/usr/bin/env python3
"""Measures what foretells new edges of the Work Knowledge Graph: text, neighbourhoods, a trained scorer, a GATv2.

    PYTHONPATH=. .venv/bin/python benchmarks/link_prediction.py LOG.xes.gz RUNS.jsonl.gz PLANS.jsonl.gz [--share .3]
        [--parts 0,1,2,3,4]

The graph of each industry has the tasks and directly-follows edges of the first share of its cases (by id, which is
the order of time in the log and the sample; runs and plans have no times, and go by the hash of their ids). Asked are
the edges between these tasks that only later cases have, against all pairs that no case has. AUC is over all pairs, MRR
over the new edges of each task among the tasks that never follow it; 95 % intervals by bootstrap over tasks.

Rows: cosine of the tasks' texts, common neighbours, Adamic-Adar, preferential attachment, the link scorer that
Algorithm 2 of LWM uses (a logistic regression on these and directed counts), and GATv2 (Brody, Alon and Yahav 2022,
equation 7; two layers, four heads, plain torch) without and with these features in its decoder, as the mean of five
seeds. The trained rows learn from the graph itself: in every epoch a fifth of its edges is taken out and foretold from
the others.

With --parts the similarities join parts instead: of every pair of demands in these folds of `combinations.py`, the core
tasks of each (half of its cases do them, and not half of the other's) are cut apart, and Algorithm 2 joins them.
Compared are the tasks that it adds with those that half of the removed cases did: precision, recall, and F1 of the
whole set with its 95 % interval by bootstrap over pairs.
"""

import argparse
import gzip
import hashlib
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from combination_pairs import Asked, Case, Fold, folds_of, log_cases, run_cases, sample_cases  # beside this file
from sklearn.metrics import roc_auc_score
from torch import nn

from opus_pipelines.core.settings import Settings
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.stitching import LinkGraph, link_chances, masked, pair_features
from opus_pipelines.lwm.workflow_graph import WFG, Dag, connected_components, join_components, workflow_graph
from opus_pipelines.wkg.graph import Edge, Task, WorkGraph
from opus_pipelines.workflow.metrics.plan_scores import interval

EPOCHS, HIDDEN, HEADS, SEEDS = 150, 32, 4, 5


@dataclass(frozen=True)
class Industry:
    """The graph of one industry: text vectors [tasks, d], edges of early cases, and of later ones [tasks, tasks]."""

    vectors: np.ndarray
    counts: np.ndarray
    early: np.ndarray
    later: np.ndarray

    @property
    def graph(self) -> LinkGraph:
        """The graph of the early cases, as the link scorer sees it."""
        return LinkGraph(self.vectors, self.counts, self.early)


def main() -> int:
    """Print a table for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("log", "runs", "plans"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--parts", help="folds whose demands are cut apart and joined")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    encoder = Encoder(Settings().encoder)
    if arguments.parts:
        folds = folds_of(arguments.log, arguments.runs)
        report_parts(joined_rows([folds[int(number)] for number in arguments.parts.split(",")], encoder))
        return 0
    sources = {
        "log": lambda: log_cases(arguments.log),
        "runs": lambda: run_cases(arguments.runs),
        "sample": sample_cases,
        "plans": lambda: plan_cases(arguments.plans),
    }
    for name, cases in sources.items():
        started = time.process_time()
        graphs = industries(cases(), encoder, arguments.share)
        report(name, graphs)
        print(f"{name}: {time.process_time() - started:.0f} s of CPU", file=sys.stderr)
    return 0


def plan_cases(path: Path) -> list[Case]:
    """Plans for requests, as cases without an outcome."""
    with gzip.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    return [Case(str(n), "plans", "plans", tuple(row["plan"]), None) for n, row in enumerate(rows)]


def industries(cases: Sequence[Case], encoder: Encoder, share: float) -> list[Industry]:
    """The graph of every industry, cut after the share of its cases."""
    by_industry: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_industry[case.industry].append(case)
    found = []
    for own in by_industry.values():
        timed = own[0].source in ("log", "sample")
        ordered = sorted(own, key=lambda c: c.id if timed else hashlib.sha256(c.id.encode()).hexdigest())
        if own[0].source == "sample":  # its ids go by kind of work: each kind is cut at the share
            kinds: dict[str, list[Case]] = defaultdict(list)
            for case in ordered:
                kinds[case.title].append(case)
            early = [c for k in kinds.values() for c in k[: round(share * len(k))]]
        else:
            early = ordered[: round(share * len(ordered))]
        names = sorted({task for case in early for task in case.steps})
        place = {name: n for n, name in enumerate(names)}
        counts, edges = np.zeros(len(names)), [np.zeros((len(names), len(names)), bool) for _ in range(2)]
        kept = {case.id for case in early}
        for case in ordered:
            later = case.id not in kept
            for a, b in pairwise(case.steps):
                if a in place and b in place and a != b:
                    edges[later][place[a], place[b]] = True
            if not later:
                for task, n in Counter(case.steps).items():
                    counts[place[task]] += n
        vectors = encoder.encode([name.replace("_", " ") for name in names])
        found.append(Industry(np.asarray(vectors, np.float32), counts, edges[0], edges[1] & ~edges[0]))
    return found


COSINE, COMMON, ADAMIC, PREFERENTIAL = 0, 1, 2, 3


class Layer(nn.Module):
    """One layer of GATv2: a task attends to its neighbours of one direction and to itself."""

    def __init__(self, size: int, out: int) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(size, out), nn.Linear(size, out)
        self.attention = nn.Parameter(torch.randn(HEADS, out // HEADS) * 0.1)

    def forward(self, h: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """[tasks, out] from `h` [tasks, size] and `edges` [tasks, tasks] (row attends to column)."""
        left, right = (part(h).view(len(h), HEADS, -1) for part in (self.left, self.right))
        mixed = nn.functional.leaky_relu(left[:, None] + right[None], 0.2)
        scores = (mixed * self.attention).sum(-1)
        allowed = (edges > 0) | torch.eye(len(h), dtype=torch.bool)
        share = scores.masked_fill(~allowed[..., None], -1e9).softmax(1)
        return torch.einsum("ijh,jhd->ihd", share, right).flatten(1)


class Gat(nn.Module):
    """Two layers of GATv2 in both directions; a pair is scored by a bilinear form and, if asked, by its features."""

    def __init__(self, dimension: int, features: int) -> None:
        super().__init__()
        self.first = nn.Linear(dimension + 3, HIDDEN)
        self.layers = nn.ModuleList(Layer(HIDDEN, HIDDEN) for _ in range(4))
        self.drop = nn.Dropout(0.2)
        self.source, self.target = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.bias = nn.Parameter(torch.zeros(1))
        self.features = nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Linear(16, 1)) if features else None

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor, pairs: torch.Tensor | None) -> torch.Tensor:
        """[tasks, tasks] scores. `nodes` [tasks, d + 3], `edges` [tasks, tasks], `pairs` [tasks, tasks, features]."""
        h = self.drop(torch.relu(self.first(nodes)))
        for forward, backward in zip(self.layers[::2], self.layers[1::2], strict=True):
            h = h + nn.functional.elu(forward(h, edges) + backward(h, edges.T))
        scores = self.source(h) @ self.target(h).T / HIDDEN**0.5 + self.bias
        return scores + self.features(pairs).squeeze(-1) if self.features is not None else scores


def gat(graphs: Sequence[Industry], seed: int, with_features: bool) -> list[np.ndarray]:
    """[tasks, tasks] scores of every graph by a GATv2."""
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    size = pair_features(graphs[0].graph, graphs[0].early).shape[-1]
    model = Gat(graphs[0].vectors.shape[1], size if with_features else 0)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
    for _ in range(EPOCHS):
        for graph in graphs:
            known, asked, labels = masked(graph.graph, draw)
            found = model(*inputs(graph, known, with_features))[tuple(torch.from_numpy(asked.T))]
            loss = nn.functional.binary_cross_entropy_with_logits(found, torch.tensor(labels, dtype=torch.float32))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    model.eval()
    with torch.no_grad():
        return [model(*inputs(graph, graph.early, with_features)).numpy() for graph in graphs]


def inputs(
    graph: Industry, known: np.ndarray, with_features: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """What the network sees of a graph with the known edges."""
    degrees = np.stack([np.log1p(known.sum(1)), np.log1p(known.sum(0)), np.log1p(graph.counts) / 5], axis=1)
    nodes = torch.from_numpy(np.hstack([graph.vectors * 4, degrees]).astype(np.float32))
    pairs = torch.from_numpy(pair_features(graph.graph, known).astype(np.float32)) if with_features else None
    return nodes, torch.from_numpy(known.astype(np.float32)), pairs


def report(name: str, graphs: Sequence[Industry]) -> None:
    """Print AUC and MRR of every row."""
    tasks, early, later = (sum(int(s) for s in sizes) for sizes in zip(*sizes_of(graphs), strict=True))
    print(f"{name}: {tasks} tasks, {early} edges known, {later} new", flush=True)
    rows = {
        label: [[pair_features(g.graph, g.early)[..., column] for g in graphs]]
        for label, column in (
            ("cosine", COSINE),
            ("common neighbours", COMMON),
            ("Adamic-Adar", ADAMIC),
            ("preferential attachment", PREFERENTIAL),
        )
    }
    rows["link scorer"] = [[link_chances(g.graph) for g in graphs]]
    rows["GATv2"] = [gat(graphs, seed, False) for seed in range(SEEDS)]
    rows["GATv2 with features"] = [gat(graphs, seed, True) for seed in range(SEEDS)]
    for label, seeds in rows.items():
        areas = [area(graphs, scores) for scores in seeds]
        ranks = [ranked(graphs, scores) for scores in seeds]
        keys = [key for key, _ in ranks[0]]
        values = np.mean([[value for _, value in one] for one in ranks], axis=0).tolist()
        low, high = interval(values, keys)
        print(f"  {label:26} AUC {np.mean(areas):.3f}  MRR {np.mean(values):.3f} [{low:.3f}, {high:.3f}]", flush=True)


def sizes_of(graphs: Sequence[Industry]) -> list[tuple[int, int, int]]:
    """Tasks, known edges and new edges of each graph."""
    return [(len(g.early), int(g.early.sum()), int(g.later.sum())) for g in graphs]


def open_pairs(graph: Industry) -> np.ndarray:
    """The pairs that are no known edge [tasks, tasks]."""
    return ~graph.early & ~np.eye(len(graph.early), dtype=bool)


def area(graphs: Sequence[Industry], scores: Sequence[np.ndarray]) -> float:
    """The area under the ROC curve over the open pairs, the mean over graphs by their new edges."""
    found = [
        (g.later.sum(), roc_auc_score(g.later[open_pairs(g)], s[open_pairs(g)]))
        for g, s in zip(graphs, scores, strict=True)
        if g.later.any()
    ]
    return float(np.average([value for _, value in found], weights=[weight for weight, _ in found]))


def ranked(graphs: Sequence[Industry], scores: Sequence[np.ndarray]) -> list[tuple[str, float]]:
    """Of every new edge its first task and its reciprocal rank among what never follows that task; ties count half."""
    found = []
    for number, (graph, score) in enumerate(zip(graphs, scores, strict=True)):
        wrong = open_pairs(graph) & ~graph.later
        for a, b in np.argwhere(graph.later).tolist():
            others = score[a][wrong[a]]
            rank = 1 + (others > score[a, b]).sum() + 0.5 * (others == score[a, b]).sum()
            found.append((f"{number}/{a}", float(1 / rank)))
    return found


# --- parts that are cut apart


@dataclass(frozen=True)
class Cut:
    """An industry of a fold: its graph, and the similarities [tasks, tasks] by name; `place` of every task."""

    graph: WorkGraph
    place: dict[str, int]
    similarities: dict[str, np.ndarray]
    cases: tuple[Case, ...]

    @classmethod
    def of(cls, cases: Sequence[Case], encoder: Encoder) -> "Cut":
        """The graph of these cases, with every similarity learnt from it."""
        tasks = sorted({task for case in cases for task in case.steps})
        pairs = Counter(pair for case in cases for pair in pairwise(case.steps) if pair[0] != pair[1])
        done = Counter(task for case in cases for task in set(case.steps))
        graph = WorkGraph.of(
            [Task(task, task, implementations=done[task]) for task in tasks],
            [Edge(a, b, n, 1, 0.9, 0.1, 1.0) for (a, b), n in sorted(pairs.items())],
        )
        vectors = dict(zip(tasks, encoder.encode([task.replace("_", " ") for task in tasks]), strict=True))
        links = LinkGraph.of(graph, vectors, tasks)
        own = Industry(links.vectors.astype(np.float32), links.counts, links.edges, np.zeros_like(links.edges))
        both = np.minimum(1.0, links.edges + links.edges.T.astype(float))
        degree = np.maximum(1.0, np.sqrt(np.outer(both.sum(1), both.sum(1))))
        chances = {
            "link scorer": link_chances(links),
            "GATv2": 1 / (1 + np.exp(-gat([own], 0, False)[0])),
            "GATv2 with features": 1 / (1 + np.exp(-gat([own], 0, True)[0])),
        }
        similarities = {"cosine": links.vectors @ links.vectors.T, "common neighbours": (both @ both) / degree}
        similarities |= {name: np.maximum(values, values.T) for name, values in chances.items()}
        return cls(graph, {task: n for n, task in enumerate(tasks)}, similarities, tuple(cases))

    def parts(self, asked: Asked) -> list[list[str]]:
        """The core tasks of each demand, none of them twice."""
        shares = []
        for group in asked.pair.groups:
            of_group = [set(case.steps) for case in self.cases if group <= set(case.steps)]
            shares.append({task: sum(task in own for own in of_group) / len(of_group) for task in self.graph.tasks})
        core = [
            [t for t in self.graph.tasks if t in asked.pair.groups[n] or (shares[n][t] >= 0.5 > shares[1 - n][t])]
            for n in (0, 1)
        ]
        return [core[0], [task for task in core[1] if task not in core[0]]]

    def apart(self, parts: Sequence[Sequence[str]]) -> WFG:
        """The graph of the parts, without edges from one to the other."""
        side = {task: n for n, part in enumerate(parts) for task in part}
        kept = [
            e for e in self.graph.edges.values() if side.get(e.src) == side.get(e.dst) or not {e.src, e.dst} <= {*side}
        ]
        within = {(e.src, e.dst) for e in kept}
        dags = {
            str(n): Dag(tuple(part), tuple((a, b) for a in part for b in part if (a, b) in within))
            for n, part in enumerate(parts)
            if part
        }
        return workflow_graph(dags, WorkGraph.of(list(self.graph.tasks.values()), kept))

    def joined(self, wfg: WFG, name: str) -> WFG:
        """What Algorithm 2 makes of the parts with the similarity."""
        values = self.similarities[name]
        return join_components(wfg, self.graph, lambda a, b: float(values[self.place[a], self.place[b]]))


Row = tuple[str, float, float, float, float]  # pair, joined, precision, recall, F1 of the set


def joined_rows(folds: Sequence[Fold], encoder: Encoder) -> dict[str, list[Row]]:
    """What each similarity adds between the parts, for every pair."""
    rows: dict[str, list[Row]] = defaultdict(list)
    for fold in folds:
        cuts: dict[str, Cut] = {}
        for asked in fold.asked:
            industry = asked.pair.industry
            if industry not in cuts:
                own = [c for c in fold.history if c.industry == industry and c.success is not False]
                cuts[industry] = Cut.of(own, encoder)
            cut = cuts[industry]
            wfg = cut.apart(parts := cut.parts(asked))
            if len(connected_components(wfg)) < 2:
                continue
            base = {task for part in parts for task in part}
            done = Counter(task for case in asked.gold for task in set(case))
            gold = {task for task, n in done.items() if 2 * n >= len(asked.gold)}
            for name in ("nothing added", *cut.similarities):
                after = wfg if name == "nothing added" else cut.joined(wfg, name)
                added, wanted = (set(after.nodes) & cut.graph.tasks.keys()) - base, gold - base
                rows[name].append(
                    (
                        asked.pair.id,
                        float(len(connected_components(after)) == 1),
                        len(added & wanted) / len(added) if added else float("nan"),
                        len(added & wanted) / len(wanted) if wanted else float("nan"),
                        2 * len((added | base) & gold) / (len(added | base) + len(gold)),
                    )
                )
    return rows


def report_parts(rows: dict[str, list[Row]]) -> None:
    """Print the means of each similarity."""
    for name, found in rows.items():
        joined, precision, recall, f1 = (mean_of([float(row[n]) for row in found]) for n in range(1, 5))
        pairs = [row[0] for row in found]
        low, high = interval([row[4] for row in found], pairs)
        less = [row[4] - other[4] for row, other in zip(found, rows["cosine"], strict=True)]
        least, most = interval(less, pairs)
        print(
            f"  {name:22}{len(found):4} pairs joined {joined:.2f} precision {precision:.3f} recall {recall:.3f}  set F1"
            f" {f1:.3f} [{low:.3f}, {high:.3f}]  less cosine {np.mean(less):+.3f} [{least:+.3f}, {most:+.3f}]",
            flush=True,
        )


def mean_of(values: Sequence[float]) -> float:
    """The mean of those that are known; NaN without any."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


if __name__ == "__main__":
    sys.exit(main())
