#!/usr/bin/env python3
"""Measures what the sample's rank-1 workflows earn where few or no similar cases may be used.

    PYTHONPATH=. .venv/bin/python benchmarks/near_cases.py WORK [--cases 0,1,3] [--without "no edges"] [--untrained]

WORK is a folder of `opus sample` with a lake of `opus rebuild` and, for the trained Intention encoder, `opus train`
(`--untrained`: the history backend). With 0 cases no case is retrieved; with n cases the n most similar ones are, for
each of the processes that an intake asks for. The Reward is simulated from the truth that the sample was drawn from;
intervals are 95 %, by bootstrap over intakes; a difference is paired. `area` is the mean over the numbers of cases.

That truth prices which steps are done and by whom, and no order: an invoice that is archived before it is received
earns as much. So `order` is printed, too: the F1 of the ordered pairs of steps (a anywhere before b) against the flow
that the truth draws cases of the kind from.
"""

import argparse
import json
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from ablations import ABLATIONS, NO_ABLATION  # type: ignore[import-not-found]  # beside this file
from parts import Asked, Bench, reward_by_truth  # type: ignore[import-not-found]  # beside this file

from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import Part, Ranked, Refused
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.workflow.metrics.plan_scores import f1, interval
from tests.quality.sample.optimum import best_steps
from tests.quality.sample.simulate import step_of


def main() -> int:
    """Print a line for each number of cases and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--cases", default="0,1,3")
    parser.add_argument("--without", default="no edges", help="ablations of `opus evaluate`, comma-separated")
    parser.add_argument("--untrained", action="store_true", help="without trained models")
    arguments = parser.parse_args()
    bench = Bench(arguments.work)
    model = HistoryBackend() if arguments.untrained else bench.model()
    truth = json.loads((arguments.work / "truth.json").read_text())
    kinds = {(i["client"], i["contract"], i["intake"]): i["kind"] for i in truth["intakes"]}
    asked = [replace(a, kind=kinds[a.contract.client, a.contract.contract, a.intake.folder]) for a in bench.asked]
    best = [best_steps(truth, str(a.intake.industry), str(a.kind), a.intake.gain_usd)[1] for a in asked]
    print(f"{len(asked)} intakes; the best that the truth allows: {np.mean(best):.2f} USD an intake")
    names = ["whole system", *filter(None, arguments.without.split(","))]
    rewards: dict[str, list[list[float]]] = {name: [] for name in names}
    orders: dict[str, list[list[float]]] = {name: [] for name in names}
    for most in map(int, arguments.cases.split(",")):
        for name in names:
            results = [made(bench, a, model, most, name) for a in asked]
            rewards[name].append([reward_by_truth(truth, a, m) for a, m in zip(asked, results, strict=True)])
            orders[name].append([order(truth, a, m) for a, m in zip(asked, results, strict=True)])
            print_row(f"{most} cases, {name}", rewards[name][-1], rewards[names[0]][-1])
            print_row(f"{most} cases, {name}, order", orders[name][-1], orders[names[0]][-1])
    for measure, found in (("", rewards), (", order", orders)):
        for name in names:
            print_row(f"area, {name}{measure}", np.mean(found[name], 0).tolist(), np.mean(found[names[0]], 0).tolist())
    return 0


def order(truth: dict[str, Any], asked: Asked, made: Ranked | None) -> float:
    """The F1 of the ordered pairs of steps of rank 1 against those of the flow of the intake's kind; 0 without one."""
    industry = str(asked.intake.industry)
    flow = [task for task, _, _ in best_steps(truth, industry, str(asked.kind), asked.intake.gain_usd or 0.0)[0]]
    if made is None:
        return 0.0
    workflow = made.ranked[0][1].workflow
    titles = {t.id: made.drafted.graph.tasks[t.task_id].title for t in workflow.tasks if not t.is_review}
    steps = [step_of(truth, industry, titles[node]) for node in workflow.topological() if node in titles]
    return f1(set(combinations(steps, 2)), set(combinations(flow, 2)))


def made(bench: Bench, asked: Asked, model: Any, most: int, name: str) -> Ranked | None:
    """What the named system generates for an intake's first Intention with at most so many similar cases."""
    few = bench.settings.generation.model_copy(update={"near_cases": max(most, 1)})
    settings = bench.settings.model_copy(update={"generation": few})
    without = frozenset() if most else frozenset({Part.SIMILAR_CASES})
    context = replace(bench.context(asked, model), settings=settings, without=without)
    ablation = ABLATIONS.get(name, NO_ABLATION)
    try:
        return generate(asked.intake, ablation.context(context))[0]
    except Refused:
        return None


def print_row(name: str, values: list[float], whole: list[float]) -> None:
    """Print the mean of the values, and what the whole system has more, each with its interval."""
    groups = list(range(len(values)))
    low, high = interval(values, groups)
    line = f"{name:34}{np.mean(values):10.3f} [{low:.3f}, {high:.3f}]"
    if values is not whole and values != whole:
        less = (np.array(whole) - np.array(values)).tolist()
        low, high = interval(less, groups)
        line += f"   whole less it {np.mean(less):.3f} [{low:.3f}, {high:.3f}]"
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
