"""Each check of a result fails on tables that break its rule."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from assets.checks import RESULT_MEANINGS
from opus_pipelines.core.schemas import (
    COST_REPORT,
    INTAKES,
    OPTIMIZED,
    RESULT_TABLES,
    REWARD_REPORT,
    RUNS,
    WORKFLOW_EDGES,
    WORKFLOW_TASKS,
)
from opus_pipelines.generation.results.contract import (
    ContractResult,
    check_result,
    left_out_lines,
    result_table,
)
from opus_pipelines.lake.layout import table_of

ROWS: dict[str, list[dict[str, Any]]] = {
    INTAKES.name: [{"intake_id": "k1", "folder": "one", "status": "generated"}],
    OPTIMIZED.name: [{"intake_id": "k1", "intention_id": "i1", "workflow_id": "f1", "rank": 1}],
    WORKFLOW_TASKS.name: [{"workflow_id": "f1", "node": node} for node in ("a", "b")],
    WORKFLOW_EDGES.name: [{"workflow_id": "f1", "src": "a", "dst": "b"}],
}


def result(**rows: list[dict[str, Any]]) -> ContractResult:
    """A sound result, with other rows for some datasets."""
    made = ContractResult("Acme", "Retail", "r1", "w1", "m", {})
    given = ROWS | {name.replace("__", "/"): found for name, found in rows.items()}
    tables = (*RESULT_TABLES, RUNS, COST_REPORT, REWARD_REPORT)
    made.tables = {d.name: result_table(made, d, given.get(d.name, [])) for d in tables}
    return made


def failed(made: ContractResult, intakes: int = 1) -> list[tuple[str, str]]:
    return [(one.name, one.dataset) for one in check_result(made, intakes) if not one.passed]


def without_a_column(made: ContractResult) -> ContractResult:
    made.tables[RUNS.name] = made.tables[RUNS.name].drop_columns(["run_id"])
    return made


def above_one(made: ContractResult) -> ContractResult:
    column = next(c.name for c in OPTIMIZED.columns if c.type_name == "prob")
    table = made.tables[OPTIMIZED.name]
    values = pa.array([1.5], table.schema.field(column).type)
    made.tables[OPTIMIZED.name] = table.set_column(table.schema.get_field_index(column), column, values)
    return made


def test_a_sound_result_passes() -> None:
    assert failed(result()) == []


BROKEN: dict[str, tuple[Callable[[], ContractResult], str]] = {
    "schema": (lambda: without_a_column(result()), RUNS.name),
    "probabilities": (lambda: above_one(result()), OPTIMIZED.name),
    "ranks_without_gaps": (
        lambda: result(workflows__optimized=[ROWS[OPTIMIZED.name][0] | {"rank": rank} for rank in (1, 3)]),
        OPTIMIZED.name,
    ),
    "ends_are_nodes": (
        lambda: result(workflows__edges=[{"workflow_id": "f1", "src": "a", "dst": "c"}]),
        WORKFLOW_EDGES.name,
    ),
    "every_intake_has_a_row": (lambda: result(generation__intakes=[]), INTAKES.name),
}


@pytest.mark.parametrize("check", sorted(RESULT_MEANINGS))
def test_a_broken_result_fails_the_check_of_its_rule(check: str) -> None:
    made, dataset = BROKEN[check][0](), BROKEN[check][1]
    assert failed(made) == [(check, dataset)]


def test_a_document_of_the_contract_that_was_left_out_is_named_once() -> None:
    of_contract = {"role": "contract", "name": "rules.pdf", "left_out": "it is too long"}
    own = {"role": "input", "name": "letter.txt", "left_out": "it is empty"}
    rows = [{"folder": "a", "elements": [of_contract, own]}, {"folder": "b", "elements": [of_contract, {"name": "x"}]}]
    made = ContractResult("Acme", "Retail", "r1", "w1", "m", {INTAKES.name: table_of(INTAKES, rows)})
    assert left_out_lines(made) == ["contract/rules.pdf: it is too long", "a/input/letter.txt: it is empty"]
