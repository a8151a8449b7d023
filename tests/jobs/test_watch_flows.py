"""The sensor over the utterances of contracts: which contracts it asks for, and when."""

from pathlib import Path

import dagster as dg
import pytest

from jobs.sensors import flows_changed
from jobs.stages import PARTITION
from opus_pipelines.core.schemas import FLOWS
from opus_pipelines.core.settings import Paths, Schedule, Settings
from opus_pipelines.lake.layout import Lake
from tests.flows.batches.batches import ADD, CREATE, write_contract


class Ticks:
    """The sensor looked at again and again, with its cursor."""

    def __init__(self, root: Path) -> None:
        self.sensor = flows_changed(Settings(paths=Paths(lake=root / "lake", intakes=root / "intakes")))
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None

    def look(self) -> list[str] | str | None:
        """The contract of each run asked for, or why there is none."""
        found = self.sensor.evaluate_tick(dg.build_sensor_context(instance=self.instance, cursor=self.cursor))
        self.cursor = found.cursor or self.cursor
        return [run.tags[PARTITION] for run in found.run_requests or []] or found.skip_message


@pytest.mark.long
def test_new_and_changed_utterances_are_asked_for_once_they_are_at_rest(tmp_path: Path) -> None:
    (tmp_path / "intakes" / "Acme" / "Plain" / "one" / "input").mkdir(parents=True)
    write_contract(tmp_path / "intakes", [CREATE])
    ticks = Ticks(tmp_path)
    found = [ticks.look() for _ in range(3)]
    assert found == ["files are still changing", ["Acme__Automation"], "nothing changed"]
    folder = write_contract(tmp_path / "intakes", [CREATE, ADD])
    assert [ticks.look() for _ in range(3)] == ["files are still changing", ["Acme__Automation"], "nothing changed"]
    (folder.parent / "contract.toml").write_text('flow_backend = "ranker"')
    assert [ticks.look() for _ in range(2)] == ["files are still changing", ["Acme__Automation"]]


@pytest.mark.long
def test_a_contract_with_a_batch_waits_for_a_change_and_the_sensor_is_off_by_default(tmp_path: Path) -> None:
    write_contract(tmp_path / "intakes", [CREATE])
    lake = Lake(tmp_path / "lake")
    lake.folder(FLOWS, client_key="Acme", contract_key="Automation", batch_key="b1").mkdir(parents=True)
    ticks = Ticks(tmp_path)
    assert [ticks.look() for _ in range(2)] == ["nothing changed", "nothing changed"]
    assert ticks.sensor.default_status is dg.DefaultSensorStatus.STOPPED
    on = flows_changed(Settings(schedule=Schedule(watch_flows=True)))
    assert on.default_status is dg.DefaultSensorStatus.RUNNING
    assert "no such folder" in str(Ticks(tmp_path / "elsewhere").look())
