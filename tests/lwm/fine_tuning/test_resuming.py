"""A training that was interrupted goes on from its last epoch, and ends with the weights that it would have had."""

from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.lwm.fine_tuning.checkpoints import Checkpoints
from opus_pipelines.lwm.next_step import Fitting, Network, TrainingError, fit_network

DRAW = np.random.default_rng(0)
LISTS = [DRAW.normal(size=(4, 3)) for _ in range(300)]
CHOSEN = [int(rows[:, 0].argmax()) for rows in LISTS]


class Stopped(Exception):
    """The process was stopped."""


def fitted(folder: Path, stop: int | None = None) -> tuple[Network, list[int]]:
    """Train; in epoch `stop` the process is stopped. Returns the network and the epochs that were reported."""
    epochs: list[int] = []

    def report(epoch: int, _: float) -> None:
        epochs.append(epoch)
        if epoch == stop:
            raise Stopped

    return fit_network(LISTS, CHOSEN, Fitting(report=report, checkpoints=Checkpoints(folder))), epochs


@pytest.mark.long
def test_an_interrupted_training_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole, epochs = fitted(tmp_path / "whole")
    with pytest.raises(Stopped):
        fitted(tmp_path / "part", stop=7)
    (file,) = (tmp_path / "part").iterdir()
    resumed, again = fitted(tmp_path / "part")
    assert again == epochs == list(range(1, len(epochs) + 1))
    assert all(np.array_equal(part, whole.tensors()[name]) for name, part in resumed.tensors().items())
    assert file.is_file(), "it goes when the training is published"


@pytest.mark.nightly
def test_a_training_of_other_cases_starts_anew(tmp_path: Path) -> None:
    fitted(tmp_path)
    epochs: list[float] = []
    how = Fitting(report=lambda _, loss: epochs.append(loss), checkpoints=Checkpoints(tmp_path))
    fit_network(LISTS[:150], CHOSEN[:150], how)
    alone: list[float] = []
    fit_network(LISTS[:150], CHOSEN[:150], Fitting(report=lambda _, loss: alone.append(loss)))
    assert epochs == alone


@pytest.mark.long
def test_a_loss_that_is_not_finite_leaves_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="not finite"):
        fit_network(LISTS, CHOSEN, Fitting(learning_rate=1e38, checkpoints=Checkpoints(tmp_path)))
    assert list(tmp_path.iterdir()) == []
