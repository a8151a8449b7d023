"""`opus forget` where no rebuild is needed: who is unknown, who has results only, who is forgotten twice,
and undoing.
"""

import io
import sys
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import DATASETS, INTAKES, NEIGHBOURS, OPTIMIZED
from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.history.records.forgotten_clients import Forgotten
from opus_pipelines.lake.layout import Lake, table_of, write_json, write_table
from opus_pipelines.lake.results import ResultKey, results_of

Z, BOLT = "Zephyrine Verzekeringen", "Bolt & Sons"


def put_result(
    lake: Lake, client: str, contract: str, result: str, neighbour: str = "i1", title: str = "a claim"
) -> None:
    where = {"client_key": client, "contract_key": contract, "result": result}
    head = {"client": client, "contract": contract, "result": result, "intake_id": f"k{result}"}
    for dataset, row in (
        (INTAKES, {"title": title}),
        (NEIGHBOURS, {"implementation_id": neighbour}),
        (OPTIMIZED, {"title": title}),
    ):
        write_table(dataset, table_of(dataset, [head | row]), lake.folder(DATASETS[dataset.name], **where))
    write_json(
        lake.pointer_path(client, contract),
        {"client": client, "contract": contract, "result": result, "snapshot": "w1"},
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    put_result(lake, Z, "Claims", "r00000001")
    put_result(lake, Z, "Claims", "r00000002")
    put_result(lake, BOLT, "Claims", "r00000003")
    (tmp_path / "history").mkdir()
    return lake


def forget(lake: Lake, *arguments: str, client: str = Z) -> int:
    where = ["--history", str(lake.root.parent / "history"), "--intakes", str(lake.root.parent / "intakes")]
    return main(["--lake", str(lake.root), "forget", "--client", client, *where, *arguments])


def test_an_unknown_client_is_named_with_the_nearest(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert forget(lake, "--yes", client="Zephyrin Verzekering") == 1
    said = capsys.readouterr().err
    assert "'Zephyrin Verzekering'" in said
    assert said.endswith(f": {Z}\n")


@pytest.mark.parametrize(
    "twin",
    [
        "zephyrine  verzekeringen",
        "Zephyrine\u200b Verzekeringen",
        "Z\u0435phyrine Verzekeringen",
        "Zéphyrine Verzekeringen",
    ],
)
def test_a_client_that_looks_the_same_is_named_and_stays(
    twin: str, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    put_result(lake, twin, "Claims", "r00000004")
    assert forget(lake, "--yes") == 0
    said = capsys.readouterr().err
    assert ascii(twin) in said
    assert ascii(BOLT) not in said
    assert len(results_of(lake, twin)) == 1
    assert forget(lake, "--yes", client=twin) == 0
    assert not results_of(lake, twin)


def test_a_client_with_results_only_needs_no_rebuild(lake: Lake) -> None:
    assert forget(lake, "--yes") == 0
    assert results_of(lake) == [ResultKey(BOLT, "Claims", "r00000003")]
    assert [pointer["client"] for pointer in lake.results()] == [BOLT]
    assert [path for path in lake.root.rglob("*") if "Zephyrine" in path.name] == []
    assert Forgotten.of(lake).holds(Z)
    assert not (lake.root / ".forgetting").exists()
    assert forget(lake, "--yes") == 0


def test_a_dry_run_changes_nothing(lake: Lake) -> None:
    before = {path: path.stat().st_mtime_ns for path in lake.root.rglob("*")}
    assert forget(lake, "--dry-run") == 0
    assert {path: path.stat().st_mtime_ns for path in lake.root.rglob("*")} == before


def test_it_asks_first(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # the end of the input stops the question, as Ctrl-C does
    assert forget(lake) == 1
    assert len(results_of(lake)) == 3


def test_what_is_left_over_is_named_and_the_exit_code_says_so(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    (lake.root / "notes.txt").write_text(f"call {Z} back")
    assert forget(lake, "--yes") == 1
    assert f"still there: client '{Z}' in notes.txt" in capsys.readouterr().err
    (lake.root / "notes.txt").unlink()
    assert forget(lake, "--yes") == 0


def test_a_name_in_what_another_client_gave_is_told_and_stays(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    put_result(lake, BOLT, "Claims", "r00000003", title=f"a claim against {Z}")
    assert forget(lake, "--yes") == 0
    said = capsys.readouterr().err
    assert Z in said
    assert "generation/intakes/" in said


def test_nothing_is_made_for_a_forgotten_client_until_it_is_undone(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    for client in (Z, BOLT):
        folder = lake.root.parent / "intakes" / client / "Claims"
        folder.mkdir(parents=True)
        (folder / "contract.toml").write_text(f'client = "{client}"\n')
    assert forget(lake, "--yes") == 0
    assert (
        f"yours, and not touched: {lake.root.parent / 'intakes' / Z / 'Claims'} still holds {Z}"
        in capsys.readouterr().err
    )
    intakes = lake.root.parent / "intakes"
    assert [c.client for c in contracts_of(lake, intakes)] == [BOLT]
    assert forget(lake, "--undo") == 0
    assert [c.client for c in contracts_of(lake, intakes)] == [BOLT, Z]
    assert forget(lake, "--undo") == 1


@pytest.mark.parametrize("short", ["A", "7"])
def test_a_short_name_is_looked_for_only_where_it_is_a_clients(tmp_path: Path, short: str) -> None:
    lake = Lake(tmp_path / "lake")
    put_result(lake, short, "Claims", "r00000001")
    put_result(lake, BOLT, "Claims", "r00000002", title="Plan A, step 7")
    (tmp_path / "history").mkdir()
    assert forget(lake, "--yes", client=short) == 0
    assert [result.client for result in results_of(lake)] == [BOLT]
