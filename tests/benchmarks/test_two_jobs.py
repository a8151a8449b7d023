"""The jobs of a benchmark of predictions: where they write, what they see of the caller, and what a failure costs."""

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import two_jobs  # type: ignore[import-not-found]


def test_the_folder_of_the_predictions_is_made_at_the_start(tmp_path: Path) -> None:
    assert two_jobs.to_write(str(tmp_path / "new" / "out.jsonl")).parent.is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(argparse.ArgumentTypeError, match="cannot be written"):
        two_jobs.to_write(str(tmp_path / "file" / "out.jsonl"))


def test_a_lake_of_the_caller_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPUS_HISTORY", "elsewhere")
    monkeypatch.setenv("OPUS_GENERATION_SEED", "3")
    own = two_jobs.own_environment()
    assert "OPUS_HISTORY" not in own
    assert own["OPUS_GENERATION_SEED"] == "3"


@pytest.mark.parametrize(
    ("verb", "code", "published", "goes_on"),
    [
        ("train", 1, "wkg/current.json", True),
        ("generate", 1, "workflows/current/a.json", True),
        ("generate", 1, "wkg/current.json", False),
        ("rebuild", 1, "wkg/kept/ids.parquet", False),
        ("rebuild", -9, "wkg/current.json", False),
    ],
    ids=["too little to train on", "an intake failed", "no result", "no snapshot", "killed"],
)
def test_a_part_that_fails_costs_itself_alone(
    verb: str, code: int, published: str, goes_on: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake" / published).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "lake" / published).touch()
    if goes_on:
        two_jobs.go_on(tmp_path, verb, code)
        assert verb in capsys.readouterr().err
    else:
        with pytest.raises(SystemExit, match=verb):
            two_jobs.go_on(tmp_path, verb, code)
