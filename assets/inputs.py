"""What people put into the folders, observed: each version is a hash of content, which Dagster compares with the one
that an asset was made from.

Observing writes nothing, so it needs no lock. The jobs observe first what they then read.
"""

import warnings
from collections.abc import Iterator

import dagster as dg

from assets.specs import CONTRACT, CONTRACTS, key, spec
from opus_pipelines.core.ids import digest
from opus_pipelines.generation.results.staleness import input_version
from opus_pipelines.lake.layout import Lake
from resources.bulk import contracts_by_key
from resources.settings import SettingsResource

GROUP = "inputs"
GONE = "no such contract"
HISTORY, SETTINGS, INTAKES = "inputs/history", "inputs/settings", "inputs/intakes"


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that one step observes several inputs is in beta

    @dg.multi_observable_source_asset(  # type: ignore[untyped-decorator]
        name="observe_history",
        specs=[
            spec(HISTORY, GROUP, about="the files of the history folder, with source.toml", kinds=("file",)),
            spec(SETTINGS, GROUP, about="the settings that a snapshot depends on, with pins.toml", kinds=("toml",)),
        ],
        can_subset=True,
    )
    def observe_history(context: dg.AssetExecutionContext, settings: SettingsResource) -> Iterator[dg.ObserveResult]:
        """Hashes the files of history, and the settings."""
        from opus_pipelines.wkg.rebuild.unchanged import history_version, settings_version

        versions = {HISTORY: history_version, SETTINGS: settings_version}
        for name, version in versions.items():
            if key(name) in context.selected_asset_keys:
                yield dg.ObserveResult(asset_key=key(name), data_version=dg.DataVersion(version(settings.typed)))

    @dg.multi_observable_source_asset(  # type: ignore[untyped-decorator]
        name="observe_intakes",
        specs=[
            spec(
                INTAKES,
                GROUP,
                about="the folder of a contract: its settings, documents and intakes, with the settings of this lake",
                kinds=("file",),
                skippable=True,
            )
        ],
        partitions_def=CONTRACTS,
    )
    def _observe_intakes(context: dg.AssetExecutionContext, settings: SettingsResource) -> Iterator[dg.ObserveResult]:
        """Hashes the contracts of the run, or all that Dagster knows where the run names none."""
        typed = settings.typed
        named = context.has_partition_key or context.has_partition_key_range
        wanted = context.partition_keys if named else context.instance.get_dynamic_partitions(CONTRACT)
        found = contracts_by_key(Lake(typed.paths.lake), typed.paths.intakes)
        versions = {one: input_version(found[one], typed) if one in found else GONE for one in wanted}
        if named:  # one version for all contracts of the run; of several each has its own after it
            version = next(iter(versions.values())) if len(versions) == 1 else digest(sorted(versions.items()))
            yield dg.ObserveResult(asset_key=key(INTAKES), data_version=dg.DataVersion(version))
        for contract, version in versions.items() if not named or len(versions) > 1 else ():
            observation = dg.AssetObservation(key(INTAKES), partition=contract, tags={"dagster/data_version": version})
            context.log_event(observation)

    # as the datasets of contracts have it: a backfill of several contracts may be one run
    observe_intakes = _observe_intakes.with_attributes(backfill_policy=dg.BackfillPolicy.single_run())
