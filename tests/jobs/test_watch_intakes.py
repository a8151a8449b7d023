"""The sensor over the intakes folder: which contracts it asks for, when, and how many runs that takes."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from jobs.sensors import intakes_changed
from jobs.stages import PARTITION
from opus_pipelines.core.settings import Paths, Schedule, Settings
from opus_pipelines.lake.layout import Lake, write_json


@pytest.fixture
def intakes(tmp_path: Path) -> Path:
    write_json(
        tmp_path / "lake" / "wkg" / "current.json", {"snapshot": "w1", "published_at": "2026-01-01T00:00:00+00:00"}
    )
    drop(tmp_path / "intakes", "Acme", "Retail")
    return tmp_path / "intakes"


def drop(intakes: Path, client: str, contract: str, intake: str = "one", text: str = "An order.") -> Path:
    folder = intakes / client / contract / intake / "input"
    folder.mkdir(parents=True)
    (folder / "order.txt").write_text(text)
    return folder.parents[1]


def publish(intakes: Path, client: str, contract: str) -> None:
    write_json(
        Lake(intakes.parent / "lake").pointer_path(client, contract),
        {"client": client, "contract": contract, "result": "r1"},
    )


class Ticks:
    """The sensor looked at again and again, with its cursor and an instance that learns the keys it asks for."""

    def __init__(self, intakes: Path, known: tuple[str, ...] = ()) -> None:
        self.sensor = intakes_changed(Settings(paths=Paths(lake=intakes.parent / "lake", intakes=intakes)))
        self.instance = dg.DagsterInstance.ephemeral()
        self.instance.add_dynamic_partitions("contract", list(known))
        self.cursor: str | None = None

    def look(self) -> tuple[list[str], str | None]:
        """The contract of each run asked for, and why there is none."""
        found = self.sensor.evaluate_tick(dg.build_sensor_context(instance=self.instance, cursor=self.cursor))
        self.cursor = found.cursor or self.cursor
        for request in found.dynamic_partitions_requests or []:
            assert request.partitions_def_name == "contract"
            self.instance.add_dynamic_partitions("contract", list(request.partition_keys))
        return [run.tags[PARTITION] for run in found.run_requests or []], found.skip_message


@pytest.mark.long
def test_a_new_folder_is_asked_for_once_it_is_at_rest(intakes: Path) -> None:
    ticks = Ticks(intakes)
    assert ticks.look() == ([], "files are still changing")
    assert ticks.look() == (["Acme__Retail"], None)
    assert ticks.instance.get_dynamic_partitions("contract") == ["Acme__Retail"]
    assert ticks.look() == ([], "nothing changed")


@pytest.mark.long
def test_a_folder_that_is_still_being_copied_waits(intakes: Path) -> None:
    ticks = Ticks(intakes)
    for size in (1, 2, 3):
        (intakes / "Acme/Retail/one/input/order.txt").write_text("x" * size)
        assert ticks.look() == ([], "files are still changing")
    assert ticks.look()[0] == ["Acme__Retail"]


@pytest.mark.long
def test_a_contract_with_a_result_is_asked_for_only_when_it_changes(intakes: Path) -> None:
    publish(intakes, "Acme", "Retail")
    ticks = Ticks(intakes, ("Acme__Retail",))
    assert [ticks.look() for _ in range(2)] == [([], "nothing changed")] * 2
    drop(intakes, "Acme", "Retail", "two")
    assert [ticks.look()[0] for _ in range(3)] == [[], ["Acme__Retail"], []]


def test_a_folder_back_in_an_earlier_state_is_asked_for_again(intakes: Path) -> None:
    ticks = Ticks(intakes)
    assert [len(ticks.look()[0]) for _ in range(2)] == [0, 1]
    added = intakes / "Acme/Retail/one/input/more.txt"
    added.write_text("More.")
    assert [len(ticks.look()[0]) for _ in range(3)] == [0, 1, 0]
    added.unlink()
    assert [len(ticks.look()[0]) for _ in range(3)] == [0, 1, 0]


def test_never_means_never(intakes: Path) -> None:
    (intakes / "Acme/Retail/contract.toml").write_text('regenerate = "never"\n')
    assert [Ticks(intakes).look() for _ in range(2)] == [([], "nothing changed")] * 2


def test_a_contract_that_is_no_longer_never_is_asked_for(intakes: Path) -> None:
    settings = intakes / "Acme/Retail/contract.toml"
    settings.write_text('regenerate = "never"\n')
    ticks = Ticks(intakes)
    ticks.look()
    settings.write_text('regenerate = "nightly"\n')
    assert [len(ticks.look()[0]) for _ in range(3)] == [0, 1, 0]


def test_a_broken_contract_is_warned_about_once_until_it_changes(
    intakes: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    drop(intakes, "Bolt", "Repairs")
    settings = intakes / "Acme/Retail/contract.toml"
    settings.write_text("gian_usd = 3\n")
    ticks = Ticks(intakes)
    assert [ticks.look() for _ in range(3)] == [
        ([], "files are still changing"),
        (["Bolt__Repairs"], None),
        ([], "nothing changed"),
    ]
    assert capfd.readouterr().err.count("unknown key gian_usd") == 1
    settings.write_text("gain_usd = 3\n")
    assert [ticks.look()[0] for _ in range(3)] == [[], ["Acme__Retail"], []]


def test_two_folders_of_one_name_are_left_out_until_one_is_renamed(
    intakes: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    twin = drop(intakes, "Other", "Retail") / "contract.toml"
    twin.write_text('client = "Acme"\n')
    ticks = Ticks(intakes)
    assert [ticks.look()[0] for _ in range(3)] == [[], [], []]
    assert capfd.readouterr().err.count("contract 'Retail' of client 'Acme'") == 1
    twin.unlink()
    assert [ticks.look()[0] for _ in range(2)] == [[], ["Acme__Retail", "Other__Retail"]]


def test_names_that_are_paths_are_keys_like_any_other(intakes: Path) -> None:
    (intakes / "Acme/Retail/contract.toml").write_text('client = "../../etc"\ncontract = "a,b...c|d"\n')
    ticks = Ticks(intakes)
    key = "_2e_2e_2f_2e_2e_2fetc__a_2cb_2e_2e_2ec_7cd"
    assert [ticks.look()[0] for _ in range(2)] == [[], [key]]


def test_each_contract_takes_a_run_of_its_own(intakes: Path) -> None:
    drop(intakes, "Acme", "Wholesale")
    drop(intakes, "Bolt", "Repairs")
    publish(intakes, "Bolt", "Repairs")
    ticks = Ticks(intakes, ("Acme__Retail", "Bolt__Repairs"))
    ticks.look()
    assert ticks.look()[0] == ["Acme__Retail", "Acme__Wholesale"]
    assert ticks.instance.get_dynamic_partitions("contract") == ["Acme__Retail", "Bolt__Repairs", "Acme__Wholesale"]


def test_new_contracts_are_registered_in_order(intakes: Path) -> None:
    for contract in ("Wholesale", "Export"):
        drop(intakes, "Acme", contract)
    ticks = Ticks(intakes)
    assert [ticks.look()[0] for _ in range(2)] == [[], ["Acme__Export", "Acme__Retail", "Acme__Wholesale"]]
    assert ticks.instance.get_dynamic_partitions("contract") == ["Acme__Export", "Acme__Retail", "Acme__Wholesale"]


def test_a_contract_that_went_and_came_back_is_new(intakes: Path) -> None:
    ticks = Ticks(intakes)
    ticks.look(), ticks.look()
    (intakes / "Acme/Retail").rename(intakes.parent / "away")
    assert ticks.look() == ([], "nothing changed")
    (intakes.parent / "away").rename(intakes / "Acme/Retail")
    assert [len(ticks.look()[0]) for _ in range(3)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("intakes", "no such folder of intakes"),
        ("lake/wkg/current.json", "has no snapshot yet; `opus rebuild` makes one"),
    ],
)
def test_without_intakes_or_a_snapshot_the_sensor_says_so(intakes: Path, missing: str, said: str) -> None:
    (intakes.parent / missing).rename(intakes.parent / "gone")
    runs, why = Ticks(intakes).look()
    assert runs == []
    assert said in str(why)


@pytest.mark.parametrize(
    ("schedule", "status"),
    [
        ({}, dg.DefaultSensorStatus.STOPPED),
        ({"watch_intakes": True, "watch_seconds": 30}, dg.DefaultSensorStatus.RUNNING),
    ],
)
def test_off_unless_the_settings_say_otherwise(schedule: dict[str, Any], status: dg.DefaultSensorStatus) -> None:
    sensor = intakes_changed(Settings(schedule=Schedule(**schedule)))
    assert sensor.default_status == status
    assert sensor.minimum_interval_seconds == schedule.get("watch_seconds", Schedule().watch_seconds)
