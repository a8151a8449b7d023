#!/usr/bin/env python3
"""Measures what workflows earn for letters alone, and for two letters in one folder, beside complete intakes.

    PYTHONPATH=. .venv/bin/python benchmarks/incomplete_intakes.py WORK [--cases 200]

WORK is a folder of `opus sample --incomplete` with a lake of `opus rebuild` and `opus train`. Systems: with the trained
models, and without any. The Reward of rank 1 is simulated from the truth that the sample was drawn from. A mixed intake
asks for two kinds of case: for each, the best of its Intentions counts. Intervals: 95 %, bootstrap over intakes.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from near_cases import print_row
from parts import Asked, Bench  # beside this file

from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import Ranked, Refused
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.quality.sample.sources import NAMED
from tests.quality.sample.optimum import best_steps
from tests.quality.sample.simulate import expected_reward


def main() -> int:
    """Print a row for each kind of intake and system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--cases", type=int, default=200, help="similar cases")
    arguments = parser.parse_args()
    bench = Bench(arguments.work)
    few = bench.settings.generation.model_copy(update={"near_cases": arguments.cases})
    bench.settings = bench.settings.model_copy(update={"generation": few})
    models = {"trained models": bench.model(), "no trained model": HistoryBackend()}
    truth = json.loads((arguments.work / "truth.json").read_text())
    kinds = {(i["client"], i["contract"], i["intake"]): i["kinds"] for i in truth["intakes"]}
    groups: dict[str, list[tuple[Asked, list[str]]]] = {"complete": [], "incomplete": [], "mixed": []}
    for asked in bench.asked:
        own = kinds[asked.contract.client, asked.contract.contract, asked.intake.folder]
        by_mail = asked.contract.contract.endswith(NAMED)
        groups["mixed" if len(own) > 1 else "incomplete" if by_mail else "complete"].append((asked, own))
    if not groups["incomplete"]:
        raise SystemExit(f"{arguments.work} has no incomplete intakes; make it by `opus sample --incomplete`")
    for group, items in groups.items():
        best = [
            np.mean([best_steps(truth, str(a.intake.industry), k, a.intake.gain_usd)[1] for k in own])
            for a, own in items
        ]
        print(f"{group}: {len(items)} intakes, the best that the truth allows {np.mean(best):.2f} USD an intake")
        rewards: list[list[float]] = []
        for name, model in models.items():
            rewards.append([earned(truth, a, own, made(bench, a, model)) for a, own in items])
            print_row(f"  {name}", rewards[-1], rewards[0])
    return 0


def made(bench: Bench, asked: Asked, model: Any) -> list[Ranked]:
    """What is generated for the Intentions of an intake; nothing where it is refused."""
    try:
        return generate(asked.intake, bench.context(asked, model))
    except Refused:
        return []


def earned(truth: dict[str, Any], asked: Asked, kinds: list[str], made: list[Ranked]) -> float:
    """The mean over the kinds of case of the best Reward that a rank-1 workflow has, in dollars."""
    industry, best = str(asked.intake.industry), [one.ranked[0][1] for one in made if one.ranked]
    own = lambda kind: max(
        (expected_reward(truth, industry, b.workflow, kind, b.evaluation.start_ms) for b in best), default=0.0
    )
    return float(np.mean([own(kind) for kind in kinds]))


if __name__ == "__main__":
    sys.exit(main())
