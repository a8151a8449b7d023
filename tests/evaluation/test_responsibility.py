"""EVAL (19)-(23)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.errors import WorkflowError
from opus_pipelines.evaluation.penalty import Scores, cip
from opus_pipelines.evaluation.responsibility import (
    Responsibility,
    atomicity,
    is_single,
    is_single_level,
    responsibilities,
    target_atomicity,
)
from opus_pipelines.settings import Reward
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

share = st.floats(0, 1)


@given(share, share)
def test_at_the_target_cip_is_least(alpha, coupling):
    at_target = Scores.of(coupling=1 - target_atomicity(alpha), observability=0.5)
    assert is_single(atomicity(at_target), target_atomicity(alpha))
    assert cip([at_target], alpha) <= cip([Scores.of(coupling=coupling, observability=0.5)], alpha) + 1e-12


def test_levels():
    assert [is_single_level(level, 3) for level in (1, 2, 3, 4)] == [False, False, True, False]
    for wrong in ((0, 3), (3, 5)):
        with pytest.raises(WorkflowError, match="a level is 1"):
            is_single_level(*wrong)


def test_too_coarse_is_split_and_too_fine_merged():
    ids = ["in", "coarse", "fine", "right", "out"]
    nodes = [InputNode("in", "In"), *(TaskNode(i, i, i) for i in ids[1:-1]), OutputNode("out", "Out", 1.0)]
    workflow = Workflow.of(nodes, itertools.pairwise(ids))
    coupling = {"coarse": 0.75, "fine": 0.125, "right": 0.375}
    scores = {i: Scores.of(coupling=c, observability=0.5) for i, c in coupling.items()}
    assert responsibilities(workflow, scores, Reward(alpha=0.375)) == {
        "coarse": Responsibility(0.25, 0.625, False, "split"),
        "fine": Responsibility(0.875, 0.625, False, "merge"),
        "right": Responsibility(0.625, 0.625, True, "keep"),
    }
    assert all(r.is_single for r in responsibilities(workflow, scores, Reward(alpha=0.375), tolerance=0.4).values())
    with pytest.raises(WorkflowError, match="no scores for 'coarse'"):
        responsibilities(workflow, {k: scores[k] for k in ("fine", "right")}, Reward())
