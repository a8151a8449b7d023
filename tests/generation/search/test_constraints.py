"""Which constraint a workflow breaks, and by how much."""

from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.generation.search.constraints import Constraints, DeadlineCheck, TimeChecks, violations
from opus_pipelines.workflow.constraints import StepDeadline
from opus_pipelines.workflow.evaluation.lead_time import LeadTime
from opus_pipelines.workflow.evaluation.reward import evaluate
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode, Workflow

TITLES = ["Register claim", "Check Policy", "Pay", "Check policy"]


def evaluation(cost: float = 14.2, ms: float = 7_200_000.0, p: float = 0.9) -> Any:
    task = TaskNode("t", "t", "T", p=p, cost_usd=cost, duration_ms=ms)
    return evaluate(
        Workflow.of([InputNode("i", "I"), task, OutputNode("o", "O", 1.0)], [("i", "t"), ("t", "o")]), Cost(), Reward()
    )


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ({"max_cost_usd": 12}, ["max_cost_usd: 14.20 exceeds 12.00 by 2.20"]),
        ({"max_cost_usd": 14.2}, []),
        ({"max_cost_usd": 14.1995}, ["max_cost_usd: 14.20000 exceeds 14.19950 by 0.00050"]),
        ({"max_cost_usd": 14.199999999999998}, []),
        ({"max_duration_hours": 0.5}, ["max_duration_hours: touch time of 2.00 exceeds 0.50 by 1.50"]),
        ({"min_success": 0.95}, ["min_success: 0.900 is below 0.950 by 0.050"]),
        ({"min_success": 0.9}, []),
        ({"must_contain": ["check_policy", "PAY"]}, []),
        ({"must_contain": ["Audit"]}, ["must_contain: 'Audit' is missing"]),
        ({"must_not_contain": ["check-policy", "Audit"]}, ["must_not_contain: 'check-policy' is task 2"]),
        ({"before": [["register claim", "pay"], ["pay", "audit"], ["audit", "pay"]]}, []),
        ({"before": [["Pay", "Check policy"]]}, ["before: 'Pay' is task 3, 'Check policy' comes earlier as task 2"]),
        ({"one_of": [["Pay", "Audit"]], "exactly_one_of": [["Pay", "Audit"]]}, []),
        ({"one_of": [["Call", "Audit"]]}, ["one_of: neither 'Call' or 'Audit' is there"]),
        (
            {"exactly_one_of": [["Call", "Audit", "Ask"]]},
            ["exactly_one_of: none of 'Call' or 'Audit' or 'Ask' is there"],
        ),
        (
            {"exactly_one_of": [["Pay", "check policy"]]},
            ["exactly_one_of: 'Pay' and 'check policy' are there, and only one of 'Pay' or 'check policy' may be"],
        ),
        (
            {"max_cost_usd": 12, "must_contain": ["Audit"]},
            ["max_cost_usd: 14.20 exceeds 12.00 by 2.20", "must_contain: 'Audit' is missing"],
        ),
    ],
)
def test_violations(constraints: dict[str, Any], expected: list[Any]) -> None:
    assert violations(Constraints.model_validate(constraints), evaluation(), TITLES) == expected


HOUR = 3.6e6
LATE = "max_lead_time_hours: the lead time, waiting included, keeps"
DRAWN = " (estimated from the times of the single steps: waiting and work)"


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        # lead times of 1 to 100 hours: 72 of 100 are at most 72 hours
        (
            {"max_lead_time_hours": 72},
            [f"{LATE} 72 hours with probability 0.720, which is below 0.9; its 90th percentile is 90.10 hours"],
        ),
        ({"max_lead_time_hours": 72, "min_p_deadline": 0.7}, []),
        ({"max_lead_time_hours": 90}, []),
        (
            {"max_lead_time_hours": 96, "min_p_deadline": 0.97},
            [f"{LATE} 96 hours with probability 0.960, which is below 0.97; its 90th percentile is 90.10 hours"],
        ),
        ({"max_duration_hours": 2}, []),  # touch time: waiting is not in it
        ({}, []),
    ],
)
def test_a_deadline_is_held_against_the_lead_time(constraints: dict[str, Any], expected: list[Any]) -> None:
    lead_time = LeadTime("waiting and work", np.arange(1, 101) * HOUR)
    broken = violations(Constraints.model_validate(constraints), evaluation(), TITLES, times=TimeChecks(lead_time))
    assert [line.replace(DRAWN, "") for line in broken] == expected
    assert [DRAWN in line for line in broken] == [True] * len(expected)


def test_a_deadline_that_cannot_be_told_is_not_called_kept() -> None:
    unknown = LeadTime("unknown: no time of 'Pay'")
    (line,) = violations(Constraints(max_lead_time_hours=72), evaluation(), TITLES, times=TimeChecks(unknown))
    assert line.startswith("max_lead_time_hours: whether 72 hours ")
    assert line.endswith(" no time of 'Pay'")


def test_a_name_stands_for_its_aliases() -> None:
    aliases = {"Payout": ["pay", "settle"]}
    constraints = Constraints(must_contain=("Payout",), must_not_contain=("Payout",))
    assert violations(constraints, evaluation(), TITLES, lambda name: aliases.get(name, ())) == [
        "must_not_contain: 'Payout' is task 3"
    ]


@pytest.mark.parametrize(
    ("hours", "least", "expected"),
    [
        ([10.0] * 9 + [60.0], None, []),
        (
            [10.0] * 8 + [60.0] * 2,
            None,
            ["deadlines: 'Pay' within 2 days of the start: kept with probability 0.800, which is below 0.9"],
        ),
        ([10.0] * 8 + [60.0] * 2, 0.8, []),
    ],
)
def test_a_deadline_of_a_step_is_held_against_the_time_up_to_it(
    hours: list[float], least: float | None, expected: list[Any]
) -> None:
    deadline = StepDeadline(step="Pay", within=2, unit="days")
    due = DeadlineCheck(deadline, LeadTime("waiting and work", np.array(hours) * 3.6e6), 48.0)
    constraints = Constraints(deadlines=(deadline,), min_p_deadline=least)
    broken = violations(constraints, evaluation(), TITLES, times=TimeChecks(deadlines=[due]))
    assert [line.replace(DRAWN, "") for line in broken] == expected


def test_a_deadline_of_which_nobody_can_tell_whether_it_is_kept_is_not_applied_and_says_why() -> None:
    due = DeadlineCheck(
        StepDeadline(step="Pay", within=1, unit="working_days", after="Ask"),
        LeadTime("unknown: no time of 'Check'"),
        33.6,
    )
    assert (
        violations(Constraints(deadlines=(due.deadline,)), evaluation(), TITLES, times=TimeChecks(deadlines=[due]))
        == []
    )
    assert "rule not applied" in due.text
    assert due.text.endswith(" no time of 'Check'")
