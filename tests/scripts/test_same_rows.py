"""Published rows before and after: what differs is named, what was renamed on purpose is not."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "same_rows.py"
TASKS: list[dict[str, Any]] = [
    {"task_id": "t1", "title": "Check claim", "kind": "step", "result": "r1", "ways": [{"who": "human", "n": 2}]},
    {"task_id": "t2", "title": "Pay claim", "kind": "event", "result": "r1", "ways": []},
]


@pytest.fixture(scope="module")
def same_rows() -> ModuleType:
    spec = importlib.util.spec_from_file_location("same_rows", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["same_rows"] = module
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPT.parent))  # as Python does for a script
        spec.loader.exec_module(module)
    return module


def write(same_rows: ModuleType, path: Path, **datasets: list[dict[str, Any]]) -> str:
    same_rows.write_digests(path, {name: pa.Table.from_pylist(rows) for name, rows in datasets.items()}, "0000000")
    return str(path)


def compare(same_rows: ModuleType, before: str, after: str, names: str = "") -> int:
    path = Path(after).with_suffix(".toml")
    path.write_text(names)
    status: int = same_rows.main(["compare", before, after, "--names", str(path)])
    return status


def test_order_and_version_columns_play_no_part(
    same_rows: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_tasks=TASKS)
    after = write(same_rows, tmp_path / "after.json", wkg_tasks=[row | {"result": "r2"} for row in reversed(TASKS)])
    assert compare(same_rows, before, after) == 0
    assert capsys.readouterr().out == "dataset    rows  result\nwkg_tasks     2  same\nOK: 1 datasets are the same\n"


def test_one_changed_cell_is_named_by_dataset_and_column(
    same_rows: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_tasks=TASKS, wkg_edges=[{"src": "t1", "gamma": 0.5}])
    after = write(
        same_rows,
        tmp_path / "after.json",
        wkg_tasks=[TASKS[0], TASKS[1] | {"title": "Pay"}],
        wkg_edges=[{"src": "t1", "gamma": 0.5}],
    )
    assert compare(same_rows, before, after) == 1
    assert capsys.readouterr().out.splitlines() == [
        "dataset    rows  result",
        "wkg_edges     1  same",
        "wkg_tasks     2  columns differ: title",
        '  wkg_tasks, for example  title: "Pay claim" -> "Pay"',
        "FAILED: 1 of 2 datasets differ",
    ]


def test_the_last_bit_of_a_float_is_a_difference(same_rows: ModuleType, tmp_path: Path) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_edges=[{"src": "t1", "gamma": 0.3}])
    after = write(same_rows, tmp_path / "after.json", wkg_edges=[{"src": "t1", "gamma": 0.1 + 0.2}])
    assert compare(same_rows, before, after) == 1


def test_values_that_changed_places_are_a_difference(
    same_rows: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_edges=[{"src": "t1", "n": 1}, {"src": "t2", "n": 2}])
    after = write(same_rows, tmp_path / "after.json", wkg_edges=[{"src": "t1", "n": 2}, {"src": "t2", "n": 1}])
    assert compare(same_rows, before, after) == 1
    assert "stand together in other rows" in capsys.readouterr().out


def test_rows_columns_and_datasets_that_came_or_went_are_differences(same_rows: ModuleType, tmp_path: Path) -> None:
    before = write(
        same_rows,
        tmp_path / "before.json",
        a=[{"x": 1}],
        b=[{"x": 1}],
        c=[{"x": 1}],
        d=[{"x": 1, "y": 1}],
        e=[{"x": 1}],
    )
    after = write(
        same_rows,
        tmp_path / "after.json",
        a=[{"x": 1}] * 2,
        b=[{"x": 1, "y": 1}],
        d=[{"x": 1}],
        e=[{"x": 1}],
        f=[{"x": 1}],
    )
    found = {d.dataset: (d.rows, d.result) for d in same_rows.compare(Path(before), Path(after), same_rows.NameMap())}
    assert found == {
        "a": ("1 -> 2", "number of rows; columns differ: x"),
        "b": ("1", "columns missing in BEFORE: y"),
        "c": ("1", "is missing in AFTER"),
        "d": ("1", "columns missing in AFTER: y"),
        "e": ("1", "same"),
        "f": ("1", "is missing in BEFORE"),
    }


RENAMED: list[dict[str, Any]] = [
    {"task_id": "t1", "name": "Check claim", "kind": "work", "result": "r1", "modes": [{"actor": "person", "n": 2}]},
    {"task_id": "t2", "name": "Pay claim", "kind": "event", "result": "r1", "modes": []},
]
MAP = """
[datasets]
wkg_tasks = "graph_nodes"
[columns]
"wkg_tasks.title" = "name"
"wkg_tasks.ways" = "modes"
"wkg_tasks.ways.who" = "actor"
[values."wkg_tasks.kind"]
step = "work"
[values."wkg_tasks.ways.who"]
human = "person"
"""


def test_renamed_datasets_columns_fields_and_values_are_mapped(same_rows: ModuleType, tmp_path: Path) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_tasks=TASKS)
    after = write(same_rows, tmp_path / "after.json", graph_nodes=RENAMED)
    assert compare(same_rows, before, after) == 1
    assert compare(same_rows, before, after, MAP) == 0


def test_a_changed_cell_and_a_word_left_over_show_behind_a_map(
    same_rows: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_tasks=TASKS)
    after = write(
        same_rows, tmp_path / "after.json", graph_nodes=[RENAMED[0] | {"kind": "step"}, RENAMED[1] | {"name": "Pay"}]
    )
    assert compare(same_rows, before, after, MAP) == 1
    assert "wkg_tasks     2  columns differ: kind, title" in capsys.readouterr().out


@pytest.mark.parametrize("has_rows", [True, False])
def test_a_column_that_went_on_purpose_is_left_out(same_rows: ModuleType, tmp_path: Path, has_rows: bool) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_edges=[{"src": "t1", "n": 1, "pagerank": 0.5}])
    after = write(same_rows, tmp_path / "after.json", wkg_edges=[{"src": "t1", "n": 1}])
    changed = write(same_rows, tmp_path / "changed.json", wkg_edges=[{"src": "t1", "n": 2}])
    if not has_rows:
        for file in (tmp_path / "before.rows").iterdir():
            file.unlink()
        (tmp_path / "before.rows").rmdir()
    assert compare(same_rows, before, after) == 1
    assert compare(same_rows, before, after, 'left_out = ["wkg_edges.pagerank"]') == 0
    assert compare(same_rows, before, changed, 'left_out = ["wkg_edges.pagerank"]') == 1


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ('[columns]\n"wkg_tasks.titel" = "name"', "names what neither side has: wkg_tasks.titel"),
        ('left_out = ["wkg_task"]', "names what neither side has: wkg_task"),
        ('[values."wkg_tasks.kind"]\nstep = "work"\nevent = "work"', "two former words became work"),
        ("[column]", "unknown keys ['column']"),
    ],
)
def test_a_mistaken_map_is_refused(
    same_rows: ModuleType, tmp_path: Path, names: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(same_rows, tmp_path / "before.json", wkg_tasks=TASKS)
    assert compare(same_rows, before, before, names) == 2
    assert said in capsys.readouterr().err


def test_a_lake_is_read_through_its_own_views(same_rows: ModuleType, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(pa.Table.from_pylist([{"src": "t1"}]), lake / "edges.parquet")
    (lake / "views.sql").write_text(
        f"SET VARIABLE lake = '{lake}';\nCREATE VIEW current_snapshot AS SELECT 'w1' AS snapshot;\n"
        "CREATE VIEW wkg_edges AS FROM read_parquet(getvariable('lake') || '/edges.parquet');\n"
    )
    assert same_rows.main(["write", str(tmp_path / "out.json"), "--lake", str(lake)]) == 0
    assert same_rows.read_rows(tmp_path / "out.json") == {"wkg_edges": {"src": ["t1"]}}


def test_a_folder_that_is_no_lake_is_refused(
    same_rows: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert same_rows.main(["write", str(tmp_path / "out.json"), "--lake", str(tmp_path)]) == 2
    assert "is not a lake" in capsys.readouterr().err


def test_the_order_of_actions_counts_and_that_of_predictions_does_not(same_rows: ModuleType, tmp_path: Path) -> None:
    lines = [
        '{"task_key": "a", "actions": ["x", "y"]}\n',
        '{"task_key": "b", "actions": []}\n',
        '{"task_key": "a", "actions": ["y", "x"]}\n',
    ]
    digests = []
    for number, order in enumerate([(0, 1), (1, 0), (2, 1)]):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(lines[i] for i in order))
        digests.append(same_rows.digests("sopbench_key", same_rows.rows_of(same_rows.read_predictions(path))))
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]
    assert digests[0]["rows"] == 2


def test_the_committed_map_is_read(same_rows: ModuleType) -> None:
    assert isinstance(same_rows.NameMap.read(same_rows.NAMES), same_rows.NameMap)
