"""The assets of flows: a contract is a partition, one that cannot be used fails with its reason and no other."""

import warnings
from pathlib import Path

import dagster as dg
import pytest

from assets.flows import write_flows
from assets.specs import register
from opus_pipelines.core.settings import OpenaiCompatible, Paths, Settings
from opus_pipelines.core.versions import FLOW_METHOD as METHOD
from opus_pipelines.reporting.views import connect, run
from resources.encoder import EncoderResource
from resources.lake import LakeRun
from tests.flows.batches.batches import ADD, CREATE, write_contract
from tests.lwm.language_models.chat_server import ChatServer, serving
from tests.staleness import stale

pytestmark = [pytest.mark.long, pytest.mark.model]
KEYS = ("Acme__Automation", "Bolt__Automation", "Gone__Automation")


def materialized(
    settings: Settings,
    instance: dg.DagsterInstance,
    contract: str | tuple[str, str],
    assets: dg.AssetsDefinition = write_flows,
    selection: str | None = None,
) -> dg.ExecuteInProcessResult:
    """Makes the flows of a contract, or of those from one to another in one run."""
    first, last = (None, None) if isinstance(contract, str) else contract
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        return dg.materialize(
            [assets],
            instance=instance,
            partition_key=contract if isinstance(contract, str) else None,
            tags={f"dagster/asset_partition_range_{end}": key for end, key in (("start", first), ("end", last)) if key},
            selection=selection,
            resources={"run": LakeRun.of(settings), "encoder": EncoderResource.of(settings)},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )


def definitions(settings: Settings, assets: dg.AssetsDefinition) -> dg.Definitions:
    resources = {"run": LakeRun.of(settings), "encoder": EncoderResource.of(settings)}
    return dg.Definitions([assets], resources=resources)


def test_a_contract_is_a_partition_and_its_failure_costs_no_other(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes"))
    write_contract(tmp_path / "intakes", [CREATE, ADD, ("cake", "Bake a cake", "", "")])
    (write_contract(tmp_path / "intakes", [CREATE], "Bolt") / "catalogue.json").write_text("{")
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, KEYS)
        made = materialized(settings, instance, KEYS[0])
        assert made.success
        assert [check.passed for check in made.get_asset_check_evaluations()] == [True]
        events = made.asset_materializations_for_node("write_flows")
        rows = {event.asset_key.to_user_string(): event.metadata["dagster/row_count"].value for event in events}
        assert rows == {"flows/catalogue": 12, "flows/flows": 3, "flows/scores": 4}
        assert [materialized(settings, instance, key).success for key in KEYS[1:]] == [False, False]
        failed = materialized(settings, instance, (KEYS[0], KEYS[1]))
        assert not failed.success
        assert [check.partition for check in failed.get_asset_check_evaluations()] == [KEYS[0]]
        assert instance.get_materialized_partitions(dg.AssetKey(["flows", "flows"])) == {KEYS[0]}
        chosen = materialized(settings, instance, (KEYS[0], KEYS[0]), selection="key:flows/scores")
        assert chosen.success
        events = chosen.asset_materializations_for_node("write_flows")
        assert [event.asset_key.to_user_string() for event in events] == ["flows/scores"]
    found = run(connect(LakeRun.of(settings).lake), "flow_batches").fetchall()
    assert [(row[0], row[3], row[4], row[5]) for row in found] == [("Acme", 3, 2, 1)]


def test_a_contract_has_its_flows_written_by_the_language_model_that_it_states(tmp_path: Path) -> None:
    flows = write_contract(tmp_path / "intakes", [CREATE])
    (flows.parent / "contract.toml").write_text('flow_backend = "openai_compatible"')
    paths = Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes")
    with dg.DagsterInstance.ephemeral() as instance, serving(ChatServer(lambda _: {"flow": CREATE[3]})) as chat:
        register(instance, KEYS[:1])
        assert not materialized(Settings(paths=paths), instance, KEYS[0]).success, "no endpoint is set"
        settings = Settings(paths=paths, openai_compatible=OpenaiCompatible(url=chat.url, model="m"))
        assert materialized(settings, instance, KEYS[0]).success
        assert len(chat.seen) == 1
    found = connect(LakeRun.of(settings).lake).execute("SELECT backend, status, tokens_in FROM flows_flows").fetchall()
    assert found == [("openai_compatible", "written", 900)]


def test_flows_are_stale_in_dagster_where_the_version_of_the_method_is_another(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes"))
    write_contract(tmp_path / "intakes", [CREATE])
    assert {spec.code_version for spec in write_flows.specs} == {METHOD}
    raised = write_flows.map_asset_specs(lambda spec: spec.replace_attributes(code_version=f"{METHOD} later"))
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, KEYS[:1])
        first = materialized(settings, instance, KEYS[0])
        assert stale(definitions(settings, write_flows), instance, KEYS[:1]) == {}
        own = {f"flows/{name}": [KEYS[0]] for name in ("catalogue", "flows", "scores")}
        assert stale(definitions(settings, raised), instance, KEYS[:1]) == own
        again = materialized(settings, instance, KEYS[0], raised)
        assert stale(definitions(settings, raised), instance, KEYS[:1]) == {}
    versions = [
        {event.asset_key.to_user_string(): event.tags["dagster/data_version"] for event in made}
        for made in (result.asset_materializations_for_node("write_flows") for result in (first, again))
    ]
    assert versions[0] == versions[1], "a batch that is up to date is the same data"
