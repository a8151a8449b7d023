"""The contracts that the five sources lack, and what planned work earns by the truth, with literal dollars."""

from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.quality.sample import write_sample
from opus_pipelines.quality.sample.cases import draw_cases
from opus_pipelines.quality.sample.earnings import earnings
from opus_pipelines.quality.sample.industries import read_industry
from opus_pipelines.quality.sample.reward_by_truth import PlannedStep, best_steps, earned_usd, found_task
from tests.quality.sample.conftest import Written
from tests.quality.sample.test_write import contents

WAY = {"actor_kind": "human", "model": None, "p": 0.9, "q": 0.2, "cost_usd_mean": 3.0}
TASK = {"nodes": [], "ways": [WAY], "p": 0.9, "q": 0.2, "cost_usd_mean": 3.0}
TRUTH: dict[str, Any] = {
    "industries": {
        "permits": {
            "tasks": [TASK | {"task": name} for name in ("Mark", "Measure", "Sign")],
            "kinds": [
                {
                    "kind": "extension",
                    "cases": 9,
                    "always": ["Mark", "Measure", "Sign"],
                    "needed": [{"task": "Sign", "damage": 0.75, "skipped": 0.0}],
                    "orders": [{"tasks": ["Mark", "Measure"], "swapped": 0.4, "damage": 0.5}],
                }
            ],
        }
    }
}


def step(title: str, start: float, finish: float, **more: Any) -> PlannedStep:
    return PlannedStep(title, ("human", None), start, finish, **more)


@pytest.mark.parametrize(
    ("steps", "dollars"),
    [
        # right: .9, then .9 * .9 + .2 * .1 = .83, then .781; 100 times that, less three times 3
        ([step("Mark", 0, 1), step("Measure", 1, 2), step("Sign", 2, 3)], 69.1),
        ([step("Measure", 0, 1), step("Mark", 1, 2), step("Sign", 2, 3)], 78.1 * 0.5 - 9),
        ([step("Mark", 0, 2), step("Measure", 1, 2), step("Sign", 2, 3)], 78.1 * 0.5 - 9),
        ([step("Measure", 0, 1), step("Sign", 2, 3)], 83 * 0.5 - 6),
        ([step("Mark", 0, 1), step("Measure", 1, 2)], 83 * 0.25 - 6),
        ([step("Mark", 0, 1), step("mark", 1, 2), step("Sign", 2, 3)], 69.1),
        # what the truth does not know has the figures of the plan: .781 + .5 * .219
        (
            [
                step("Mark", 0, 1),
                step("Measure", 1, 2),
                step("Sign", 2, 3),
                step("Review: Sign", 3, 4, is_review=True, q=0.5, cost_usd=2.0),
            ],
            89.05 - 11,
        ),
        ([], 100 * 0.25),
    ],
)
def test_planned_work_earns_what_the_truth_says(steps: list[PlannedStep], dollars: float) -> None:
    assert earned_usd(TRUTH, "permits", "extension", 100.0, steps) == pytest.approx(dollars)


def test_the_best_of_the_regular_steps_is_what_they_earn() -> None:
    steps, usd = best_steps(TRUTH, "permits", "extension", 100.0)
    assert [name for name, *_ in steps] == ["Mark", "Measure", "Sign"]
    assert usd == pytest.approx(69.1)


def test_an_unknown_way_of_a_known_task_is_refused() -> None:
    with pytest.raises(InputError, match="never done by code"):
        earned_usd(TRUTH, "permits", "extension", 100.0, [PlannedStep("Sign", ("code", None))])


def test_a_title_that_nobody_writes_so_is_the_only_task_with_its_verb_and_words() -> None:
    names = ("Check Receipts against Policy", "Check Tax", "Match Order", "Match Order Line")
    industry = {"tasks": [{"task": name, "nodes": []} for name in names]}
    asked = ("check receipt", "Match order", "Match purchase order", "Match", "Read receipt")
    found = [found_task(industry, title) for title in asked]
    assert [task and task["task"] for task in found] == [
        "Check Receipts against Policy", "Match Order", "Match Order", None, None,
    ]  # fmt: skip


def test_a_step_that_history_lacks_has_its_own_figures_where_the_truth_has_no_such_way_and_corrects_nothing() -> None:
    wrong = PlannedStep("Unknown", ("human", None), p=0.0)
    step = PlannedStep("Sign", ("code", None), p=0.5, q=0.9, cost_usd=3.0, is_estimated=True)
    alone, behind = (earned_usd(TRUTH, "permits", "extension", 100.0, steps) for steps in ([step], [wrong, step]))
    assert (alone, behind) == (pytest.approx(100 * 0.5 - 3.0), pytest.approx(-3.0))


def test_the_second_step_before_the_first_damages_as_often_as_the_truth_says() -> None:
    permits = read_industry("permits")
    cases = draw_cases(0, permits.industry, "Building Permits", permits.kinds["permits"][0])
    known = [case for case in cases if case.success is not None and case.performed[-1].right]
    swapped = [
        case
        for case in known
        if (done := [s.task.name for s in case.performed]).index("Measure Setback") < done.index("Mark Boundary")
    ]
    right = [case for case in known if case not in swapped]
    assert len(swapped) / len(known) == pytest.approx(0.4, abs=0.12)
    assert sum(bool(case.success) for case in swapped) / len(swapped) == pytest.approx(0.3, abs=0.15)
    assert all(case.success for case in right)


@pytest.mark.long
def test_the_harder_contracts_are_written_beside_files_that_stay_as_they_are(written: Written, tmp_path: Path) -> None:
    summary = write_sample(tmp_path, harder=True)
    assert (summary.clients, summary.industries, summary.contracts, summary.sources, summary.intakes) == (
        8,
        6,
        10,
        7,
        39,
    )
    before, after = contents(written.folder), contents(tmp_path)
    assert [name for name in before if after[name] != before[name]] == ["truth.json"]
    log = etree.parse(str(tmp_path / "history" / "eastmere_permits" / "permits.xes")).getroot()
    last = [list(trace.iter("{*}event"))[-1] for trace in log.iter("{*}trace")]
    ended = [event.find('{*}string[@key="concept:name"]').get("value") == "Issue Permit" for event in last]
    told = [trace.find('{*}string[@key="outcome"]') is not None for trace in log.iter("{*}trace")]
    assert 3 <= ended.count(False) <= 20
    assert not any(outcome and not end for outcome, end in zip(told, ended, strict=True))


def test_a_file_that_is_no_truth_is_refused(tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text('{"contracts": []}')
    with pytest.raises(InputError, match=r"truth\.json"):
        earnings(None, tmp_path / "truth.json")  # type: ignore[arg-type]
