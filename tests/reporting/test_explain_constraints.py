from typing import Any

import pytest

from opus_pipelines.reporting.explain import constraint_lines

STATED = {
    "kind": "max_cost_usd",
    "value": "96",
    "sentence": None,
    "element_id": None,
    "place": "contract.toml or intake.toml",
    "effect": "in force",
    "status": "in force",
    "asks": None,
    "nearest": None,
}
READ = STATED | {
    "kind": "must_contain",
    "value": "Audit",
    "sentence": "The audit is not\x1b[2J to be left out.",
    "place": "process/a.md, line 4",
}
IDLE = READ | {
    "value": "refunds approved",
    "effect": "no step of the catalogue is surely meant by 'refunds approved'",
    "status": "not applied",
    "asks": "refunds approved",
    "nearest": ["Approve Settlement", "Issue Payment", "Check Fraud"],
}
OTHER = IDLE | {
    "effect": "it is about 'theft', which this intake does not mention",
    "status": "other cases",
    "asks": None,
    "nearest": None,
}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            {"demands": [STATED, READ, IDLE, OTHER], "feasible": True},
            [
                "Constraints",
                "    max_cost_usd: 96 (contract.toml or intake.toml)",
                "    must_contain: Audit (process/a.md, line 4)",
                "      “The audit is not [2J to be left out.”",
                "  read and not applied:",
                "    must_contain: refunds approved (process/a.md, line 4)",
                "      “The audit is not [2J to be left out.”",
                "      no step of the catalogue is surely meant by 'refunds approved'",
                "      which activity is meant? the nearest: Approve Settlement; Issue Payment; Check Fraud",
                '      answer in contract.toml: [answers] "refunds approved" = "ACTIVITY", or "none"',
                "  read, about other cases:",
                "    must_contain: refunds approved (process/a.md, line 4)",
                "      “The audit is not [2J to be left out.”",
                "      it is about 'theft', which this intake does not mention",
                "  all are met",
            ],
        ),
        ({"demands": None, "feasible": True}, ["Constraints", "  none stated", "  all are met"]),
        (
            {"demands": [], "feasible": False, "violations": ["needed: 'Pay' is left out"]},
            ["Constraints", "  none stated", "  violated: needed: 'Pay' is left out"],
        ),
    ],
)
def test_each_constraint_is_shown_with_its_sentence_and_what_has_no_effect_with_the_reason(row: Any, text: Any) -> None:
    assert constraint_lines({"constraints": "{}", "cost_unknown_steps": 0, "duration_unknown_steps": 0} | row) == text


def test_a_limit_beside_unknown_costs_says_what_it_is_held_against() -> None:
    row = {
        "constraints": "{}",
        "demands": [STATED],
        "feasible": True,
        "cost_unknown_steps": 2,
        "duration_unknown_steps": 3,
    }
    unknown, met = constraint_lines(row)[2:]
    assert unknown.startswith("  max_cost_usd ")
    assert unknown.endswith(": 2 steps unknown")
    assert met == "  all are met"
