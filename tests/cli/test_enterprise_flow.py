"""`opus flow outline|validate|score` on files and texts of every kind."""

import json
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main

REQUIREMENT = "When an incident with priority Critical is created, send an email to the caller."


def test_a_requirement_is_written_validated_and_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "outline", REQUIREMENT, "--json"]) == 0
    made = capsys.readouterr().out
    assert json.loads(made)["components"][0]["definition"] == "send_email"
    file = tmp_path / "flow.json"
    file.write_text(made)
    assert main(["flow", "validate", str(file)]) == 0
    assert main(["flow", "score", str(file), str(file)]) == 0
    assert "flowsim" in capsys.readouterr().out
    assert main(["flow", "convert", str(file), "--from", "servicenow", "--to", "python"]) == 0
    assert "trigger_record_create()" in capsys.readouterr().out
    assert main(["flow", "outline", REQUIREMENT, "--no-inputs"]) == 0
    assert "send_email" in capsys.readouterr().out


def test_errors_of_a_flow_are_listed_and_a_file_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "flow.json"
    file.write_text('{"trigger": {"type": "daily"}, "components": [{"definition": "ELSE", "order": 1}]}')
    assert main(["flow", "validate", str(file)]) == 1
    assert "else_without_if" in capsys.readouterr().out
    for text in ("{", "[1]", "\xff"):
        file.write_bytes(text.encode("latin-1"))
        assert main(["flow", "validate", str(file)]) == 1
        assert str(file) in capsys.readouterr().err.replace("\n", "")
    assert main(["flow", "outline", " ", "--catalogue", str(tmp_path / "none.toml")]) == 1
