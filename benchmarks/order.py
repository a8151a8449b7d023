#!/usr/bin/env python3
"""Measures what the edges' γ earns where the success of a step depends on the step before it, in orders never executed.

    PYTHONPATH=. .venv/bin/python benchmarks/order.py [--work DIR] [--seeds 3]

`order_sample.py` draws history and intakes; the real rebuild mines them, and each system generates rank-1
workflows, whose Reward is then computed from the truth that the history was drawn from. The ablations are those of
`opus evaluate`. The two controls are the better and the worse order of the asked steps.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from ablations import ABLATIONS  # type: ignore[import-not-found]  # beside this file
from order_sample import FIRST, LAST, PRODUCTS, true_reward_usd, write_order_sample  # type: ignore[import-not-found]
from two_jobs import KEPT, opus, workplace  # type: ignore[import-not-found]  # beside this file

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import ContractTerms, GenerationContext
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.intake import discover, read_intake
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.history_backend import HistoryBackend
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import interval

SHOWN = ("whole", "no pairs", "gamma shuffled", "gamma flat")


def rewards(work: Path) -> dict[str, list[float]]:
    """Returns the true Reward of each intake's rank-1 workflow, by system."""
    settings, lake = Settings(), Lake(work / "lake")
    encoder = CachedEncoder(Encoder(settings.encoder), lake.kept / "embeddings")
    index = SnapshotIndex(Snapshot.open(lake))
    found: dict[str, list[float]] = defaultdict(list)
    for contract in discover(work / "intakes"):
        terms = ContractTerms(prices(settings, contract.settings, contract.folder), contract.settings.review)
        whole = GenerationContext(index, encoder, HistoryBackend(), settings, terms)
        for name in SHOWN:
            context = whole if name == "whole" else ABLATIONS[name].context(whole)
            for folder in contract.intakes:
                best = generate(read_intake(contract, folder, settings), context)[0].ranked[0][1]
                titles = [index.graph.tasks[t].title for t in best.tasks]
                print(f"  {folder.name:12}{name:16}{' > '.join(titles)}", file=sys.stderr)
                found[name].append(true_reward_usd(titles))
    return found


def main() -> int:
    """Draws, mines and generates for each seed, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help=KEPT)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    found: dict[str, list[float]] = defaultdict(list)
    for seed in range(arguments.seeds):
        with workplace(arguments.work and arguments.work / str(seed), "order") as work:
            write_order_sample(work, seed)
            opus(work, "rebuild")
            for name, values in rewards(work).items():
                found[name] += values
    for product in PRODUCTS * arguments.seeds:
        found["best order"].append(true_reward_usd((FIRST, product.bad, product.good, product.join, *LAST)))
        found["worst order"].append(true_reward_usd((FIRST, product.good, product.bad, product.join, *LAST)))
    print(f"true Reward of rank 1, USD an intake, n = {len(found['whole'])}; and the whole system less the row")
    for name, values in found.items():
        less = (np.array(found["whole"]) - values).tolist()
        low, high = interval(less, list(range(len(less))))
        print(f"{name:16}{np.mean(values):8.2f}{np.mean(less):+8.2f} [{low:+.2f}, {high:+.2f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
