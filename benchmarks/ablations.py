#!/usr/bin/env python3
"""Measures what each part is worth: the ablations of `opus evaluate` on the sample and on SOPBench (DESIGN 5).

The whole system is compared with each ablation, which leaves out or spoils exactly one part, and with look-ups, each
with a bootstrap 95 % interval.

    PYTHONPATH=. .venv/bin/python benchmarks/ablations.py sopbench WORK INTAKES.jsonl SCORER.py DATA
        [--by key] [--fold 0] [--every N] [--only NAME,NAME]
    PYTHONPATH=. .venv/bin/python benchmarks/ablations.py sample WORK [--only NAME,NAME]

WORK is a folder with a lake and intakes: of `benchmarks/sopbench.py --work WORK`, or of `opus sample`, `opus rebuild`
and, for trained models, `opus train` there. The snapshot is mined once; each ablation generates anew, in this process.

A difference is paired: of the same intakes, with its own bootstrap interval; where that holds 0, the part does not
show. `changed` is the share of intakes whose rank-1 workflow is another. SOPBench is scored by its own script, its
intervals over goals as there; the sample by the Reward simulated from the truth that it was drawn from. Ablations of
task sets in words (`opus evaluate TASKSET --ablate all`) have the same names.
"""

import argparse
import json
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from two_jobs import script  # type: ignore[import-not-found]  # beside this file

from opus_pipelines.core.settings import Settings, load
from opus_pipelines.generation.flow import rank_workflows, read_requests
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Ranked, Refused, Request
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.intake import Intake, discover, read_intake
from opus_pipelines.intakes.requirements.intention import Intention
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.interface import LargeWorkModel, SimilarCase, backend_of
from opus_pipelines.lwm.retrieval.intentions import intentions
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.quality.systems import ABLATIONS, NO_ABLATION, Ablation, applies
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import interval
from tests.quality.sample.optimum import best_steps
from tests.quality.sample.simulate import simulate_chain, simulate_workflow

T, R = TypeVar("T"), TypeVar("R")
WHOLE = NO_ABLATION.name
LOOKUPS = ("look-up: nearest success", "look-up: best of 10 nearest")


@dataclass(frozen=True)
class Asked:
    """One intake of a contract, with what its contract says of prices."""

    intake: Intake
    contract: Any
    kind: str | None = None


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

    def model(self) -> LargeWorkModel:
        """The default backend with the trained models of the lake, where there are any."""
        paths = self.settings.paths.model_copy(update={"lake": self.work / "lake"})
        return backend_of(self.settings.model_copy(update={"paths": paths}))

    def context(self, asked: Asked, model: LargeWorkModel) -> GenerationContext:
        """What generation of the intake needs, with the terms of its contract."""
        cost = prices(self.settings, asked.contract.settings, asked.contract.folder)
        terms = ContractTerms(cost, asked.contract.settings.review)
        return GenerationContext(self.index, self.encoder, model, self.settings, terms)

    def made(self, ablation: Ablation, asked: Sequence[Asked], model: LargeWorkModel) -> list[Ranked | None]:
        """What is generated under the ablation for the first Intention of each intake; None where it is refused."""
        contracts = {one.contract.folder: one for one in asked}
        changed = {folder: ablation.context(self.context(one, model)) for folder, one in contracts.items()}
        contexts = [changed[one.contract.folder] for one in asked]
        intakes = ablation.intakes([one.intake for one in asked])
        encoded = [_unless_refused(self._encoded, i, c) for i, c in zip(intakes, contexts, strict=True)]
        known = [request for request in encoded if request is not None]
        altered = iter(ablation.requests(known) if known else [])
        return [
            None if request is None else _unless_refused(rank_workflows, next(altered), context)
            for request, context in zip(encoded, contexts, strict=True)
        ]

    @staticmethod
    def _encoded(intake: Intake, context: GenerationContext) -> Request:
        return read_requests(intake, context)[0]

    def intention(self, intake: Intake) -> Intention:
        """The intake's first Intention."""
        return intentions(intake, self.index, self.encoder)[0]

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


def _unless_refused(stage: Callable[[T, GenerationContext], R], given: T, context: GenerationContext) -> R | None:
    try:
        return stage(given, context)
    except Refused:
        return None


def systems_of(arguments: argparse.Namespace, model: LargeWorkModel) -> list[Ablation]:
    """The whole system and the ablations that were asked for; without a choice all that apply to the model."""
    names = list(filter(None, arguments.only.split(",")))
    return [NO_ABLATION, *(a for a in ABLATIONS.values() if a.name in names or (not names and applies(a.name, model)))]


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
    model = bench.model()
    systems = systems_of(arguments, model)
    for system in systems:
        made = bench.made(system, list(asked.values()), model)
        rows[system.name] = {k: _actions(bench, one) for k, one in zip(asked, made, strict=True)}
        print(f"{system.name}: done", file=sys.stderr, flush=True)
    title = f"held out by {arguments.by}, fold {arguments.fold}"
    scorer.table(title, tasks, list(asked), {name: (lambda k, found=found: found[k]) for name, found in rows.items()})
    scores = {name: [tasks[k]["gold"].score(found[k]) for k in asked] for name, found in rows.items()}
    goals = [tasks[k]["goal"] for k in asked]
    for measure in ("F1", "ordR", "clean"):
        print_differences({name: [s[measure] for s in found] for name, found in scores.items()}, measure, goals)
    _changed({system.name: {k: tuple(v) for k, v in rows[system.name].items()} for system in systems})


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
    model = bench.model()
    for system in systems_of(arguments, model):
        made = bench.made(system, asked, model)
        rewards[system.name] = [simulated_reward(truth, a, m) for a, m in zip(asked, made, strict=True)]
        chosen[system.name] = {a.intake.intake_id: _ids(m) for a, m in zip(asked, made, strict=True)}
        if system is NO_ABLATION:
            new = [n for n, m in enumerate(made) if m and not bench.index.is_known_variant(m.ranked[0][1].tasks)]
    print(f"\nsample: Reward simulated from the truth, USD an intake, n = {len(asked)}")
    for name, values in rewards.items():
        low, high = interval(values, list(range(len(values))))
        print(f"{name:34}{np.mean(values):10.3f} [{low:.3f}, {high:.3f}]")
    print(f"{'the best that the truth allows':34}{np.mean(best):10.3f}")
    whole, base = np.array(rewards[WHOLE]), np.maximum(*(np.array(rewards[name]) for name in LOOKUPS))
    print_differences(rewards, "USD", list(range(len(asked))))
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


def print_differences(found: Mapping[str, Sequence[float]], measure: str, groups: Sequence[Hashable]) -> None:
    """Prints the whole system minus each other row, intake by intake.

    An interval that contains 0 shows nothing.
    """
    print(f"\n{measure}, paired differences")
    for name in found:
        if name != WHOLE:
            less = (np.array(found[WHOLE]) - np.array(found[name])).tolist()
            low, high = interval(less, groups)
            print(f"{f'{WHOLE} less {name}':46}{np.mean(less):10.3f} [{low:.3f}, {high:.3f}]")


def _changed(chosen: Mapping[str, Mapping[str, tuple[str, ...]]]) -> None:
    base = chosen[WHOLE]
    for name, own in chosen.items():
        if name != WHOLE:
            print(f"changed by {name:23}{np.mean([own[k] != base[k] for k in base]):10.2f}")


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
    for one in (first, second):
        one.add_argument("--only", default="", help="names of ablations, comma-separated; default: all that apply")
    second.set_defaults(run=sample)
    arguments = parser.parse_args()
    run: Callable[[argparse.Namespace], None] = arguments.run
    run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
