"""AutoFlow's search against the refinement search on the plans of every intake of a lake's contracts, at equal budget.

    python benchmarks/program_plans.py LAKE INTAKES [SEEDS [LEAST [INTAKES_A_CONTRACT]]]

Both begin at the tasks of the best proposal of the path search, each in its most frequent mode. The budget is what the
refinement search scored, or at least LEAST workflows (0 by default: equal budgets). Prints the mean difference in
dollars.
"""

import sys
from pathlib import Path
from statistics import fmean

from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.flows.programs.contract_search import SEARCHERS, refinement
from opus_pipelines.generation.draft import draft
from opus_pipelines.generation.plan import plan
from opus_pipelines.generation.planning.plan_cache import PlanCacheKey, plan_cache_of
from opus_pipelines.generation.planning.proposals import propose
from opus_pipelines.generation.records import ContractTerms, GenerationContext, Refused
from opus_pipelines.generation.request import read_requests
from opus_pipelines.generation.retrieve import retrieve
from opus_pipelines.generation.written_steps import with_written_steps
from opus_pipelines.intakes.contract_settings import prices
from opus_pipelines.intakes.discover import discover
from opus_pipelines.intakes.intake import read_intake
from opus_pipelines.intakes.stored.files import Inherited
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import encoder_of
from opus_pipelines.lwm.interface import backend_of
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.intervals import interval


def main(lake_folder: str, intakes: str, seeds: int = 10, least: int = 0, most: int | None = None) -> None:
    """Prints a line for each intake and contract, and the table of all."""
    settings = Settings(paths=Paths(lake=Path(lake_folder).absolute(), intakes=Path(intakes).absolute()))
    lake = Lake(settings.paths.lake)
    encoder = CachedEncoder(encoder_of(settings.encoder), lake.kept / "embeddings")
    index = SnapshotIndex(Snapshot.open(lake))
    rows: list[dict[str, float | str]] = []
    for contract in discover(settings.paths.intakes):
        terms = ContractTerms(
            prices(settings, contract.settings, contract.folder),
            contract.settings.review,
            contract.decisions,
            contract.settings.calendar,
        )
        context = GenerationContext(index, encoder, backend_of(settings), settings, terms)
        inherited = Inherited.of(contract)
        for folder in contract.intakes[:most]:
            intake = read_intake(contract, folder, settings, inherited.elements)
            try:
                requests = read_requests(intake, context)
            except Refused:
                continue
            for request in requests:
                ranking = plan(draft(with_written_steps(retrieve(request, context), context), context), context).context
                proposals, cache = propose(ranking).proposals, plan_cache_of(PlanCacheKey.of(ranking))
                space = cache.refiner.space
                if not proposals:
                    continue
                first = proposals[0]
                start: tuple[tuple[str, ...], dict[str, int]] = first.tasks, {}
                best = refinement(space, *start)
                budget = max(least, best.scored)
                row: dict[str, float | str] = {
                    "contract": contract.contract,
                    "refinement": best.value,
                    "budget": budget,
                }
                row["scored"] = best.scored
                for name, search in SEARCHERS.items():
                    row[name] = fmean(search(space, start, budget, seed).value for seed in range(seeds))
                row["start"] = search(space, start, 1, 0).value
                rows.append(row)
                print({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    for name in SEARCHERS:
        gaps = [float(r[name]) - float(r["refinement"]) for r in rows]
        low, high = interval(gaps, [r["contract"] for r in rows])
        equal = sum(gap > -0.005 for gap in gaps)
        figures = f"{fmean(gaps):+.3f} USD [{low:+.3f}, {high:+.3f}]"
        print(f"{name} minus refinement: {figures}, equal or better {equal} of {len(gaps)}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
