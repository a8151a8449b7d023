#!/usr/bin/env python3
"""Measures how well an Intention finds the tasks that answered it, and the cases that were answered alike.

    PYTHONPATH=. .venv/bin/python benchmarks/intention.py WORK [--by goal|request|client]

WORK is a folder with a lake of `opus rebuild`. The distinct cases of each industry with a text that did not fail are
asked by their description. They are cut into two halves by what is held out; an encoder of one half answers the other.

    tasks   share of a case's tasks among the k tasks that are nearest, of k where it did more
    cases   share of the asked cases that find another request with the same set of tasks among the k nearest requests,
            by client: of other clients; those that have none are not asked

Rows: the plain text of the request, BM25 over words, the mean of all elements, the Intention without training, and the
trained encoder, which by construction ranks tasks by probability. Intervals: 95 %, by bootstrap over what is held out.
"""

import argparse
import math
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings, load
from opus_pipelines.intakes.requirements.intention_encoder import IntentionEncoder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.language.embedding.texts import compose, unit
from opus_pipelines.lwm.fine_tuning.encoder_training import fit_encoder
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.training.train_intention import AskedCases, asked_cases, halves
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import interval

MOST = 150  # asked of each half of an industry
AT = (1, 5, 10)
ROWS = ("request", "BM25", "mean of elements", "untrained Intention", "trained encoder")


def main() -> int:
    """Print recall at 1, 5 and 10 of tasks and of cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--by", choices=["goal", "request", "client"], default="goal")
    arguments = parser.parse_args()
    settings = load(arguments.work / "opus.toml") if (arguments.work / "opus.toml").is_file() else Settings()
    lake = Lake(arguments.work / "lake")
    index = SnapshotIndex(Snapshot.open(lake))
    encoder = CachedEncoder(Encoder(settings.encoder), lake.kept / "embeddings")
    cases = {name: one for name in index.industries if (one := asked_cases(index, name, encoder)) is not None}
    groups = {
        name: {"goal": c.goals, "request": c.requests, "client": c.clients}[arguments.by] for name, c in cases.items()
    }
    texts = {t: index.graph.tasks[t] for c in cases.values() for t in c.tasks}
    words = {task: f"{found.title} {found.description or ''}" for task, found in texts.items()}
    rows: dict[str, list[tuple[str, str, str, list[float]]]] = {"tasks": [], "cases": []}
    for side in (0, 1):
        half = {name: halves(group) for name, group in groups.items()}
        known = {n: c.taught.among(np.flatnonzero(half[n] != side).tolist()) for n, c in cases.items()}
        trained = fit_encoder(list(known.values()))
        for name, own in cases.items():
            asked = sorted(np.flatnonzero(half[name] == side).tolist(), key=lambda n: digest("asked", n))[:MOST]
            found = _Answers(own, trained, [words[t] for t in own.tasks], arguments.by == "client")
            for n in asked:
                for row, scores in found.of_tasks(n, known[name].rates).items():
                    rows["tasks"].append((name, row, groups[name][n], _recall(scores, own.taught.done[n])))
                for row, shares in found.of_cases(n).items():
                    rows["cases"].append((name, row, groups[name][n], shares))
    for what, measured in rows.items():
        for name in (*cases, "all"):
            _table(f"{what}, {name}, held out by {arguments.by}", [r[1:] for r in measured if name in (r[0], "all")])
    return 0


class _Answers:
    """What each row finds for a case of an industry."""

    def __init__(self, cases: AskedCases, trained: IntentionEncoder, words: list[str], elsewhere: bool) -> None:
        self.cases, self.trained, self.elsewhere = cases, trained, elsewhere
        taught = cases.taught
        self.inputs = taught.inputs
        parts = [taught.parts(n) for n in range(len(cases.requests))]
        self.mean = np.stack([unit(np.concatenate([p["input"], p["context"]]).mean(0)) for p in parts])
        self.untrained = np.stack([compose(p["input"][0], p["context"]) for p in parts])
        self.composed = np.stack([trained.composed({**p, "output": ()}) for p in parts])
        self.mapped = trained.intentions(self.composed)
        self.task_words, self.request_words = _Words(words), _Words(cases.requests)
        self.done = [frozenset(np.flatnonzero(row).tolist()) for row in taught.done]

    def of_tasks(self, n: int, rates: np.ndarray) -> dict[str, np.ndarray]:
        """The score of each task."""
        tasks = self.cases.taught.tasks
        near = [tasks @ v[n] for v in (self.inputs, self.mean, self.untrained)]
        likely = self.trained.probabilities(self.composed[n][None], tasks, rates)[0]
        return dict(
            zip(ROWS, (near[0], self.task_words.scores(self.cases.requests[n]), *near[1:], likely), strict=True)
        )

    def of_cases(self, n: int) -> dict[str, list[float]]:
        """Whether another request with the same tasks is among the k nearest; nothing where there is none."""
        cases = self.cases
        allowed = np.array([request != cases.requests[n] for request in cases.requests])
        if self.elsewhere:
            allowed &= np.array([client != cases.clients[n] for client in cases.clients])
        alike = {cases.requests[m] for m in np.flatnonzero(allowed) if self.done[m] == self.done[n]}
        if not alike:
            return {}
        near = [v @ v[n] for v in (self.inputs, self.mean, self.untrained, self.mapped)]
        scores = dict(zip(ROWS, (near[0], self.request_words.scores(cases.requests[n]), *near[1:]), strict=True))
        return {row: self._found(np.where(allowed, values, -np.inf), alike) for row, values in scores.items()}

    def _found(self, scores: np.ndarray, alike: set[str]) -> list[float]:
        order = np.argsort(-scores, kind="stable")
        nearest = list(dict.fromkeys(self.cases.requests[m] for m in order[: 20 * AT[-1]].tolist()))
        return [float(not alike.isdisjoint(nearest[:k])) for k in AT]


class _Words:
    """BM25 (k1 = 1.2, b = .75) over short texts."""

    def __init__(self, texts: "list[str] | tuple[str, ...]") -> None:
        self.counts = [Counter(_words(text)) for text in texts]
        self.lengths = np.array([sum(c.values()) for c in self.counts], float)
        self.frequency = Counter(word for c in self.counts for word in c)

    def scores(self, query: str) -> np.ndarray:
        """The score of each text."""
        found = np.zeros(len(self.counts))
        norm = 1.2 * (0.25 + 0.75 * self.lengths / max(1.0, float(self.lengths.mean())))
        for word in set(_words(query)) & self.frequency.keys():
            idf = math.log(1 + (len(self.counts) - self.frequency[word] + 0.5) / (self.frequency[word] + 0.5))
            counts = np.array([c.get(word, 0) for c in self.counts], float)
            found += idf * counts * 2.2 / (counts + norm)
        return found


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())


def _recall(scores: np.ndarray, done: np.ndarray) -> list[float]:
    order = np.argsort(-scores, kind="stable")
    return [float(done[order[:k]].sum()) / min(k, int(done.sum())) for k in AT]


def _table(title: str, rows: list[tuple[str, str, list[float]]]) -> None:
    if not rows:
        return
    by_row = {name: np.array([values for row, _, values in rows if row == name]) for name in ROWS}
    groups = [group for row, group, _ in rows if row == ROWS[0]]
    print(f"\n{title}: n = {len(groups)}, at {', '.join(map(str, AT))}; trained encoder minus the row at {AT[-1]}")
    for name, values in by_row.items():
        low, high = interval((by_row[ROWS[-1]][:, -1] - values[:, -1]).tolist(), groups)
        less = f"{(by_row[ROWS[-1]][:, -1] - values[:, -1]).mean():+.3f} [{low:+.3f}, {high:+.3f}]"
        print(f"{name:24}" + "".join(f"{v:8.3f}" for v in values.mean(0)) + f"   {less if name != ROWS[-1] else ''}")


if __name__ == "__main__":
    sys.exit(main())
