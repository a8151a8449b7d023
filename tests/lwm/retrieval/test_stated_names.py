"""Names that a person states and that history does not know are errors with the nearest known ones."""

import re
from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.intakes.contract_settings import ContractSettings, prices
from opus_pipelines.lwm.retrieval.task_names import (
    TaskNames,
    refuse_misspelt_tasks,
    refuse_unknown_prices,
    unknown_demands,
)
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.workflow.constraints import Constraints

WAYS = (
    ExecutionMode("human", None, "SUPERVISOR", implementations=9),
    ExecutionMode("model", "small-llm", implementations=2),
)
GRAPH = WorkGraph.of(
    [Task("t1", "Approve declaration", execution_modes=WAYS), Task("t2", "Pay"), Task("t3", "Payment handled")], []
)
NAMES = TaskNames(GRAPH, [{"title": "Zahlung", "task_key": "zahlen", "task_id": "t2"}])
TITLES = [task.title for task in GRAPH.tasks.values()]


@pytest.mark.parametrize(
    "constraints",
    [
        {},
        {"must_contain": ["PAY"]},
        {"must_not_contain": ["zahlung", "approve  declaration"]},
        {"before": [["zahlen", "Payment handled"]]},
        {"must_contain": ["Greet the guest"]},  # a step that the procedure alone has
    ],
)
def test_known_names_pass(constraints: dict[str, Any]) -> None:
    stated = Constraints(**constraints)
    refuse_misspelt_tasks(stated, NAMES, TITLES, ["Greet the Guest"])
    assert unknown_demands(stated, NAMES, TITLES, ["Greet the Guest"]) is None


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        (
            {"must_not_contain": ["Aprove declaration"]},
            "must_not_contain names 'Aprove declaration'.* the nearest: 'Approve declaration'",
        ),
        ({"before": [["Pay", "Payment handeled"]]}, "before names 'Payment handeled', .* nearest: 'Payment handled'"),
    ],
)
def test_a_misspelt_task_is_an_error_with_the_nearest_names(constraints: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        refuse_misspelt_tasks(Constraints(**constraints), NAMES, TITLES)


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"must_contain": ["Handle payment"]}, "must_contain demands 'Handle payment'.*nearest: 'Payment handled'"),
        ({"one_of": [["Frobnicate", "Weld"]]}, "one_of demands 'Frobnicate' or 'Weld'.*none of them near"),
        ({"exactly_one_of": [["Frobnicate", "Weld"]]}, "exactly_one_of demands 'Frobnicate' or 'Weld'"),
        ({"one_of": [["Frobnicate", "Pay"]]}, None),
        ({"must_not_contain": ["Frobnicate"]}, None),
        ({"before": [["Pay", "Frobnicate"]]}, None),
        ({"deadlines": [{"step": "Frobnicate", "within": 2}]}, None),
    ],
)
def test_only_a_demand_for_an_unknown_task_cannot_be_met(constraints: dict[str, Any], said: str | None) -> None:
    stated = Constraints(**constraints)
    refuse_misspelt_tasks(stated, NAMES, TITLES)  # none of these names is spelt nearly like a known one

    reason = unknown_demands(stated, NAMES, TITLES)

    assert reason is None if said is None else re.search(said, str(reason))


def of_contract(**stated: Any) -> Cost:
    from pathlib import Path

    return prices(Settings(), ContractSettings(prices=stated), Path("c"))


@pytest.mark.parametrize(
    "stated",
    [
        {"SUPERVISOR": 60},
        {"usd_per_hour": {"supervisor": 60.0}},
        {"usd_per_hour": {"human": 30}, "SUPERVISOR": 60.0},
    ],
)
def test_a_price_by_role_is_used(stated: dict[str, Any]) -> None:
    cost = of_contract(**stated)
    refuse_unknown_prices(cost, GRAPH)
    assert {name.upper(): usd for name, usd in cost.usd_per_hour.items()}["SUPERVISOR"] == 60.0


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"SUPERVISER": 60}, "usd_per_hour states 'SUPERVISER', which is no actor kind .*the nearest: 'SUPERVISOR'"),
        (
            {"usd_per_hour": {"Ann": 60}},
            "usd_per_hour states 'Ann'.*the price of one person belongs in [rates] of the source's source.toml",
        ),
        ({"default_cost_usd": {"small-lm": 1}}, "default_cost_usd states 'small-lm'.*the nearest: 'small-llm'"),
    ],
)
def test_a_price_of_nobody_in_history_is_an_error_with_the_nearest_names(stated: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("[rates]", re.escape("[rates]"))):
        refuse_unknown_prices(of_contract(**stated), GRAPH)


def test_a_misspelt_key_is_no_price() -> None:
    with pytest.raises(SettingsError, match="did you mean usd_per_hour"):
        of_contract(usd_per_huor=3)
