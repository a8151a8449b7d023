"""`opus forget` in Dagster's own record: runs, events, checks, sensors and backfills of a client go, others' stay."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.checks import declared, evaluated, warning
from opus_pipelines.cli.forget import clean_record
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.search import Word

pytestmark = pytest.mark.long
CLIENT, KEY, OTHER, THIRD = "Zephyrine", "Zephyrine__Claims", "Bolt__Claims", "Acme__Claims"
CONTRACTS = dg.DynamicPartitionsDefinition(name="contract")
INTAKES = dg.AssetKey(["generation", "intakes"])
CHECK = declared("no_intake_failed", "generation/intakes", "", partitions_def=CONTRACTS)


@dg.multi_asset(specs=[dg.AssetSpec(INTAKES, partitions_def=CONTRACTS)], check_specs=[CHECK], can_subset=True)
def intakes(context: dg.AssetExecutionContext) -> Iterator[Any]:
    """Several contracts in one run are done as a backfill does them."""
    for key in context.partition_keys:
        yield from evaluated(context, key, [warning(CHECK, [f"{key}: too large"])])
    yield dg.MaterializeResult(
        asset_key=INTAKES, data_version=dg.DataVersion("r1"), metadata={"of": context.partition_keys[0]}
    )


@dg.asset(key=["wkg", "snapshot"])
def snapshot() -> dg.MaterializeResult:
    return dg.MaterializeResult(data_version=dg.DataVersion("w1"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A record of a rebuild, a run of each of two contracts, and one of a third together with the client's."""
    lake = Lake(tmp_path / "lake")
    lake.dagster_home.mkdir(parents=True)
    (lake.dagster_home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with warnings.catch_warnings(), dg.DagsterInstance.from_config(str(lake.dagster_home)) as instance:
        warnings.simplefilter("ignore")
        defs = dg.Definitions([intakes, snapshot], executor=dg.in_process_executor)
        instance.add_dynamic_partitions("contract", [OTHER, THIRD, KEY])
        job = defs.resolve_implicit_global_asset_job_def()
        assert job.execute_in_process(instance=instance, asset_selection=[dg.AssetKey(["wkg", "snapshot"])]).success
        one = {"dagster/asset_partition_range_start": OTHER, "dagster/asset_partition_range_end": OTHER}
        two = {"dagster/asset_partition_range_start": THIRD, "dagster/asset_partition_range_end": KEY}
        for tags in (one, two):
            assert job.execute_in_process(instance=instance, asset_selection=[INTAKES], tags=tags).success
        instance.report_runless_asset_event(
            dg.AssetObservation(["inputs", "intakes"], partition=OTHER, tags={"dagster/data_version": "o1"})
        )
    return lake


def holds(lake: Lake, text: str) -> list[str]:
    """The files of the record with this text among their bytes."""
    files = (file for file in lake.dagster_home.rglob("*") if file.is_file())
    return [file.name for file in files if text.encode() in file.read_bytes()]


def test_nothing_of_the_client_is_left_and_nothing_of_others_is_lost(lake: Lake) -> None:
    assert holds(lake, CLIENT)
    with lake.lock():
        removed = dict(clean_record(lake, CLIENT, [Word("client", CLIENT)]))
    assert (removed["partitions"], removed["runs in Dagster's record"]) == (1, 1)
    assert holds(lake, CLIENT) == []
    with dg.DagsterInstance.from_config(str(lake.dagster_home)) as instance:
        assert instance.get_dynamic_partitions("contract") == [OTHER, THIRD]
        assert instance.get_materialized_partitions(INTAKES) == {OTHER, THIRD}
        assert len(instance.get_runs()) == 2
        for key, partition, version in (
            (INTAKES, OTHER, "r1"),
            (INTAKES, THIRD, "r1"),
            (["wkg", "snapshot"], None, "w1"),
        ):
            only = dg.AssetRecordsFilter(
                dg.AssetKey(key) if isinstance(key, list) else key, asset_partitions=partition and [partition]
            )
            (record,) = instance.fetch_materializations(only, limit=1).records
            assert record.asset_materialization.tags["dagster/data_version"] == version
        check = dg.AssetCheckKey(INTAKES, CHECK.name)
        kept = instance.event_log_storage.get_asset_check_execution_history(check, limit=9)
        lines = {one.partition: one.event.asset_check_evaluation.metadata["lines"].value for one in kept}
        assert lines == {name: [f"{name}: too large"] for name in (OTHER, THIRD)}
        (seen,) = instance.fetch_observations(dg.AssetKey(["inputs", "intakes"]), limit=1).records
        assert seen.partition_key == OTHER


def test_a_second_time_finds_nothing(lake: Lake) -> None:
    words = [Word("client", CLIENT)]
    with lake.lock():
        clean_record(lake, CLIENT, words)
        assert {count for _, count in clean_record(lake, CLIENT, words)} == {0}


def test_a_lake_without_a_record_has_nothing_to_remove(tmp_path: Path) -> None:
    assert clean_record(Lake(tmp_path), CLIENT, [Word("client", CLIENT)]) == []
