"""`opus flow batch`: what has no utterances, what cannot be used, and what is up to date."""

from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from tests.flows.batches.batches import ADD, CREATE, write_contract


def command(folder: Path, *more: str) -> list[str]:
    return ["--lake", str(folder / "lake"), "flow", "batch", "--intakes", str(folder / "intakes"), *more]


def test_a_contract_without_utterances_says_where_to_put_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "intakes" / "Acme" / "Automation").mkdir(parents=True)
    assert main(command(tmp_path)) == 1
    assert "flows/asked.csv" in capfd.readouterr().err
    assert main(command(tmp_path, "--contract", "Automation")) == 2


def test_a_backend_of_a_batch_is_one_that_there_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_contract(tmp_path / "intakes", [CREATE])
    assert main(command(tmp_path, "--backend", "guess")) == 2
    assert "openai_compatible" in capfd.readouterr().err


@pytest.mark.long
@pytest.mark.model
def test_what_cannot_be_used_fails_with_its_reason_and_the_rest_is_written_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_contract(tmp_path / "intakes", [CREATE, ADD, ("cake", "Bake a cake", "", "")])
    (write_contract(tmp_path / "intakes", [CREATE], "Bolt") / "catalogue.json").write_text("{")
    assert main(command(tmp_path)) == 1
    told = capfd.readouterr()
    assert "catalogue.json" in told.err
    assert [line.split()[0] for line in told.out.splitlines() if "Automation" in line] == ["Acme"]
    assert main(command(tmp_path, "--client", "Acme")) == 0
    assert "up to date" in capfd.readouterr().err
    assert main(["--lake", str(tmp_path / "lake"), "query", "flow_refusals"]) == 0
    assert "no_activity" in capfd.readouterr().out
    report = tmp_path / "report"
    assert main(["--lake", str(tmp_path / "lake"), "report", "--out", str(report)]) == 0
    assert sorted(path.name for path in report.iterdir()) == [
        "Acme__Automation__flow_0001.html",
        "Acme__Automation__flow_0002.html",
        "flows.html",
    ]
    forget = ["forget", "--client", "Acme", "--history", str(tmp_path), "--yes"]
    assert main(["--lake", str(tmp_path / "lake"), *forget]) == 0
    assert not list((tmp_path / "lake" / "flows").rglob("*.parquet"))
