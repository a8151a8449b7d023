#!/usr/bin/env python3
"""Measures whether the 90 % intervals of Rewards contain the true Reward, on every ranked workflow of the sample.

    PYTHONPATH=. .venv/bin/python benchmarks/reward_coverage.py [--seeds N] [--first SEED] [--runs R] [--work DIR]

For each seed: writes the sample, mines it, generates for every intake, and prints how many intervals hold what each
ranked workflow earns by the truth, how wide they are against the gain, on which side the others lie, how far off
Rewards are (root mean square, in
widths: 0.30 of a normal distribution; and their mean), and how often beats_next is right. What the truth earns is exact
for work done one after the other in the order of its starts, as the sample's truth and its history have it; as EVAL
reads a graph it is simulated. Last, beats_next by how sure it is, pairs that differ in one step, and by how much
product form and exact inference disagree. A folder named by --work is kept and used again.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.planning.context import Candidate, Confidence
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.quality.sample import write_sample
from opus_pipelines.workflow.evaluation.success import exact_success, product_success
from resources.spark import SparkResource
from tests.generation.contracts import ContractGenerator, RecordedResult
from tests.quality.sample.simulate import expected_reward, simulate_workflow
from tests.rebuilding import build_snapshot

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SURE = (0.0, 0.4, 0.6, 0.8, 0.95, 0.995, 1.001)  # bins of beats_next
Truth = dict[str, Any]


@dataclass(frozen=True)
class RankedWorkflow:
    """One ranked workflow: its Reward with interval, and its true Reward.

    It also has the results of product form and of exact inference.
    """

    intention: tuple[int, str]  # seed, id
    rank: int
    candidate: Candidate
    gain_usd: float
    true_usd: float
    as_graph_usd: float
    product: float
    exact: float

    @property
    def width_usd(self) -> float:
        """Of the interval."""
        return self.confidence.reward_usd_p95 - self.confidence.reward_usd_p05

    @property
    def confidence(self) -> Confidence:
        """Every ranked workflow has one."""
        assert self.candidate.confidence is not None
        return self.candidate.confidence

    @property
    def side(self) -> int:
        """0: the interval holds the truth; -1: the truth earns less; 1: more."""
        return int(self.true_usd > self.confidence.reward_usd_p95) - int(self.true_usd < self.confidence.reward_usd_p05)


def main() -> None:
    """A line a seed, then all of them together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many samples")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--runs", type=int, default=40_000, help="simulated a workflow")
    parser.add_argument(
        "--work", type=Path, help="folder for samples and lakes, kept; default: a temporary one, removed"
    )
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    if arguments.work:
        measure(arguments.work, seeds, arguments.runs)
        return
    with tempfile.TemporaryDirectory() as work:
        measure(Path(work), seeds, arguments.runs)


def measure(work: Path, seeds: Sequence[int], runs: int) -> None:
    """Every seed in a folder of its own."""
    encoder, everything = Encoder(), []
    print(
        "seed  workflows  hold the truth  of rank 1  truth below  above  width / gain  error / width   mean  beats  "
        "was right  CPU s"
    )
    for seed in seeds:
        began = time.process_time()
        truth, results = generated(work / f"s{seed}", seed, encoder)
        found = list(ranked_workflows(seed, truth, results, runs))
        everything += found
        report(str(seed), found, time.process_time() - began)
    report("all", everything, time.process_time())
    show_calibration(everything)
    show_inference(everything)


def generated(work: Path, seed: int, encoder: Encoder) -> tuple[Truth, list[RecordedResult]]:
    """The sample, mined, and the results of all its contracts."""
    sample = write_sample(work / "sample", seed)
    lake, settings = Lake(work / "lake"), Settings(paths={"lake": work / "lake"})
    cached = CachedEncoder(encoder, lake.kept / "embeddings")
    state = read_history(lake, sample.history, NOW)
    build_snapshot(SparkResource.of(settings).session, lake, settings, state, lambda: cached, NOW)
    with ContractGenerator(lake, settings, cached, work / "generated") as generate:
        results = [generate(contract) for contract in discover(sample.intakes_folder)]
    return json.loads(sample.truth.read_text()), results


def ranked_workflows(seed: int, truth: Truth, results: Sequence[RecordedResult], runs: int) -> Iterator[RankedWorkflow]:
    """Returns every ranked workflow, in the order of the kinds.

    A workflow that the truth cannot carry out is named and left out.
    """
    kinds = {(i["client"], i["contract"], i["intake"]): iter(i["kinds"]) for i in truth["intakes"]}
    for result in results:
        for intake, made in result.made:
            kind = next(kinds[result.client, result.contract, intake.folder])
            for rank, candidate in made.ranked:
                workflow, industry = candidate.workflow, str(intake.industry)
                try:
                    earned = expected_reward(truth, industry, workflow, kind, candidate.evaluation.start_ms)
                    as_graph = simulate_workflow(truth, industry, workflow, kind, runs=runs).mean_reward
                except InputError as error:
                    print(f"  {intake.folder}, rank {rank}: {error}")
                    continue
                gain = sum(node.gain_usd for node in workflow.outputs)
                product, exact = product_success(workflow).workflow, exact_success(workflow).workflow
                yield RankedWorkflow(
                    (seed, made.request.intention_id), rank, candidate, gain, earned, as_graph, product, exact
                )


def report(name: str, found: Sequence[RankedWorkflow], seconds: float) -> None:
    """One line."""
    side = np.array([s.side for s in found])
    first = side[[s.rank == 1 for s in found]]
    width = np.median([s.width_usd / s.gain_usd for s in found])
    off = np.array([(s.candidate.worth - s.true_usd) / s.width_usd for s in found])
    said, right = beaten(found)
    print(
        f"{name:>4}  {len(found):9d}  {np.mean(side == 0):14.3f}  {np.mean(first == 0):9.3f}  "
        f"{np.mean(side < 0):11.3f}  "
        f"{np.mean(side > 0):5.3f}  {width:12.4f}  {np.sqrt(np.mean(off**2)):13.4f}  {off.mean():+5.2f}  {said:5.3f} "
        f" {right:9.3f}  "
        f"{seconds:5.0f}",
        flush=True,
    )
    apart = np.array([s.true_usd - s.as_graph_usd for s in found])
    if np.abs(apart).max() > 0:
        print(
            f"      done one after the other less done as a graph: mean {apart.mean():+.3f} USD, at most "
            f"{np.abs(apart).max():.3f}"
        )


def beaten(found: Sequence[RankedWorkflow]) -> tuple[float, float]:
    """The mean of beats_next, and how often the truth has the rank earn more than the next."""
    pairs = list(neighbours(found))
    if not pairs:
        return np.nan, np.nan
    return float(np.mean([said for said, _, _ in pairs])), float(
        np.mean([a.true_usd > b.true_usd for _, a, b in pairs])
    )


def neighbours(found: Sequence[RankedWorkflow]) -> Iterator[tuple[float, RankedWorkflow, RankedWorkflow]]:
    """beats_next, its rank and the next one."""
    at = {(s.intention, s.rank): s for s in found}
    for s in found:
        if s.confidence.beats_next is not None and (s.intention, s.rank + 1) in at:
            yield s.confidence.beats_next, s, at[s.intention, s.rank + 1]


def show_calibration(found: Sequence[RankedWorkflow]) -> None:
    """beats_next by how sure it is; then of pairs of which one is the other and one step more."""
    print("beats_next     pairs   said  was right")
    for low, high in pairwise(SURE):
        show_pairs(f"{low:.3f}-{min(high, 1.0):.3f}", [pair for pair in neighbours(found) if low <= pair[0] < high])
    show_pairs("one step more", [(said, a, b) for said, a, b in neighbours(found) if len(_steps(a) ^ _steps(b)) == 1])


def show_pairs(name: str, pairs: Sequence[tuple[float, RankedWorkflow, RankedWorkflow]]) -> None:
    """One line."""
    if pairs:
        right = np.mean([a.true_usd > b.true_usd for _, a, b in pairs])
        print(f"{name:13}  {len(pairs):5d}  {np.mean([said for said, _, _ in pairs]):.3f}  {right:9.3f}")


def _steps(one: RankedWorkflow) -> set[tuple[str | None, ...]]:
    return {(t.task_id, t.actor_kind, t.model, t.actor_group) for t in one.candidate.workflow.tasks}


def show_inference(found: Sequence[RankedWorkflow]) -> None:
    """Product form against exact inference, and both against the truth."""
    off = np.array([s.product - s.exact for s in found])
    differ = np.abs(off) > 1e-9
    print(f"product form and exact inference differ in {differ.sum()} of {len(found)} workflows", end="")
    if differ.any():
        low, middle, high = np.quantile(off[differ], [0, 0.5, 1])
        moved = np.max(np.abs(off) * np.array([s.gain_usd for s in found]))
        print(
            f": product - exact from {low:+.5f} to {high:+.5f}, median {middle:+.5f}; at most {moved:.3f} USD of "
            f"Reward",
            end="",
        )
    print()


if __name__ == "__main__":
    main()
