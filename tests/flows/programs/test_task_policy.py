"""The policy that sees the tasks, and the coordinate search: gradients, grammar, credit by phrases, local optima."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.flows.programs import planning_set
from opus_pipelines.flows.programs.drafts import ALWAYS, Draft, Item, program_of, typed
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.planning_set import MANUAL, PHRASES, bank, plan_score, tasks, toolbox
from opus_pipelines.flows.programs.rewards import INVALID, Harness
from opus_pipelines.flows.programs.search import (
    TaskPolicy,
    climb,
    improve,
    mentioned_phrases,
    neighbours,
    order_direction,
)
from opus_pipelines.workflow.blocks.formats.core_program import findings

SELECT = planning_set.split(tasks())[0]


def harness(reads: str = "exact", calls: int | None = None, count: int = 12) -> Harness:
    return Harness(SELECT[:count], plan_score, ToolExecutor(toolbox(reads)), "test", calls)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_every_program_that_is_drawn_is_valid_and_names_a_phrase_once(seed: int) -> None:
    on = harness()
    policy = TaskPolicy(bank(), mentioned_phrases(on, bank()), MANUAL, [0.0] * 12)
    draft, drawn = policy.draw(np.random.default_rng(seed), 0.5)
    assert findings(program_of(draft)) == []
    assert len({item.phrase for item in draft}) == len(draft) == len(drawn.phrases)
    kinds = [bank().kind(item.model) for item in draft]
    assert len(set(kinds)) == len([kind for kind, _ in groupby(kinds)])


def test_models_of_a_kind_that_changes_the_type_are_alternatives() -> None:
    draft = (
        Item("noisy", "image_denoising"),
        Item("blurry", "image_deblurring"),
        Item("caption", "image_captioning"),
        Item("class", "image_classification"),
        Item(ALWAYS, "object_detection"),
        Item("in German", "translation"),
    )
    assert [item.instead for item in typed(draft, bank())] == [False, False, True, True, False, False]


def test_the_direction_of_an_order_is_the_gradient_of_its_log_probability() -> None:
    scores = np.array([0.3, -0.7, 1.1])
    present = np.array([[True, True, True], [True, False, True], [False, False, False]])

    def log_probability(of: np.ndarray, row: np.ndarray) -> float:
        own = of[row]
        return float(sum(own[i] - np.log(np.exp(own[i:]).sum()) for i in range(len(own))))

    step = 1e-6
    for row, found in zip(present, order_direction(scores, present), strict=True):
        wanted = [
            (log_probability(scores + step * unit, row) - log_probability(scores - step * unit, row)) / (2 * step)
            for unit in np.eye(3)
        ]
        assert found == pytest.approx(np.where(row, wanted, 0.0), abs=1e-6)


def test_only_the_tasks_that_mention_a_phrase_move_its_choice() -> None:
    reads = np.array([[p == ALWAYS or p in texts for p in bank().phrases] for texts in ({"noisy"}, {"blurry"})])
    policy = TaskPolicy(bank(), reads, MANUAL, [0.0, 0.0])
    _, drawn = policy.draw(np.random.default_rng(1), 0.0)
    before = policy.logits.copy()
    policy.learn(drawn, [1.0, 0.0], 0.0)
    moved = {p for p, row in zip(bank().phrases, np.abs(policy.logits - before).max(1) > 1e-9, strict=True) if row}
    assert "noisy" in moved
    assert moved <= {ALWAYS, "noisy"}


def test_the_mentions_are_those_of_the_tools_that_run_the_program() -> None:
    exact, similar = (mentioned_phrases(harness(reads), bank()) for reads in ("exact", "similar"))
    wanted = [[p == ALWAYS or p.lower() in task.text.lower() for p in bank().phrases] for task in SELECT[:12]]
    assert exact.tolist() == wanted
    assert (exact != similar).any()


def test_neighbours_are_one_change_away_and_each_stands_once() -> None:
    draft: Draft = (Item("noisy", "image_denoising"), Item("caption", "image_captioning"))
    found = neighbours(draft, bank())
    assert len(set(found)) == len(found)
    assert draft not in found
    assert (Item("noisy", "image_denoising"),) in found
    assert (Item("noisy", "image_deblurring"), draft[1]) in found
    added = [one for one in found if len(one) == 3]
    assert len(added) >= (len(PHRASES) - 1) * len(bank().models)
    assert (draft[1], draft[0]) in found


def test_a_climb_ends_where_no_single_change_helps_and_takes_the_shorter_of_equals() -> None:
    best: Draft = (Item("noisy", "image_denoising"), Item("caption", "image_captioning"))

    def alike(draft: Draft) -> float:
        return float(len({(i.phrase, i.model) for i in draft} & {(i.phrase, i.model) for i in best}))

    found = climb(MANUAL, alike, bank(), np.random.default_rng(0))
    assert sorted((i.phrase, i.model) for i in found) == sorted((i.phrase, i.model) for i in best)


def test_the_scores_of_tasks_are_one_call_and_their_mean_is_the_reward() -> None:
    on = harness()
    found = on.scores(program_of(MANUAL))
    assert (len(found), on.calls) == (12, 1)
    assert on.score(program_of(MANUAL)) == pytest.approx(sum(found) / 12)
    assert on.calls == 1
    assert INVALID not in found


@pytest.mark.long
def test_with_a_tenth_of_the_calls_the_policy_is_far_above_the_manual_program() -> None:
    on = Harness(SELECT, plan_score, ToolExecutor(toolbox()), "test", 600)
    found = improve("policy gradient", bank(), MANUAL, on, 100)
    assert on.calls == 600
    assert found.reward > 0.7 > 0.4 > found.begin
