"""wkg/tasks says of every task whether it is a step, an event or an outcome."""

from typing import Any

import pytest

from opus_pipelines.core.schemas import TASKS
from opus_pipelines.lake.layout import read_table
from opus_pipelines.wkg.graph import load

pytestmark = pytest.mark.long


def kinds(lake: Any, build: Any) -> dict[str, tuple[str, str]]:
    rows = read_table(TASKS, lake.snapshot_folder(build.snapshot_id) / "tasks").to_pylist()
    return {row["title"]: (row["activity_kind"], row["activity_kind_reason"]) for row in rows}


def test_kinds_are_published_and_a_person_overrules_them(lake: Any, rebuild: Any, history: Any) -> None:
    step, case = history.step, history.case
    approved = [case(i, [step("Submit"), step("Approve"), step("End trip")]) for i in range(3, 9)]
    a = history.write(
        lake, "a", [case(i, [step("Submit"), step("Claim rejected"), step("Submit")]) for i in range(3)] + approved
    )
    b = history.write(lake, "b", approved)
    first = rebuild(lake, a, b)
    assert {title: kind for title, (kind, _) in kinds(lake, first).items()} == {
        "Submit": "step",
        "Approve": "step",
        "Claim rejected": "outcome",
        "End trip": "event",
    }
    assert kinds(lake, first)["End trip"][1].endswith("('trip')")
    graph = load(lake.snapshot_folder(first.snapshot_id), 0.1)
    assert sorted(task.activity_kind for task in graph.tasks.values()) == ["event", "outcome", "step", "step"]

    b.stated = {"End trip": "step"}
    second = rebuild(lake, b, a)
    assert second.snapshot_id != first.snapshot_id
    assert second.mined == []  # the evidence is kept: a stated kind costs no mining
    assert kinds(lake, second) == kinds(lake, first) | {"End trip": ("step", "stated in source.toml")}
