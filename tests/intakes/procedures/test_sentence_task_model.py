"""The noisy-or finds which cause made what."""

import numpy as np
import pytest

from opus_pipelines.intakes.procedures.models import fit_noisy_or

HOLDS = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]], float)  # two sentences, and chance
DID = np.array([[0.95, 0.0], [0.0, 0.9], [0.95, 0.9], [0.0, 0.0]])


def test_each_cause_gets_its_own_task() -> None:
    found = fit_noisy_or(HOLDS, DID, np.full(DID.shape, 8.0), np.zeros((3, 2)), most_last=0.1)
    assert found[0, 0] > 0.85
    assert found[1, 1] > 0.8
    assert found[0, 1] < 0.05
    assert found[1, 0] < 0.05


def test_causes_that_are_always_together_are_told_apart_by_what_is_likely() -> None:
    holds, did = np.array([[1, 1, 1]], float), np.array([[1.0]])
    found = fit_noisy_or(holds, did, np.full((1, 1), 8.0), np.array([[0.9], [0.0], [0.0]]), most_last=0.1)
    assert found[0, 0] > 0.9
    assert found[1, 0] < 0.5 * found[0, 0]


def test_without_evidence_there_is_only_the_prior() -> None:
    found = fit_noisy_or(HOLDS, DID, np.zeros(DID.shape), np.full((3, 2), 0.25))
    assert found == pytest.approx(np.full((3, 2), 0.25))


def test_chance_never_explains_more_than_it_may() -> None:
    assert (
        fit_noisy_or(HOLDS, np.ones_like(DID), np.full(DID.shape, 8.0), np.zeros((3, 2)), most_last=0.1)[-1].max()
        <= 0.1
    )
