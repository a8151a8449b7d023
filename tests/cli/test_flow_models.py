"""`opus flow compare`: a table of writers, samples with scores, and what is missing as an error."""

import json
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.flows.enterprise.documents import json_of
from opus_pipelines.flows.enterprise.examples import CATALOGUE_FILE, world_examples


def test_writers_are_compared_on_files_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, samples = tmp_path / "own.jsonl", tmp_path / "samples.jsonl"
    lines = [
        json.dumps({"id": e.id, "requirement": e.text, "flow": json_of(e.flow), "part": e.part, "tags": list(e.tags)})
        for e in world_examples()[:40]
    ]
    file.write_text("\n".join([*lines, "{"]))
    own = ["--examples", str(file), "--catalogue", str(CATALOGUE_FILE), "--limit", "6"]
    assert main(["flow", "compare", "--model", "composer", "--model", "nearest", *own, "--samples", str(samples)]) == 0
    shown = capsys.readouterr()
    assert "composer" in shown.out
    assert "nearest requirement" in shown.out
    assert "line 41" in shown.err
    assert len(samples.read_text().splitlines()) == 6


@pytest.mark.parametrize(
    "arguments",
    [
        ["--examples", "none.jsonl"],
        ["--examples", "none.jsonl", "--catalogue", str(CATALOGUE_FILE)],
    ],
)
def test_what_is_missing_is_an_error(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["flow", "compare", *arguments]) == 1
    assert capsys.readouterr().err.strip()
