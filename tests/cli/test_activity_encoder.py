"""`opus train --backend activity_encoder`: from a folder of flows to `opus flow new` with it, and bad options."""

import json
from pathlib import Path

import pytest
import yaml

from opus_pipelines.cli.main import main
from opus_pipelines.workflow.blocks.formats.python_ir import parse
from opus_pipelines.workflow.blocks.traversal import activities
from tests.flows.from_text.flow_examples import ENTRIES
from tests.lwm.fine_tuning.tiny_encoder import write_tiny_encoder

THINGS = ("Create an issue in Jira", "Post a message in Slack", "Create a board in Trello")
PLACES = (0, 4, 6)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "flows"
    made.mkdir()
    (made / "catalogue.json").write_text(json.dumps([{"id": name, "description": text} for name, text in ENTRIES]))
    tests = [
        {
            "_metadata": {"uid": f"{n} {place}", "tags": ["linear"]},
            "input": {"utterance": f"{text} {'now ' * n}".strip()},
            "expected_output": {"sequence": f"made = {ENTRIES[place][0]}()"},
        }
        for n in range(4)
        for text, place in zip(THINGS, PLACES, strict=True)
    ]
    (made / "tests.yaml").write_text(yaml.safe_dump({"actions": [{"$ref": "catalogue.json"}], "tests": tests}))
    return made


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    words = {word for _, text in ENTRIES for word in text.replace(".", " ").split()}
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    write_tiny_encoder(encoder, sorted(words))
    file = tmp_path / "opus.toml"
    file.write_text(
        f'[paths]\nlake = "{tmp_path / "lake"}"\n[encoder]\nmodel = "{encoder}"\n'
        '[flows]\nencoder = "fine_tuned"\nstructure = "tagger"\n'
    )
    return file


@pytest.mark.long
def test_a_model_is_trained_listed_promoted_and_used(
    folder: Path, settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*given: str) -> tuple[int, str]:
        code = main(["--settings", str(settings), *given])
        found = capsys.readouterr()
        return code, found.out + found.err

    asked = ("flow", "new", "Create an issue in Jira", "--catalogue", str(folder / "catalogue.json"))
    code, said = run("train", "--backend", "activity_encoder", "--flows", str(folder))
    assert (code, "recall@1" in said) == (0, True)
    model = next((tmp_path / "lake/models/activity_encoder").glob("m*")).name
    code, said = run("models", "--backend", "activity_encoder", "--champion", model)
    assert code == 0, said
    assert f"{model}, champion" in said
    assert run(*asked, "-o", str(tmp_path / "flow.py"))[0] == 0
    assert set(activities(parse((tmp_path / "flow.py").read_text()))) <= {name for name, _ in ENTRIES}


@pytest.mark.long
def test_without_a_trained_model_the_setting_is_refused(
    folder: Path, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["flow", "new", "Create an issue", "--catalogue", str(folder / "catalogue.json")]
    assert main(["--settings", str(settings), *given]) != 0
    assert "opus train --backend activity_encoder" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--backend", "activity_encoder"], ["--flows", "."]])
def test_the_folder_and_the_backend_go_together(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *given]) != 0
    assert "--flows" in capsys.readouterr().err
