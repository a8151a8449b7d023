#!/usr/bin/env python3
"""Measures what the sample's rank-1 workflows earn where few or no similar cases may be used.

    PYTHONPATH=. .venv/bin/python benchmarks/near_cases.py WORK [--cases 0,1,3] [--without "no edges"] [--untrained]

WORK is a folder of `opus sample` with a lake of `opus rebuild` and, for the trained Intention encoder, `opus train`
(`--untrained`: the history backend). With 0 cases no case is retrieved; with n cases the n most similar ones are, for
each of the processes that an intake asks for. The Reward is simulated from the truth that the sample was drawn from;
intervals are 95 %, by bootstrap over intakes; a difference is paired. `area` is the mean over the numbers of cases.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ablations import Asked, Bench, simulated_reward  # type: ignore[import-not-found]  # beside this file

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Part, Ranked, Refused
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.interface import backend_of
from opus_pipelines.metrics.intervals import interval
from opus_pipelines.quality.ablations import ABLATIONS
from opus_pipelines.quality.systems import NO_ABLATION
from tests.sample.optimum import best_steps


def main() -> int:
    """Print a line for each number of cases and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--cases", default="0,1,3")
    parser.add_argument("--without", default="no edges", help="ablations of `opus evaluate`, comma-separated")
    parser.add_argument("--untrained", action="store_true", help="without trained models")
    arguments = parser.parse_args()
    bench = Bench(arguments.work)
    paths = bench.settings.paths.model_copy(update={"lake": arguments.work / "lake"})
    model = HistoryBackend() if arguments.untrained else backend_of(bench.settings.model_copy(update={"paths": paths}))
    truth = json.loads((arguments.work / "truth.json").read_text())
    kinds = {(i["client"], i["contract"], i["intake"]): i["kind"] for i in truth["intakes"]}
    asked = [replace(a, kind=kinds[a.contract.client, a.contract.contract, a.intake.folder]) for a in bench.asked]
    best = [best_steps(truth, str(a.intake.industry), str(a.kind), a.intake.gain_usd)[1] for a in asked]
    print(f"{len(asked)} intakes; the best that the truth allows: {np.mean(best):.2f} USD an intake")
    names = ["whole system", *filter(None, arguments.without.split(","))]
    rewards: dict[str, list[list[float]]] = {name: [] for name in names}
    for most in map(int, arguments.cases.split(",")):
        for name in names:
            results = [made(bench, a, model, most, name) for a in asked]
            rewards[name].append([simulated_reward(truth, a, m) for a, m in zip(asked, results, strict=True)])
            print_row(f"{most} cases, {name}", rewards[name][-1], rewards[names[0]][-1])
    for name in names:
        print_row(f"area, {name}", np.mean(rewards[name], 0).tolist(), np.mean(rewards[names[0]], 0).tolist())
    return 0


def made(bench: Bench, asked: Asked, model: Any, most: int, name: str) -> Ranked | None:
    """What the named system generates for an intake's first Intention with at most so many similar cases."""
    settings: Settings = bench.settings
    few = settings.generation.model_copy(update={"near_cases": max(most, 1)})
    settings = settings.model_copy(update={"generation": few})
    terms = ContractTerms(
        prices(settings, asked.contract.settings, asked.contract.folder), asked.contract.settings.review
    )
    without = frozenset() if most else frozenset({Part.SIMILAR_CASES})
    context = GenerationContext(bench.index, bench.encoder, model, settings, terms, without)
    ablation = ABLATIONS.get(name, NO_ABLATION)
    try:
        return generate(asked.intake, ablation.context(context))[0]
    except Refused:
        return None


def print_row(name: str, values: list[float], whole: list[float]) -> None:
    """Print the mean of the values, and what the whole system has more, each with its interval."""
    groups = list(range(len(values)))
    low, high = interval(values, groups)
    line = f"{name:34}{np.mean(values):10.2f} [{low:.2f}, {high:.2f}]"
    if values is not whole and values != whole:
        less = (np.array(whole) - np.array(values)).tolist()
        low, high = interval(less, groups)
        line += f"   whole less it {np.mean(less):.2f} [{low:.2f}, {high:.2f}]"
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
