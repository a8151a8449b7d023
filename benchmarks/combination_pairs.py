"""Pairs of task groups for `combinations.py`: cases of several histories in one form, their groups, and five folds.

In: an event log as XES, evaluated runs of agents as JSONL, and the sample. Out: `Fold`s. Door: `folds_of`.

A group is a set of tasks that occur together: the tasks of an industry that at most `COMMON` of its cases have, joined
where the Jaccard index of their cases reaches a threshold. A pair are two groups that some cases contain both, and
enough cases contain one of alone. Pairs that the same cases combine count once.
"""

import gzip
import hashlib
import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from opus_pipelines.quality.sample.cases import draw_cases
from opus_pipelines.quality.sample.sources import SOURCES

FOLDS = 5
LOG_CASES = 4_000  # cases of the log that are taken, by the hash of their ids
FEWEST, ALONE = 5, 8  # cases that a pair combines, and that have one of its groups alone, at least
RARE = 8  # cases that have a task, below which it is in no group
COMMON, COMBINED = 0.8, 0.25  # most cases that have a task of a group; most cases that a pair combines
TOGETHER = (0.5, 0.9)  # Jaccard indices from which on tasks are one group
GOLD = 20  # most cases of a pair that a plan is compared with

Group = frozenset[str]


@dataclass(frozen=True)
class Case:
    """One case: its tasks in order with repetitions, its texts, and whether it succeeded (None: unknown)."""

    id: str
    source: str
    industry: str
    steps: tuple[str, ...]
    success: bool | None
    title: str = ""
    text: str = ""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks, each once at its first occurrence."""
        return tuple(dict.fromkeys(self.steps))


@dataclass(frozen=True)
class Pair:
    """Two groups of one industry."""

    source: str
    industry: str
    groups: tuple[Group, Group]

    @property
    def id(self) -> str:
        """The pair in words, unique."""
        return f"{self.industry}: " + " + ".join("/".join(sorted(group)) for group in self.groups)

    def combined_by(self, case: Case) -> bool:
        """Whether the case contains both groups."""
        return case.industry == self.industry and self.groups[0] | self.groups[1] <= set(case.steps)


@dataclass(frozen=True)
class Asked:
    """A pair with the task of each group that the request names, and the cases that combined the groups."""

    pair: Pair
    demanded: tuple[str, str]
    gold: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Fold:
    """The cases that are left for mining, and what is asked."""

    history: tuple[Case, ...]
    asked: tuple[Asked, ...]


def folds_of(log: Path, runs: Path) -> list[Fold]:
    """Return the folds of all pairs: no case that a pair of a fold combines is in the history of that fold."""
    cases = [*log_cases(log), *run_cases(runs), *sample_cases()]
    pairs = [
        p for source in sorted({c.source for c in cases}) for p in pairs_of([c for c in cases if c.source == source])
    ]
    return [_fold(part, cases) for part in _spread(pairs, cases)]


def log_cases(path: Path) -> list[Case]:
    """The cases of an XES log by hash; a work item counts where it is started, not scheduled or completed."""
    found = []
    with gzip.open(path) as file:
        for _, trace in ElementTree.iterparse(file):
            if trace.tag.rpartition("}")[2] == "trace":
                found.append(_traced(trace))
                trace.clear()
    chosen = sorted((c for c in found if c.steps), key=lambda c: _hash(c.id))[:LOG_CASES]
    return sorted(chosen, key=lambda c: c.id)


def _traced(trace: ElementTree.Element) -> Case:
    values = [{a.get("key"): a.get("value") for a in event} for event in trace if event.tag.endswith("event")]
    name = next((a.get("value") for a in trace if a.get("key") == "concept:name"), None)
    started = {e["concept:name"] for e in values if e.get("lifecycle:transition") == "START"}
    steps = [
        str(e["concept:name"])
        for e in values
        if e.get("lifecycle:transition") == "START" or e["concept:name"] not in started
    ]
    return Case(str(name), "log", "log", tuple(steps), None)


def run_cases(path: Path) -> list[Case]:
    """The runs of agents in which the request should be fulfilled, with the tools that they called."""
    found = []
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            steps = [s["tool"] for s in row["steps"] if not s.get("malformed_tool_name")]
            steps = [tool for tool in steps if tool != "exit_conversation"]
            if steps and row["action_should_succeed"]:
                success = bool(row["eval"]["success"])
                texts = row["user_goal"], row["user_prompt"]
                found.append(Case(row["trace_id"], "runs", row["domain"], tuple(steps), success, *texts))
    return found


def sample_cases() -> list[Case]:
    """The cases of the sample's history, by the names of the tasks in its model."""
    found = []
    for source in SOURCES:
        for contract in source.contracts:
            for kind in contract.kinds:
                for case in draw_cases(0, source.industry, contract.name, kind):
                    number = f"{source.name}-{len(found):05d}"
                    steps = tuple(step.task.name for step in case.performed)
                    texts = kind.title, case.description
                    found.append(Case(number, "sample", source.industry.name, steps, case.success, *texts))
    return found


def pairs_of(cases: Sequence[Case]) -> list[Pair]:
    """The pairs of one source's industries; of pairs that the same cases combine, the first."""
    found = []
    for industry in sorted({c.industry for c in cases}):
        good = [c for c in cases if c.industry == industry and c.success is not False]
        tasks = [frozenset(c.steps) for c in good]
        groups = list(dict.fromkeys(g for least in TOGETHER for g in _groups(tasks, least)))
        seen: set[frozenset[int]] = set()
        for one, other in combinations(groups, 2):
            has_one, has_other = ({n for n, own in enumerate(tasks) if group <= own} for group in (one, other))
            both = frozenset(has_one & has_other)
            enough = len(both) >= FEWEST and min(len(has_one - both), len(has_other - both)) >= ALONE
            if not one & other and enough and len(both) <= COMBINED * len(good) and both not in seen:
                seen.add(both)
                found.append(Pair(good[0].source, industry, (one, other)))
    return found


def _groups(cases: Sequence[frozenset[str]], least: float) -> Iterator[Group]:
    counts = Counter(task for tasks in cases for task in tasks)
    known = sorted(t for t, n in counts.items() if RARE <= n <= COMMON * len(cases))
    both = Counter(pair for tasks in cases for pair in combinations(sorted(tasks.intersection(known)), 2))
    group = {task: frozenset({task}) for task in known}
    for (a, b), n in sorted(both.items()):
        if n / (counts[a] + counts[b] - n) >= least:
            joined = group[a] | group[b]
            group |= dict.fromkeys(joined, joined)
    yield from dict.fromkeys(group.values())


def _spread(pairs: Sequence[Pair], cases: Sequence[Case]) -> list[list[Pair]]:
    """The pairs by fold: each goes to the smallest fold whose history then still has enough cases of every group."""
    parts: list[list[Pair]] = [[] for _ in range(FOLDS)]
    for pair in sorted(pairs, key=lambda p: _hash(p.id)):
        for part in sorted(parts, key=len):
            own = [p for p in part if p.industry == pair.industry]
            if _is_possible([*own, pair], [c for c in cases if c.industry == pair.industry]):
                part.append(pair)
                break
    return parts


def _is_possible(pairs: Sequence[Pair], cases: Sequence[Case]) -> bool:
    left = [set(c.steps) for c in cases if c.success is not False and not any(p.combined_by(c) for p in pairs)]
    return all(sum(group <= tasks for tasks in left) >= ALONE for pair in pairs for group in pair.groups)


def _fold(pairs: Sequence[Pair], cases: Sequence[Case]) -> Fold:
    history = tuple(c for c in cases if not any(p.combined_by(c) for p in pairs))
    return Fold(history, tuple(_asked(pair, cases, history) for pair in pairs))


def _asked(pair: Pair, cases: Sequence[Case], history: Sequence[Case]) -> Asked:
    """The rarest task of each group is named, because it tells most about the group; the later one among equals."""
    left = [c.tasks for c in history if c.industry == pair.industry and c.success is not False]

    def key(task: str) -> tuple[int, float, str]:
        places = [tasks.index(task) / len(tasks) for tasks in left if task in tasks]
        return len(places), -sum(places) / len(places), task

    good = [c for c in cases if c.success is not False and pair.combined_by(c)]
    gold = tuple(c.tasks for c in sorted(good, key=lambda c: _hash(c.id))[:GOLD])
    one, other = (min(group, key=key) for group in pair.groups)
    return Asked(pair, (one, other), gold)


def _hash(*parts: Any) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()
