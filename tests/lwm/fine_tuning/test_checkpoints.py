"""Checkpoints of trainings: replaced in one rename, never of other data, and damaged ones are not used."""

import logging
from pathlib import Path

import pytest
import torch

from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.fine_tuning.checkpoints import KEPT, Checkpoint, Checkpoints

STATE = {"w": torch.tensor([[1.0, 2.0]]), "n": 3, "place": "7"}


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    checkpoint = Checkpoints(tmp_path).at("cases")
    assert checkpoint.read() is None
    checkpoint.write({"w": torch.zeros(2)})
    checkpoint.write(STATE)
    found = Checkpoints(tmp_path).at("cases").read()
    assert found is not None
    assert (found["w"].tolist(), found["n"], found["place"]) == ([[1.0, 2.0]], 3, "7")
    assert [file.name for file in tmp_path.iterdir()] == [checkpoint.file.name]


def test_other_cases_have_another_checkpoint(tmp_path: Path) -> None:
    one, other = (Checkpoints(tmp_path).at("training", cases) for cases in (["a"], ["a", "b"]))
    one.write(STATE)
    assert other.read() is None


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "pickle"])
def test_a_damaged_checkpoint_is_named_and_not_used(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Checkpoint(tmp_path / "c.torch")
    checkpoint.write(STATE)
    whole = checkpoint.file.read_bytes()
    content = {"cut": whole[:-3], "changed": whole[:-1] + b"\x7f", "empty": b"", "pickle": b"\x80\x04N."}
    checkpoint.file.write_bytes(content[damage])
    with caplog.at_level(logging.WARNING):
        assert checkpoint.read() is None
    assert "c.torch" in caplog.text
    assert not checkpoint.file.exists()


def test_trainings_that_never_ended_leave_no_more_than_a_few_files(tmp_path: Path) -> None:
    for n in range(KEPT + 3):
        Checkpoints(tmp_path).at(n).write(STATE)
    assert len(list(tmp_path.iterdir())) == KEPT
    Checkpoints(tmp_path).remove()
    assert list(tmp_path.iterdir()) == []


def test_they_lie_where_forgetting_a_client_removes_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert Checkpoints.of(lake).folder.is_relative_to(lake.staged)
