"""The asset of improved workflows: contracts are partitions, what is published is read, a failure has its reason."""

import json
import warnings
from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import register
from assets.programs import improve_contracts
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.flows.programs.contract_improvement import Budget, Improvement, publish_improvement
from opus_pipelines.lake.results import ResultKey
from opus_pipelines.reporting.views import connect
from resources.lake import LakeRun

pytestmark = pytest.mark.long
KEYS = ("Acme__Retail", "Bolt__Retail", "Gone__Retail")


def materialized(settings: Settings, instance: dg.DagsterInstance, contract: str) -> dg.ExecuteInProcessResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        return dg.materialize(
            [improve_contracts],
            instance=instance,
            partition_key=contract,
            resources={"run": LakeRun.of(settings)},
            run_config={
                "ops": {"improve_contracts": {"config": {"scored": 30}}},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            raise_on_error=False,
        )


def test_a_published_improvement_is_read_and_a_contract_without_a_result_fails(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes"))
    for client in ("acme", "bolt"):
        (tmp_path / "intakes" / client / "retail" / "one").mkdir(parents=True)
        text = f'client = "{client.title()}"\ncontract = "Retail"\nindustry = "retail"\n'
        (tmp_path / "intakes" / client / "retail" / "contract.toml").write_text(text)
    lake = LakeRun.of(settings).lake
    key = ResultKey("Acme", "Retail", "r1")
    row = {"client": "Acme", "contract": "Retail", "result": "r1", "workflow_id": "f1", "start": "published"}
    row |= {"is_better": True, "reward_before_usd": 1.0, "reward_after_usd": 3.5}
    pointer = lake.pointer_path("Acme", "Retail")
    with lake.lock():
        identity = Budget(30).improvement(key)
        publish_improvement(lake, Improvement(identity, [{"improvement": identity} | row], []))
        lake.replace_json(pointer, {"client": "Acme", "contract": "Retail", "result": "r1"})
    assert json.loads(pointer.read_text())["result"] == "r1"
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, KEYS)
        done = materialized(settings, instance, KEYS[0])
        assert done.success
        (event,) = done.asset_materializations_for_node("improve_contracts")
        assert event.asset_key == dg.AssetKey(["programs", "improvements"])
        figures = {name: event.metadata[name].value for name in ("dagster/row_count", "better", "earned_usd")}
        assert figures == {"dagster/row_count": 1, "better": 1, "earned_usd": 2.5}
        failed = [materialized(settings, instance, key) for key in KEYS[1:]]
        assert [one.success for one in failed] == [False, False]
    assert connect(lake).sql("SELECT count(*) FROM programs_improvements").fetchall() == [(1,)]
