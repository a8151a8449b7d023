"""Which contracts the night generates: an automation condition, evaluated by the daemon after each nightly rebuild."""

import warnings
from datetime import datetime
from functools import lru_cache

import dagster as dg

from assets.specs import CONTRACTS
from opus_pipelines.core.settings import Schedule, Settings
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.generation.results.staleness import is_current
from opus_pipelines.lake.layout import Lake

OBSERVED = dg.AssetSelection.assets(["inputs", "intakes"])  # the run observes it; the night does not wait for that
GENERATED = dg.AssetSelection.groups("generation", "workflows", "reports")


def condition(settings: Settings) -> dg.AutomationCondition[dg.AssetKey]:
    """Returns the condition: once in a night, after its rebuild, for the contracts that ask for it and are stale."""

    @lru_cache(maxsize=1)
    def wanted_at(_time: datetime) -> frozenset[str]:
        """All assets of an evaluation share it, because it reads every contract."""
        return frozenset(nightly_contracts(settings))

    class AsksForTheNight(dg.AutomationCondition[dg.AssetKey]):
        """Holds for the contracts with `regenerate = "nightly"` whose result is not current."""

        @property
        def name(self) -> str:
            return 'asks for the night (regenerate = "nightly") and is stale'

        def evaluate(self, context: dg.AutomationContext[dg.AssetKey]) -> dg.AutomationResult[dg.AssetKey]:
            if context.candidate_subset.is_empty:
                return dg.AutomationResult(context, true_subset=context.candidate_subset)
            candidates = set(context.candidate_subset.expensively_compute_partition_keys())
            wanted = candidates & wanted_at(context.evaluation_time)
            subset = context.asset_graph_view.get_subset_from_partition_keys(context.key, CONTRACTS, wanted)
            return dg.AutomationResult(context, true_subset=subset)

    schedule = settings.schedule
    night = dg.AutomationCondition.on_cron(schedule.nightly, schedule.timezone).ignore(OBSERVED)
    return night.newly_true() & AsksForTheNight()


def sensor(schedule: Schedule) -> dg.AutomationConditionSensorDefinition:
    """Returns the sensor of the daemon that evaluates the condition; it is on where the nightly schedule is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the daemon evaluates a condition of our own is in beta
        return dg.AutomationConditionSensorDefinition(
            "after_the_night",
            target=GENERATED,
            minimum_interval_seconds=schedule.watch_seconds,
            default_status=dg.DefaultSensorStatus.RUNNING if schedule.enabled else dg.DefaultSensorStatus.STOPPED,
            description='After a nightly rebuild: generate the contracts with regenerate = "nightly" whose results are '
            "stale.",
            use_user_code_server=True,
            emit_backfills=False,  # each contract has a run of its own
        )


def nightly_contracts(settings: Settings) -> list[str]:
    """Returns the keys of contracts to generate each night whose result is not current."""
    lake = Lake(settings.paths.lake)
    snapshot = lake.current_snapshot()
    if snapshot is None or not settings.paths.intakes.is_dir():
        return []
    found = [
        c
        for c in contracts_of(lake, settings.paths.intakes)
        if c.problem is None and c.settings.regenerate == "nightly"
    ]
    return [c.key for c in found if not is_current(lake, c, snapshot, settings)]
