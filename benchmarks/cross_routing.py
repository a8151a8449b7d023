#!/usr/bin/env python3
"""Measures whether tasks of other industries answer a request, and what penalty would be learnt from that.

    PYTHONPATH=. .venv/bin/python benchmarks/cross_routing.py RUNS.jsonl.gz [--top 12]

The histories are evaluated runs of agents (RUNS) and the sample, each with several industries. Every distinct request
of history (at most 500) is compared with the names of the tasks. A task of its own industry answers it where a
successful case of that request did the task. One of another industry answers it where it has the name of such a task,
or a name with a cosine of .95 to it. The first table says how often hits answer, by cosine. The penalty is the
difference of cosines at which both are equally often right, by a logistic regression over the requests of all
industries but one. The second table has recall / precision of the routed tasks on the requests of the industry that
was left out, for the wall (hits of other industries are dropped) and for this penalty: once with its own tasks known,
and once without them, as for an industry that history lacks.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from combination_pairs import Case, run_cases, sample_cases  # beside this file
from sklearn.linear_model import LogisticRegression

from opus_pipelines.core.settings import Settings
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.language.embedding.texts import stretches, unit, words_of
from opus_pipelines.workflow.constraints import folded

MOST, SAME, NEAR = 500, 0.95, 40
EDGES = np.array([-1.0, 0.2, 0.3, 0.4, 0.5, 0.6, 1.01])


def main() -> int:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--top", type=int, default=12)
    arguments = parser.parse_args()
    encoder = Encoder(Settings().encoder)
    for name, cases in (("sample", sample_cases()), ("runs", run_cases(arguments.runs))):
        report(name, Compared.of(cases, encoder), arguments.top)
    return 0


def report(name: str, found: "Compared", top: int) -> None:
    """Print the tables of one history."""
    print(f"{name}: {len(found.cosine)} requests, {found.cosine.shape[1]} tasks")
    for low, high in pairwise(EDGES.tolist()):
        inside = (found.cosine >= low) & (found.cosine < high)
        own, other = inside & found.own, inside & ~found.own
        print(f"  cosine {low:5.2f} to {high:.2f}: own {rate(found, own)}   other industries {rate(found, other)}")
    for industry in sorted(set(found.industry)):
        asked = found.industry == industry
        penalty = learnt(found, ~asked)
        cells = [f"{industry:20}{int(asked.sum()):5} requests  penalty {penalty:.3f}"]
        for with_own in (True, False):
            for name, cost in (("wall", np.inf), ("penalty", penalty)):
                recall, precision = scored(found, asked, cost, top, with_own)
                cells.append(f"{'known' if with_own else 'unknown'} {name} {recall:.3f}/{precision:.3f}")
        print("  ".join(cells), flush=True)


class Compared:
    """Requests against tasks: `cosine`, `own` (of the request's industry), `right` [requests, tasks]; `industry`."""

    def __init__(self, cosine: np.ndarray, own: np.ndarray, right: np.ndarray, industry: np.ndarray) -> None:
        self.cosine, self.own, self.right, self.industry = cosine, own, right, industry

    @classmethod
    def of(cls, cases: Sequence[Case], encoder: Encoder) -> "Compared":
        """The requests of successful cases against the tasks of every industry."""
        tasks = sorted({(case.industry, task) for case in cases for task in case.steps})
        names = [task.replace("_", " ") for _, task in tasks]
        vectors = encoder.encode(names)
        titles = np.array([folded(name) for name in names], dtype=object)
        same = (vectors @ vectors.T >= SAME) | (titles[:, None] == titles[None])
        done: dict[tuple[str, str], set[str]] = {}
        for case in cases:
            if case.success is not False:
                done.setdefault((case.industry, f"{case.title}\n{case.text}"), set()).update(case.steps)
        keys = sorted(done)[:: max(1, -(-len(done) // MOST))]
        words = words_of(encoder.max_tokens)
        asked = np.stack([unit(encoder.encode(stretches(text, words)).mean(0)) for _, text in keys])
        own = np.array([[industry == other for other, _ in tasks] for industry, _ in keys])
        right = np.zeros(own.shape, bool)
        for n, key in enumerate(keys):
            mine = [place for place, (industry, task) in enumerate(tasks) if industry == key[0] and task in done[key]]
            right[n] = np.where(own[n], np.isin(np.arange(len(tasks)), mine), same[mine].any(0))
        return cls(asked @ vectors.T, own, right, np.array([industry for industry, _ in keys], dtype=object))


def rate(found: Compared, inside: np.ndarray) -> str:
    """How often the pairs are right."""
    size = int(inside.sum())
    return f"{found.right[inside].mean():.3f} of {size:7,}" if size else f"  -   of {0:7,}"


def learnt(found: Compared, rows: np.ndarray) -> float:
    """The penalty in cosine; infinity where hits of other industries are never right, or where cosine tells nothing."""
    cosine, own, right = (values[rows] for values in (found.cosine, found.own, found.right))
    near = np.zeros(own.shape, bool)
    for group in (own, ~own):  # the nearest of each kind, which are those that a routing looks at
        ranks = np.argsort(np.argsort(-np.where(group, cosine, -2.0), axis=1), axis=1)
        near |= group & (ranks < NEAR)
    if not right[near & ~own].any():
        return float("inf")
    x = np.column_stack([cosine[near], ~own[near]]).astype(float)
    model = LogisticRegression(C=100.0, max_iter=1000).fit(x, right[near])
    by_cosine, by_other = model.coef_[0]
    return float(-by_other / by_cosine) if by_cosine > 0 else float("inf")


def scored(found: Compared, rows: np.ndarray, penalty: float, top: int, with_own: bool) -> tuple[float, float]:
    """Share of the right tasks of the own industry whose name is among the routed ones, and of routed ones right."""
    cost = np.where(found.own[rows], 0.0 if with_own else np.inf, penalty)
    score = found.cosine[rows] - cost
    recalls, precisions = [], []
    for n, row in enumerate(score):
        order = np.argsort(-row, kind="stable")[:top]
        chosen = order[np.isfinite(row[order])]
        right = found.right[rows][n]
        wanted = int((right & found.own[rows][n]).sum())
        if wanted:
            recalls.append(min(1.0, right[chosen].sum() / min(top, wanted)))
            precisions.append(right[chosen].mean() if len(chosen) else 0.0)
    return float(np.mean(recalls)), float(np.mean(precisions))


if __name__ == "__main__":
    sys.exit(main())
