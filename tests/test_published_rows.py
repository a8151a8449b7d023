"""What the comparison of published rows tells apart: with small figures in place of the sample's."""

import json
from typing import Any

import pytest

from opus_pipelines.core.schemas import DATASETS
from opus_pipelines.core.versions import ALGORITHM_VERSIONS
from tests.published_rows import FILE, NOT_HELD, differences, problem

ROWS = {"wkg/tasks: rows": [4], "wkg/tasks: p": [4, 2.0, 1.5], "wkg/tasks: title": [4, 4, "0123456789ab"]}


def recorded(**changed: Any) -> Any:
    return {stage: {"version": 1, "rows": ROWS} | changed.get(stage, {}) for stage in ALGORITHM_VERSIONS}


def found(**changed: Any) -> Any:
    return {stage: ROWS | changed.get(stage, {}) for stage in ALGORITHM_VERSIONS}


FIRST = dict.fromkeys(ALGORITHM_VERSIONS, 1)


def test_the_same_rows_at_the_same_versions_are_right() -> None:
    assert problem(recorded(), found(), "COMMAND", FIRST) is None


@pytest.mark.parametrize(
    ("column", "values", "is_other"),
    [
        ("wkg/tasks: p", [4, 2.0001, 1.5], False),  # another processor
        ("wkg/tasks: p", [4, 2.01, 1.5], True),
        ("wkg/tasks: p", [4, 2.0, 1.51], True),
        ("wkg/tasks: p", [3, 2.0, 1.5], True),
        ("wkg/tasks: title", [4, 4, "ba9876543210"], True),
        ("wkg/tasks: title", [4, 3, "0123456789ab"], True),
        ("wkg/tasks: rows", [5], True),
        ("wkg/tasks: new column", [4, 0.0, 0.0], True),
    ],
)
def test_columns_that_differ(column: str, values: list[Any], is_other: bool) -> None:
    assert [text.partition(" →")[0] for text in differences(ROWS, ROWS | {column: values})] == (
        [f"{column}: {ROWS.get(column)}"] if is_other else []
    )


def test_a_column_that_is_gone_differs() -> None:
    assert differences(ROWS, {name: values for name, values in ROWS.items() if name != "wkg/tasks: p"}) == [
        "wkg/tasks: p: [4, 2.0, 1.5] → None"
    ]


def test_other_rows_at_the_same_version_name_the_first_stage_and_what_to_do() -> None:
    more = {"wkg/tasks: rows": [5]}
    said = problem(recorded(), found(wkg=more, planning=more), "COMMAND", FIRST)
    assert said is not None
    assert said.startswith("wkg publishes other rows")
    assert "ALGORITHM_VERSIONS['wkg']" in said
    assert said.endswith("COMMAND")


def test_a_raised_version_needs_the_file_anew_and_explains_the_rows_of_the_stages_behind_it() -> None:
    raised = FIRST | {"wkg": 2}
    more = {"wkg/tasks: rows": [5]}
    for rows in (found(), found(wkg=more), found(wkg=more, planning=more)):
        said = problem(recorded(), rows, "COMMAND", raised)
        assert said is not None
        assert said.startswith("algorithm_versions.json ")
        assert said.endswith("(wkg): run COMMAND")
    said = problem(recorded(), found(history=more), "COMMAND", raised)
    assert said is not None
    assert said.startswith("history publishes other rows")


@pytest.mark.parametrize(
    ("stages", "named"),
    [
        ({k: v for k, v in recorded().items() if k != "wkg"}, "wkg"),
        (recorded() | {"former": {"version": 1, "rows": {}}}, "a stage is gone"),
    ],
)
def test_a_file_of_other_stages_must_be_written_anew(stages: dict[str, Any], named: str) -> None:
    said = problem(stages, found(), "COMMAND", FIRST)
    assert said is not None
    assert said.endswith(f"({named}): run COMMAND")


def test_every_dataset_is_held_by_a_stage_or_named_as_left_out() -> None:
    held = {name.partition(":")[0] for part in json.loads(FILE.read_text("utf-8")).values() for name in part["rows"]}
    assert set(DATASETS) - held == NOT_HELD
