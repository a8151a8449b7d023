#!/usr/bin/env python3
"""Measures whether every part matters, by spoiling one part at a time (DESIGN 5).

The whole pipeline is compared with each variant and with look-ups, each with a bootstrap 95 % interval.

    PYTHONPATH=. .venv/bin/python benchmarks/ablations.py sopbench WORK INTAKES.jsonl SCORER.py DATA
        [--by key] [--fold 0] [--every N]
    PYTHONPATH=. .venv/bin/python benchmarks/ablations.py sample WORK

WORK is a folder with a lake and intakes: of `benchmarks/sopbench.py --work WORK`, or of `opus sample`, `opus rebuild`
there. The snapshot is mined once; each variant generates anew, in this process:

    gamma shuffled    the figures of the WKG's edges (counts, gamma, probability) change places
    no WKG            no edges, and nothing known of tasks but their names and who does them
    Intention const.  every intake has the mean Intention and the mean request
    other's context   every intake has the process context of another one of its industry, a different one where there
    is any
    walks alone       the near cases' own sequences taken away: what is left is walked along the WKG's edges
    walks, gamma sh.  both; its difference is that to `walks alone`

A difference is paired: of the same intakes, with its own bootstrap interval; where that holds 0, the part does not
show. `changed` is the share of intakes whose rank-1 workflow is another. SOPBench is scored by its own script, its
intervals over goals as there; the sample by the Reward simulated from the truth that it was drawn from.
"""

import argparse
import contextlib
import json
import random
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from two_jobs import script  # type: ignore[import-not-found]  # beside this file

from opus_pipelines.core.settings import Settings, load
from opus_pipelines.embedding.cache import CachedEncoder
from opus_pipelines.embedding.encoder import Encoder
from opus_pipelines.embedding.passages import unit
from opus_pipelines.generation import request as request_stage
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Ranked, Refused
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.discover import discover
from opus_pipelines.intakes.intake import Intake, read_intake
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.history_backend import HistoryBackend, first_occurrences
from opus_pipelines.lwm.interface import LwmRequest, SimilarCase, TaskSequence
from opus_pipelines.metrics.intervals import interval
from opus_pipelines.requirements.encode import Intention
from opus_pipelines.retrieval.intentions import intentions
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.wkg.snapshot import Snapshot
from tests.sample.optimum import best_steps
from tests.sample.simulate import simulate_chain, simulate_workflow

LOOKUPS = ("look-up: nearest success", "look-up: best of 10 nearest")
VARIANTS = (
    "whole",
    "gamma shuffled",
    "no WKG",
    "Intention const.",
    "other's context",
    "walks alone",
    "walks, gamma sh.",
)
AGAINST = {name: "walks alone" if name == "walks, gamma sh." else "whole" for name in (*LOOKUPS, *VARIANTS[1:])}


@dataclass(frozen=True)
class Asked:
    """One intake of a contract, with what its contract says of prices."""

    intake: Intake
    contract: Any
    kind: str | None = None


class Altered(SnapshotIndex):
    """The index of a snapshot with another graph."""

    def __init__(self, snapshot: Snapshot, graph: WorkGraph) -> None:
        super().__init__(snapshot)
        self._altered = graph

    @property
    def graph(self) -> WorkGraph:
        """The altered one."""
        return self._altered


class Walks(HistoryBackend):
    """The backend without the near cases' own sequences, where it has any others."""

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """What the procedure asks for, works made one, and walks."""
        found, asked = super().generate(request), request.procedure.tasks if request.procedure else None
        return [s for s in found if s.source != "history" or s.tasks == asked] or found


class Bench:
    """A mined lake and the intakes beside it."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.settings: Settings = load(work / "opus.toml") if (work / "opus.toml").is_file() else Settings()
        lake = Lake(work / "lake")
        self.snapshot = Snapshot.open(lake)
        self.encoder = CachedEncoder(Encoder(self.settings.encoder), lake.kept / "embeddings")
        self.index = SnapshotIndex(self.snapshot)
        self.asked = [
            Asked(read_intake(c, folder, self.settings), c) for c in discover(work / "intakes") for folder in c.intakes
        ]

    def made(self, variant: str, asked: Asked) -> Ranked | None:
        """What the variant generates for an intake's first Intention."""
        intake = self.strange(asked.intake) if variant == "other's context" else asked.intake
        graphs = {"gamma shuffled": self.shuffled, "walks, gamma sh.": self.shuffled, "no WKG": self.empty}
        index, model = (
            graphs.get(variant, lambda: self.index)(),
            Walks() if variant.startswith("walks") else HistoryBackend(),
        )
        cost = prices(self.settings, asked.contract.settings, asked.contract.folder)
        held = self.held_constant() if variant == "Intention const." else contextlib.nullcontext()
        terms = ContractTerms(cost, asked.contract.settings.review)
        context = GenerationContext(index, self.encoder, model, self.settings, terms)
        with held:
            try:
                return generate(intake, context)[0]
            except Refused:
                return None

    def shuffled(self) -> SnapshotIndex:
        """The figures of all edges change places."""
        if not hasattr(self, "_shuffled"):
            graph, order = self.index.graph, random.Random(0)
            edges = list(graph.edges.values())
            mixed = order.sample(edges, len(edges))
            moved = [replace(m, src=e.src, dst=e.dst) for e, m in zip(edges, mixed, strict=True)]
            self._shuffled = Altered(self.snapshot, WorkGraph.of(list(graph.tasks.values()), moved))
        return self._shuffled

    def empty(self) -> SnapshotIndex:
        """Names of tasks, and nothing more."""
        if not hasattr(self, "_empty"):
            bare = [
                Task(
                    t.task_id,
                    t.title,
                    industries=t.industries,
                    clients=t.clients,
                    execution_modes=tuple(
                        ExecutionMode(w.actor_kind, w.model, w.actor_group) for w in t.execution_modes[:1]
                    ),
                )
                for t in self.index.graph.tasks.values()
            ]
            self._empty = Altered(self.snapshot, WorkGraph.of(bare, []))
        return self._empty

    @contextlib.contextmanager
    def held_constant(self) -> Iterator[None]:
        """Every Intention has the mean vector and the mean request."""
        if not hasattr(self, "_mean"):
            own = [self.intention(a.intake) for a in self.asked]
            self._mean = (
                unit(np.mean([i.vector for i in own], 0)),
                unit(np.mean([unit(i.parts["input"].mean(0)) for i in own], 0)),
            )
        vector, request = self._mean

        def same(intake: Intake, index: SnapshotIndex, encoder: Any) -> list[Intention]:
            first = intentions(intake, index, encoder)[0]
            return [replace(first, vector=vector, parts={**first.parts, "input": request[None, :]})]

        with mock.patch.object(request_stage, "intentions", same):
            yield

    def intention(self, intake: Intake) -> Intention:
        """The intake's first Intention."""
        return intentions(intake, self.index, self.encoder)[0]

    def strange(self, intake: Intake) -> Intake:
        """The intake with the process context of another one of its industry."""
        others = [
            a.intake
            for a in self.asked
            if a.intake.industry == intake.industry and a.intake.intake_id != intake.intake_id
        ]
        different = [o for o in others if _context(o) != _context(intake)] or others
        if not different:
            return intake
        other = random.Random(intake.intake_id).choice(different)
        own = [e for e in intake.elements if e.role in ("input", "output")]
        return replace(intake, elements=[*own, *(e for e in other.elements if e.role not in ("input", "output"))])

    def looked_up(self, name: str, intake: Intake) -> SimilarCase | None:
        """The nearest case that succeeded; or of the ten nearest ones the most frequent sequence's."""
        near = self.index.cases.near(
            self.intention(intake).vector, intake.industry, self.settings.generation.near_cases
        )
        right = [c for c in near if c.success is not False and c.tasks]
        if name == LOOKUPS[0] or not right:
            return right[0] if right else None
        votes = [first_occurrences(c.tasks) for c in right[:10]]
        best = max(votes, key=lambda tasks: (votes.count(tasks), -votes.index(tasks)))
        return right[votes.index(best)]


def sopbench(arguments: argparse.Namespace) -> None:
    """The scorer's own table, a row a variant."""
    bench = Bench(arguments.work)
    scorer = script(arguments.scorer)
    keys = {json.loads(line)["task_key"] for line in arguments.intakes.read_text().splitlines() if line.strip()}
    tasks = scorer.load(arguments.data)
    asked = {a.intake.folder: a for a in bench.asked[:: arguments.every] if a.intake.folder in keys}
    rows: dict[str, dict[str, list[str]]] = {}
    for name in LOOKUPS:
        rows[name] = {k: _keys(bench.looked_up(name, a.intake)) for k, a in asked.items()}
    for name in VARIANTS:
        rows[name] = {k: _actions(bench, bench.made(name, a)) for k, a in asked.items()}
        print(f"{name}: done", file=sys.stderr, flush=True)
    title = f"held out by {arguments.by}, fold {arguments.fold}"
    scorer.table(title, tasks, list(asked), {name: (lambda k, found=found: found[k]) for name, found in rows.items()})
    scores = {name: [tasks[k]["gold"].score(found[k]) for k in asked] for name, found in rows.items()}
    goals = [tasks[k]["goal"] for k in asked]
    for measure in ("F1", "ordR", "clean"):
        print_differences(
            {name: [s[measure] for s in found] for name, found in scores.items()}, AGAINST, measure, goals
        )
    _changed({name: {k: tuple(v) for k, v in rows[name].items()} for name in VARIANTS})


def sample(arguments: argparse.Namespace) -> None:
    """Reward simulated from the truth, a row a variant, and what no case of history is."""
    bench = Bench(arguments.work)
    truth = json.loads((arguments.work / "truth.json").read_text())
    kinds = {(i["client"], i["contract"], i["intake"]): i["kind"] for i in truth["intakes"]}
    asked = [replace(a, kind=kinds[a.contract.client, a.contract.contract, a.intake.folder]) for a in bench.asked]
    rewards: dict[str, list[float]] = {}
    chosen: dict[str, dict[str, tuple[str, ...]]] = {}
    best = [best_steps(truth, str(a.intake.industry), str(a.kind), a.intake.gain_usd)[1] for a in asked]
    for name in LOOKUPS:
        rewards[name] = [looked_up_reward(truth, a, bench.looked_up(name, a.intake), bench) for a in asked]
    for name in VARIANTS:
        made = [bench.made(name, a) for a in asked]
        rewards[name] = [simulated_reward(truth, a, m) for a, m in zip(asked, made, strict=True)]
        chosen[name] = {a.intake.intake_id: _ids(m) for a, m in zip(asked, made, strict=True)}
        if name == "whole":
            new = [n for n, m in enumerate(made) if m and not bench.index.is_known_variant(m.ranked[0][1].tasks)]
    print(f"\nsample: Reward simulated from the truth, USD an intake, n = {len(asked)}")
    for name, values in rewards.items():
        low, high = interval(values, list(range(len(values))))
        print(f"{name:34}{np.mean(values):10.3f} [{low:.3f}, {high:.3f}]")
    print(f"{'the best that the truth allows':34}{np.mean(best):10.3f}")
    whole, base = np.array(rewards["whole"]), np.maximum(*(np.array(rewards[name]) for name in LOOKUPS))
    print_differences(rewards, AGAINST, "USD", list(range(len(asked))))
    _changed(chosen)
    better = sum(whole[n] > base[n] for n in new)
    print(
        f"rank-1 workflows in no case of history: {len(new)} of {len(asked)}; of these {better} earn more than the "
        f"best look-up, "
        f"on average {float(np.mean(whole[new] - base[new])) if new else 0.0:.3f} USD more"
    )


def simulated_reward(truth: dict[str, Any], asked: Asked, made: Ranked | None) -> float:
    """The Reward of the rank-1 workflow by the sample's truth, in dollars; 0 where there is none."""
    if made is None:
        return 0.0
    return simulate_workflow(truth, str(asked.intake.industry), made.ranked[0][1].workflow, str(asked.kind)).mean_reward


def looked_up_reward(truth: dict[str, Any], asked: Asked, case: SimilarCase | None, bench: Bench) -> float:
    """Its tasks in their usual way, as history mostly does them."""
    if case is None:
        return 0.0
    tasks = [bench.index.graph.tasks[t] for t in first_occurrences(case.tasks)]
    steps = [(t.title, str(t.execution_modes[0].actor_kind), t.execution_modes[0].model) for t in tasks]
    return simulate_chain(truth, str(asked.intake.industry), steps, asked.intake.gain_usd, kind=asked.kind).mean_reward


def _actions(bench: Bench, made: Ranked | None) -> list[str]:
    """Raw keys of the rank-1 workflow's tasks, in order."""
    if made is None:
        return []
    near: dict[str, list[str]] = {}
    for case in made.evidence.cases:
        for task, key in zip(case.tasks, case.task_keys, strict=True):
            near.setdefault(task, []).append(key)
    raw = bench.index.raw_keys
    named = lambda t: (
        max(sorted(set(near[t])), key=near[t].count)
        if t in near
        else raw.get(t, [made.drafted.graph.tasks[t].title])[0]
    )
    return [named(t) for t in _ids(made)]


def _ids(made: Ranked | None) -> tuple[str, ...]:
    if made is None:
        return ()
    workflow = made.ranked[0][1].workflow
    known = {t.id: t.task_id for t in workflow.tasks if t.kind != "review"}
    return tuple(known[n] for n in workflow.topological() if n in known)


def _keys(case: SimilarCase | None) -> list[str]:
    return list(dict.fromkeys(case.task_keys)) if case else []


def _context(intake: Intake) -> list[str | None]:
    return [e.text for e in intake.elements if e.role == "process"]


def print_differences(
    found: Mapping[str, Sequence[float]], against: Mapping[str, str], measure: str, groups: Sequence[Hashable]
) -> None:
    """Prints for each row named in `against` the other row minus it, intake by intake.

    An interval that contains 0 shows nothing.
    """
    print(f"\n{measure}, paired differences")
    for name, base in against.items():
        less = np.array(found[base]) - np.array(found[name])
        low, high = interval(less.tolist(), groups)
        print(f"{f'{base} less {name}':46}{less.mean():10.3f} [{low:.3f}, {high:.3f}]")


def _changed(chosen: dict[str, dict[str, tuple[str, ...]]]) -> None:
    for name in VARIANTS[1:]:
        base = chosen[AGAINST[name]]
        print(f"changed by {name:23}{np.mean([chosen[name][k] != base[k] for k in base]):10.2f}")


def main() -> int:
    """One of the two benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    first = kinds.add_parser("sopbench")
    first.add_argument("work", type=Path)
    first.add_argument("intakes", type=Path)
    first.add_argument("scorer", type=Path, help="the script that scores: it has load() and table()")
    first.add_argument("data", type=Path)
    first.add_argument("--by", default="key")
    first.add_argument("--fold", default="0")
    first.add_argument("--every", type=int, default=1, help="only every n-th intake")
    first.set_defaults(run=sopbench)
    second = kinds.add_parser("sample")
    second.add_argument("work", type=Path)
    second.set_defaults(run=sample)
    arguments = parser.parse_args()
    run: Callable[[argparse.Namespace], None] = arguments.run
    run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
