"""The two jobs on a tiny history, on an ephemeral instance: what they publish, and what they leave alone when
something fails.
"""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.cli.current import changes
from opus_pipelines.core.errors import CheckResult
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.generation.results.contract import check_result
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect
from opus_pipelines.wkg.rebuild.unchanged import unchanged_history
from tests.staleness import observe, stale

pytestmark = pytest.mark.model

STEPS = (("Receive order", "code"), ("Check stock", "human"), ("Ship goods", "human"), ("Send invoice", "code"))
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def write_inputs(root: Path) -> Settings:
    source = root / "history" / "orders"
    source.mkdir(parents=True)
    (source / "source.toml").write_text('industry = "retail"\nclient = "Acme"\n[columns]\nactor_kind = "who"\n')
    lines = ["case,activity,start,end,who,cost"]
    for case in range(6):
        day = f"2026-01-{case + 1:02}"
        lines += [
            f"c{case},{task},{day}T0{n}:00:00Z,{day}T0{n}:30:00Z,{who},1.5" for n, (task, who) in enumerate(STEPS)
        ]
    (source / "orders.csv").write_text("\n".join(lines) + "\n")
    for contract in ("Retail", "Wholesale"):
        intake = root / "intakes" / "Acme" / contract / "order-1"
        for role, text in (
            ("input", "An order of ten chairs."),
            ("process", "Check stock, ship the goods, send the invoice."),
        ):
            (intake / role).mkdir(parents=True)
            (intake / role / "text.txt").write_text(text)
        (intake.parent / "contract.toml").write_text('industry = "retail"\n')
        (intake.parent / "order-2").mkdir()
    return Settings(paths=Paths(lake=root / "lake", history=root / "history", intakes=root / "intakes"))


def run(settings: Settings, job: str, instance: dg.DagsterInstance, **more: Any) -> dg.ExecuteInProcessResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        resolved = definitions(settings).resolve_job_def(job)
        return resolved.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET, **more)


def span(first: str, last: str) -> dict[str, str]:
    return {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}


@pytest.fixture(scope="module")
def built(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Settings, dg.DagsterInstance, dg.ExecuteInProcessResult]]:
    settings = write_inputs(tmp_path_factory.mktemp("job"))
    with dg.DagsterInstance.ephemeral() as instance:
        yield settings, instance, run(settings, "rebuild", instance)


def test_rebuild_publishes_what_was_checked(built: Any) -> None:
    settings, _, result = built
    assert result.success
    evaluations = result.get_asset_check_evaluations()
    assert evaluations
    assert all(e.passed for e in evaluations)
    tasks = (
        connect(Lake(settings.paths.lake)).sql("SELECT title, implementations FROM wkg_tasks ORDER BY title").fetchall()
    )
    assert tasks == [("Check stock", 6), ("Receive order", 6), ("Send invoice", 6), ("Ship goods", 6)]


def test_rebuild_reports_rows_and_version(built: Any) -> None:
    settings, instance, _ = built
    event = instance.get_latest_materialization_event(dg.AssetKey(["wkg", "edges"]))
    assert event.asset_materialization.metadata["dagster/row_count"].value == 3
    assert event.asset_materialization.tags["dagster/data_version"] == Lake(settings.paths.lake).current_snapshot()


def test_a_lake_that_another_run_holds_is_left_alone(built: Any) -> None:
    settings, instance, _ = built
    with Lake(settings.paths.lake).lock():
        result = run(settings, "rebuild", instance)
    assert not result.success
    assert "another run" in str([event.event_specific_data for event in result.all_events if event.is_failure])


def test_a_dead_run_is_marked_as_failed(built: Any) -> None:
    settings, instance, _ = built
    dead = instance.create_run_for_job(_job(settings), status=dg.DagsterRunStatus.STARTED)
    assert run(settings, "rebuild", instance).success
    assert instance.get_run_by_id(dead.run_id).status == dg.DagsterRunStatus.FAILURE


def definitions(settings: Settings) -> dg.Definitions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        from opus_pipelines.definitions import build_defs

        return build_defs(settings)


def _job(settings: Settings) -> dg.JobDefinition:
    return definitions(settings).resolve_job_def("rebuild")


def test_generate_publishes_each_contract_and_a_failing_one_costs_only_itself(built: Any) -> None:
    settings, instance, _ = built
    assert instance.get_dynamic_partitions("contract") == ["Acme__Retail", "Acme__Wholesale"], "the rebuild named them"
    instance.add_dynamic_partitions("contract", ["Acme__Gone"])
    failed = run(settings, "generate", instance, tags=span("Acme__Wholesale", "Acme__Gone"))
    assert not failed.success
    assert instance.get_materialized_partitions(dg.AssetKey(["workflows", "current"])) == {"Acme__Wholesale"}
    event = instance.get_latest_materialization_event(dg.AssetKey(["reports", "reward"]))
    assert event.asset_materialization.metadata["dagster/partition_row_count"].value > 0
    (pointer,) = Lake(settings.paths.lake).results()
    assert event.asset_materialization.tags["dagster/data_version"] == pointer["result"]
    passed = [(one.partition, one.passed) for one in failed.get_asset_check_evaluations()]
    assert set(passed) == {("Acme__Wholesale", True)}
    done = run(settings, "generate", instance, tags=span("Acme__Retail", "Acme__Wholesale"))
    assert done.success
    connection = connect(Lake(settings.paths.lake))
    ranks = connection.sql(
        "SELECT contract, min(rank), count(*) > 0 FROM workflows_optimized GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert ranks == [("Retail", 1, True), ("Wholesale", 1, True)]
    refused = connection.sql(
        "SELECT DISTINCT folder, status FROM generation_intakes WHERE status <> 'generated'"
    ).fetchall()
    assert refused == [("order-2", "refused")]
    runs = connection.sql("SELECT count(DISTINCT run_id) FROM generation_runs").fetchall()
    assert runs == [(2,)], "Wholesale was up to date the second time"


def break_ranks(tables: Any) -> None:
    """Gives every ranked workflow the rank 7, in the staged files."""
    for file in (tables.folder / "workflows/optimized").glob("*.parquet"):
        table = pq.ParquetFile(file).read()
        ranks = pa.array([7] * table.num_rows, table.schema.field("rank").type)
        pq.write_table(table.set_column(table.schema.get_field_index("rank"), "rank", ranks), file)


def test_a_result_that_fails_a_check_stands_red_and_is_not_published(
    built: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, instance, _ = built
    instance.add_dynamic_partitions("contract", ["Acme__Red"])
    shutil.copytree(settings.paths.intakes / "Acme" / "Retail", settings.paths.intakes / "Acme" / "Red")

    def broken(result: Any, intakes: int) -> list[CheckResult]:
        break_ranks(result.tables)
        return check_result(result, intakes)

    with monkeypatch.context() as patch:
        patch.setattr("opus_pipelines.generation.results.contract.check_result", broken)
        result = run(settings, "generate", instance, partition_key="Acme__Red")
    assert not result.success
    red = [one for one in result.get_asset_check_evaluations() if not one.passed]
    assert [(one.asset_key.to_user_string(), one.check_name, one.partition) for one in red] == [
        ("workflows/optimized", "ranks_without_gaps", "Acme__Red")
    ]
    assert (red[0].description or "").startswith("1 wrong")
    assert "Red" not in {pointer["contract"] for pointer in Lake(settings.paths.lake).results()}
    assert run(settings, "generate", instance, partition_key="Acme__Retail").success
    check = dg.AssetCheckKey(dg.AssetKey(["workflows", "optimized"]), "ranks_without_gaps")
    history = instance.event_log_storage.get_asset_check_execution_history(check, limit=2)
    assert [(one.partition, one.status.value) for one in history] == [
        ("Acme__Retail", "SUCCEEDED"),
        ("Acme__Red", "FAILED"),
    ], "another contract's green check does not hide the red one"
    assert run(settings, "generate", instance, partition_key="Acme__Red").success
    event = instance.get_latest_materialization_event(dg.AssetKey(["workflows", "current"]))
    (pointer,) = [one for one in Lake(settings.paths.lake).results() if one["contract"] == "Red"]
    assert event.asset_materialization.partition == "Acme__Red"
    assert event.asset_materialization.tags["dagster/data_version"] == pointer["result"]


def test_one_dataset_of_a_contract_can_be_selected(built: Any) -> None:
    settings, instance, _ = built
    instance.add_dynamic_partitions("contract", ["Acme__Retail"])
    chosen = [dg.AssetKey(["reports", "cost"])]
    result = run(settings, "generate", instance, partition_key="Acme__Retail", asset_selection=chosen)
    assert result.success
    made = [event for event in result.all_events if event.is_step_materialization]
    (materialized,) = [one.step_materialization_data.materialization for one in made]
    assert materialized.asset_key.to_user_string() == "reports/cost"
    rows = connect(Lake(settings.paths.lake)).sql("SELECT count(*) FROM reports_cost WHERE contract = 'Retail'")
    found = materialized.metadata["dagster/partition_row_count"].value
    assert [(found,)] == rows.fetchall(), "known of a result that was up to date, too"


def test_dagster_calls_stale_what_opus_status_says_changed_and_nothing_else(built: Any) -> None:
    settings, instance, _ = built
    keys = ["Acme__Retail", "Acme__Wholesale"]
    names = {f"Acme__{contract}" for contract in ("Retail", "Wholesale")}

    def told(now: Settings) -> tuple[dict[str, list[str]], dict[str, tuple[str, ...]]]:
        """What Dagster calls stale, and what changed of each contract by `opus status`."""
        observe(definitions(now), instance)
        changed = {f"{a}__{b}": words for (a, b), words in changes(now).items() if words}
        return stale(definitions(now), instance, keys), {key: changed[key] for key in sorted(changed) if key in names}

    assert run(settings, "rebuild", instance).success
    for key in keys:
        assert run(settings, "generate", instance, partition_key=key).success
    assert told(settings) == ({}, {})

    text = settings.paths.intakes / "Acme/Retail/order-1/input/text.txt"
    before = text.read_text()
    text.write_text("An order of eleven chairs.")
    assert told(settings) == ({"generation/intakes": ["Acme__Retail"]}, {"Acme__Retail": ("files",)})
    text.write_text(before)
    other = settings.model_copy(update={"reward": settings.reward.model_copy(update={"clear_share": 0.83})})
    assert told(other) == ({"generation/intakes": keys}, dict.fromkeys(keys, ("settings",)))

    assert unchanged_history(settings) is not None
    log = settings.paths.history / "orders" / "orders.csv"
    log.write_text(log.read_text() + log.read_text().splitlines()[-1].replace("c5", "c6") + "\n")
    history = {f"history/{name}": [""] for name in ("implementations", "rejects", "sources")}
    assert told(settings) == (history, {})
    assert unchanged_history(settings) is None
    assert run(settings, "rebuild", instance).success
    found, changed = told(settings)
    assert set(changed.values()) == {("snapshot",)}
    assert found["generation/runs"] == keys
    assert {name.split("/")[0] for name in found} == {"generation"}, "no result of an earlier stage is stale"
