"""`opus check` of a contract's folder: what its catalogue declares, and what of it could not be used."""

from collections.abc import Callable
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main

Checked = Callable[[], tuple[int, str]]


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    (tmp_path / "contract.toml").write_text('industry = "postal"\n')
    return tmp_path


@pytest.fixture
def checked(contract: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[], tuple[int, str]]:
    def check() -> tuple[int, str]:
        code = main(["check", str(contract)])
        return code, "".join(capsys.readouterr())

    return check


def test_files_and_declared_tasks_are_counted_and_defects_named(contract: Path, checked: Checked) -> None:
    (contract / "catalogue.csv").write_text("name,price\nsend_letter,1\nsend letter,2\nstamp_letter,-1\n")
    code, said = checked()
    assert code == 0
    assert "2 declared tasks" in said
    assert "entry 3 (send letter)" in said
    assert "entry 4 (stamp_letter)" in said


def test_a_catalogue_without_a_usable_tool_is_a_failure_and_none_is_not(contract: Path, checked: Checked) -> None:
    assert checked()[0] == 0
    (contract / "catalogue.yaml").write_text("a: [")
    code, said = checked()
    assert code == 1
    assert "no YAML" in said


def test_utterances_are_counted_and_those_that_cannot_be_read_are_named(contract: Path, checked: Checked) -> None:
    (contract / "contract.toml").unlink()
    (contract / "flows").mkdir()
    (contract / "flows" / "asked.csv").write_text("uid,utterance,gold\n1,Do it,x = A()\n,Do that,\n")
    (contract / "flows" / "broken.csv").write_text("name\n")
    (contract / "flows" / "catalogue.json").write_text('[{"id": "A"}]')
    code, said = checked()
    assert code == 0
    for part in ("1 of 2 utterances", "1 with a reference", "asked.csv, line 3", "broken.csv", "1 activities"):
        assert part in said
