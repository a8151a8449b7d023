"""The constraints tables of contract and intake."""

from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import parse
from opus_pipelines.workflow.constraints import Constraints, folded, merged


def test_an_intakes_own_value_wins_and_only_where_it_says_something() -> None:
    contract = Constraints(max_cost_usd=12, must_contain=("Check",), min_success=0.9)
    intake = parse(Constraints, {"max_cost_usd": 5, "must_contain": []}, "intake.toml")
    assert merged(contract, intake) == Constraints(max_cost_usd=5, must_contain=(), min_success=0.9)
    assert merged(contract, Constraints()) == contract


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"max_costs_usd": 1}, "did you mean max_cost_usd"),
        ({"max_cost_usd": -1}, "max_cost_usd"),
        ({"max_cost_usd": float("nan")}, "max_cost_usd"),
        ({"min_success": 1.2}, "min_success"),
        ({"before": [["a"]]}, "before"),
        ({"must_contain": [""]}, "must_contain"),
    ],
)
def test_what_cannot_be_followed_is_refused(table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        parse(Constraints, table, "contract.toml")


@pytest.mark.parametrize("title", ["Check_policy", "check-policy", "CHECK  Policy.", "(check) policy", "Ｃheck policy"])
def test_titles_fold(title: str) -> None:
    assert folded(title) == "check policy"


def test_titles_of_other_scripts_stay_apart() -> None:
    assert folded("Prüfung A") == "prüfung a"
    assert folded("检查") != folded("批准")
