"""Published workflows improved by Reward: rows with before and after, what is said of them, and what is forgotten."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Cost, Paths, Reward, Settings
from opus_pipelines.flows.programs.contract_improvement import (
    Budget,
    Improvement,
    Row,
    improve_contract,
    improved_row,
    publish_improvement,
)
from opus_pipelines.generation.search.plan_states import PlanSpace, PlanState
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.plan_shape import OrderFacts
from opus_pipelines.reporting.explain_reasons import improvement_lines
from opus_pipelines.reporting.views import connect, run
from opus_pipelines.wkg.upkeep.client_traces import clients_of
from opus_pipelines.wkg.upkeep.program_traces import remove_program_runs
from opus_pipelines.wkg.upkeep.verify import verify
from opus_pipelines.workflow.blocks.formats.core_text import parse
from opus_pipelines.workflow.model import InputNode, OutputNode, TaskNode
from opus_pipelines.workflow.task_order import INPUT, OUTPUT, TaskOrder


def mode(task: str, p: float, cost: float, kind: str) -> TaskNode:
    return TaskNode(task, task, task.upper(), p=p, q=0.0, cost_usd=cost, actor_kind=kind)


@pytest.fixture
def space() -> PlanSpace:
    return PlanSpace(
        (InputNode(INPUT, "in"), OutputNode(OUTPUT, "out", 100.0)),
        {task: (mode(task, 0.7, 1.0, "code"), mode(task, 0.99, 4.0, "human")) for task in ("a", "b")},
        OrderFacts(lambda pair: (1.0, 0.0), {}, {}, frozenset()),
        Cost(),
        Reward(),
    )


def improved(space: PlanSpace, picks: dict[str, int], start: str = "published") -> Row:
    return improved_row(space, PlanState(TaskOrder.chain(("a", "b")), picks), start, Budget(30))


def test_a_row_has_the_plan_before_and_after_with_the_edits_between(space: PlanSpace) -> None:
    row = improved(space, {})
    assert row["reward_before_usd"] == pytest.approx(100 * 0.7**2 - 2)
    assert row["reward_after_usd"] == pytest.approx(100 * 0.99**2 - 8)
    assert sorted(row["edits"]) == ["'A': human instead of code", "'B': human instead of code"]
    assert (row["is_better"], row["keeps_limits_after"]) == (True, True)
    assert [step.instruction for step in parse(row["after"]).steps] == [
        "A, by human",
        "B, by human",
        "Hand the result over.",
    ]


def test_the_best_plan_is_left_as_it_is(space: PlanSpace) -> None:
    row = improved(space, {"a": 1, "b": 1})
    assert (row["is_better"], row["edits"], row["before"]) == (False, [], row["after"])
    (line,) = improvement_lines([row])[1:]
    assert "Reward $90.01" in line


def test_what_was_found_is_told_with_the_edits(space: PlanSpace) -> None:
    assert improvement_lines([]) == []
    lines = improvement_lines([improved(space, {}, "history")])
    assert "Reward $47.00 to Reward $90.01" in lines[1]
    assert len(lines) == 4


@pytest.fixture
def lake(space: PlanSpace, tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    for number, client in enumerate(("Acme", "Bolt")):
        head = {"improvement": f"v{number}", "client": client, "contract": "Retail", "result": "r", "rank": 1}
        rows = [head | {"workflow_id": "f1"} | improved(space, {}, start) for start in ("published", "history")]
        with lake.lock():
            publish_improvement(lake, Improvement(f"v{number}", rows, []))
            publish_improvement(lake, Improvement(f"v{number}", rows, []))
    return lake


def test_rows_are_published_once_and_a_shipped_query_reads_them(lake: Lake) -> None:
    rows = run(connect(lake), "program_improvements").fetchall()
    assert [(row[0], row[4]) for row in rows] == [(c, s) for c in ("Acme", "Bolt") for s in ("history", "published")]
    assert verify(lake).damage == []


def test_the_improvements_for_a_client_are_forgotten(lake: Lake) -> None:
    assert clients_of(lake) == {"Acme", "Bolt"}
    assert remove_program_runs(lake, "Acme", []) == 1
    assert clients_of(lake) == {"Bolt"}


def test_a_contract_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "intakes").mkdir()
    settings = Settings(paths=Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes"))
    with pytest.raises(InputError, match="Acme / Retail"):
        improve_contract(Lake(tmp_path / "lake"), settings, ("Acme", "Retail"), Budget())
