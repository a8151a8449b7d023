"""Improving programs: every edit gives a valid program, rewards are counted, and nothing leaks or repairs."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.flows.programs import planning_set
from opus_pipelines.flows.programs.drafts import Item, draft_of, program_of, random_draft
from opus_pipelines.flows.programs.executors import ToolExecutor
from opus_pipelines.flows.programs.experiment import Plan, experiment, publish_experiment, summaries
from opus_pipelines.flows.programs.planning_set import MANUAL, PlanningTask, bank, plan_score, tasks, toolbox
from opus_pipelines.flows.programs.rewards import INVALID, BudgetSpent, Harness, RewardError, chain_validity, scorer
from opus_pipelines.flows.programs.search import METHODS, improve
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.workflow.blocks.formats.core_flow import flow_program, program_flow
from opus_pipelines.workflow.blocks.formats.core_program import CoreProgram, CoreStep, findings, parse_core, write_core

SELECT, HELD_OUT = planning_set.split(tasks())


def harness(reward: object = plan_score, part: Sequence[PlanningTask] = SELECT, calls: int | None = None) -> Harness:
    assert callable(reward)
    return Harness(part[:12] if part is SELECT else part, reward, ToolExecutor(toolbox()), "test", calls)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_every_draft_is_a_valid_program_that_a_flow_gives_back(seed: int) -> None:
    draft = random_draft(bank(), np.random.default_rng(seed))[:8]
    program = program_of(draft)
    assert findings(program) == []
    assert parse_core(write_core(program)) == program
    assert program_of(draft_of(program)) == program
    flow = program_flow(program)
    assert program_flow(flow_program(flow)) == flow


def test_a_program_of_another_form_cannot_be_edited() -> None:
    with pytest.raises(InputError):
        draft_of(parse_core("a ::: process ::: Look. ::: next :: e\ne ::: terminal ::: x :::"))


def test_the_split_is_by_task_and_the_optimum_of_every_task_is_one() -> None:
    ids = [{task.id for task in part} for part in (SELECT, HELD_OUT)]
    assert (len(SELECT), len(HELD_OUT), ids[0] & ids[1]) == (81, 82, set())
    assert {plan_score(task, task.needed) for task in tasks()} == {1.0}


@pytest.mark.parametrize(
    ("plan", "worth", "valid"),
    [
        (("image_denoising", "image_captioning", "translation"), 1.0, 1.0),
        (("image_captioning", "translation"), 0.25 + 0.75 * 4 / 5, 1.0),
        (("image_captioning", "image_denoising", "translation"), 0.0, 0.0),
        (("image_captioning", "sentiment_analysis"), 0.25 + 0.75 * 2 / 5, 1.0),
        (("translation", "image_captioning"), 0.0, 0.0),
        (("image_denoising",), 0.0, 0.0),
        ((), 0.0, 0.0),
        (("unknown",), 0.0, 0.0),
    ],
)
def test_the_score_of_a_plan(plan: tuple[str, ...], worth: float, valid: float) -> None:
    text = "Given a noisy image, how to return the caption in German step by step?"
    task = next(task for task in tasks() if task.text == text)
    assert plan_score(task, plan) == pytest.approx(worth)
    assert chain_validity(task, plan) == valid


def test_calls_are_counted_once_for_a_program_and_end_at_the_limit() -> None:
    own = harness(calls=2)
    first = own.score(program_of(MANUAL))
    assert own.score(program_of(MANUAL)) == first
    own.score(program_of(MANUAL[:1]))
    assert own.calls == 2
    with pytest.raises(BudgetSpent):
        own.score(program_of(MANUAL[:2]))


def test_an_invalid_program_has_its_reward_and_is_not_repaired() -> None:
    assert harness().score(CoreProgram((CoreStep("a", "process", "x"),))) == INVALID


def test_a_program_that_never_ends_is_scored_by_what_it_had() -> None:
    own = harness()
    endless = program_of((*MANUAL, Item("how to", "", 1)))
    assert 0.0 <= own.score(endless) <= 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.5, 1.5, True, "1"])
def test_a_reward_that_is_no_number_from_0_to_1_is_an_error(value: object) -> None:
    with pytest.raises(RewardError, match="test"):
        harness(lambda task, plan: value).score(program_of(MANUAL))


def test_a_constant_reward_teaches_nothing_and_is_told() -> None:
    found = improve("policy gradient", bank(), MANUAL, harness(lambda task, plan: 0.5, calls=60), 0)
    assert (found.has_signal, found.reward, found.valid_share) == (False, 0.5, 1.0)


def test_a_reward_that_is_not_known_is_named_with_the_known() -> None:
    with pytest.raises(RewardError, match="task_score, chain_validity"):
        scorer("beauty")


def test_a_search_without_a_limit_of_calls_is_refused() -> None:
    with pytest.raises(InputError, match="limit"):
        improve("random programs", bank(), MANUAL, harness(), 0)


@pytest.mark.parametrize("method", list(METHODS))
def test_a_method_never_ends_worse_and_is_repeatable(method: str) -> None:
    one = improve(method, bank(), MANUAL, harness(calls=60), 3)
    two = improve(method, bank(), MANUAL, harness(calls=60), 3)
    assert (one.best, one.reward) == (two.best, two.reward)
    assert one.reward >= one.begin
    assert one.curve()[-1] == (60, one.reward)


@pytest.mark.long
def test_the_held_out_half_selects_nothing(tmp_path: Path) -> None:
    plan = Plan(("random programs",), ("exact",), (0, 1), 20)
    done = experiment(program_of(MANUAL), plan)
    assert [row["calls"] for row in done.searches] == [20, 20]
    held_out = harness(part=HELD_OUT)
    assert [held_out.score(parse_core(row["after"])) for row in done.searches] == [
        row["best_report"] for row in done.searches
    ]
    (summary,) = summaries(done.searches)
    assert (summary.seeds, summary.valid_share, summary.low <= summary.mean <= summary.high) == (2, 1.0, True)
    lake = Lake(tmp_path / "lake")
    with lake.lock():
        publish_experiment(lake, done)
        publish_experiment(lake, done)
    assert len(run(connect(lake), "programs").fetchall()) == 1
    assert connect(lake).execute("SELECT count(*) > 4, max(call) FROM programs_curves").fetchall() == [(True, 20)]
    with pytest.raises(InputError):
        Plan(("guessing",))
