"""Each check of a rebuild fails on input that breaks its rule: it stands red, and nothing is published."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from assets.checks import EMBEDDED_CHECKS, HISTORY_CHECKS, MINED_CHECKS
from assets.specs import key
from opus_pipelines.cli.runs import failure_of
from opus_pipelines.core.schemas import DATASETS, IMPLEMENTATIONS, SOURCES
from opus_pipelines.core.settings import Checks, Paths, Settings
from opus_pipelines.lake import file_lists
from opus_pipelines.lake.atomic_files import read_json, read_json_value, write_json
from opus_pipelines.lake.layout import PART, Lake, write_table
from opus_pipelines.wkg.checks import COUNTED, ORDER, QUANTILE_COLUMNS, REASONS
from opus_pipelines.wkg.estimates.figures import NOT_COMPUTED
from tests.nightly_jobs import run, write_history

pytestmark = pytest.mark.long
CHECKED = sorted({spec.name for spec in (*MINED_CHECKS, *EMBEDDED_CHECKS)})


def set_first(table: pa.Table, column: str, value: Any) -> pa.Table:
    """The table with another value in the first row of a column."""
    place = table.schema.get_field_index(column)
    values = [value, *table[column].to_pylist()[1:]]
    return table.set_column(place, table.schema.field(column), pa.array(values, table.schema.field(column).type))


def other_task(name: str, table: pa.Table) -> pa.Table:
    column = next(c for c in ("src", "task_id", "tasks") if c in table.column_names)
    return set_first(table, column, ["t_nowhere"] if column == "tasks" else "t_nowhere")


def infinite(name: str, table: pa.Table) -> pa.Table:
    column = next(f.name for f in table.schema if pa.types.is_float64(f.type))
    return set_first(table, column, float("inf"))


def unordered(name: str, table: pa.Table) -> pa.Table:
    low, high = ORDER[DATASETS[name]][0][:2]
    return set_first(set_first(table, low, 5), high, 1)


def falling(name: str, table: pa.Table) -> pa.Table:
    return set_first(table, QUANTILE_COLUMNS[DATASETS[name]], [3.0, 1.0])


def unexplained(name: str, table: pa.Table) -> pa.Table:
    figure, columns = next(iter(REASONS[DATASETS[name]].items()))
    return set_first(set_first(table, columns[0], None), f"{figure}_reason", None)


def untold(name: str, table: pa.Table) -> pa.Table:
    return set_first(table, f"{next(iter(REASONS[DATASETS[name]]))}_reason", NOT_COMPUTED)


def improbable(name: str, table: pa.Table) -> pa.Table:
    column = next(c.name for c in DATASETS[name].columns if c.type_name == "prob")
    return set_first(table, column, 1.5)


def one_more(column: str, by: int = 1_000) -> Callable[[str, pa.Table], pa.Table]:
    return lambda name, table: set_first(table, column, (table[column][0].as_py() or 0) + by)


BREAKS: dict[str, Callable[[str, pa.Table], pa.Table]] = {
    "schema": lambda name, table: table.drop_columns([table.column_names[-1]]),
    "keys_are_unique": lambda name, table: pa.concat_tables([table, table.slice(0, 1)]),
    "every_task_exists": other_task,
    "no_two_clients_look_alike": lambda name, table: set_first(table, "clients", ["Acme", "ACME "]),
    "every_task_has_a_name_in_history": lambda name, table: set_first(table, "task_id", "t_nameless"),
    "probabilities_lie_in_0_1": improbable,
    "figures_are_finite": infinite,
    "intervals_hold_their_figures": unordered,
    "quantiles_never_fall": falling,
    "no_figure_is_missing": lambda name, table: set_first(table, COUNTED[DATASETS[name]][2], None),
    "missing_figures_have_a_reason": unexplained,
    "every_figure_could_be_told": untold,
    "task_implementations_add_up_to_the_cases": one_more("implementations"),
    "ways_add_up_to_the_cases": one_more("implementations"),
    "variants_add_up_to_the_cases": one_more("implementations"),
    "no_edge_has_more_implementations_than_transitions": one_more("implementations"),
    "probabilities_out_of_a_task_add_up_to_1": lambda name, table: set_first(table, "probability", 0.25),
    "successes_are_among_the_cases": one_more("success_with"),
    "every_task_has_a_vector": lambda name, table: table.slice(1),
}
IN_THE_LAST_SNAPSHOT = {  # what the snapshot before must have been for the drift to be too large
    "drift_of_tasks": ("wkg/tasks", lambda table: table.slice(2)),
    "no_industry_or_source_vanished": ("wkg/tasks", lambda table: set_first(table, "sources", ["gone"])),
    "drift_of_edges": ("wkg/edges", lambda table: table.slice(1)),
    "drift_of_transition_shares": ("wkg/edges", lambda table: set_first(table, "probability", 0.01)),
}
WARNS = {"every_figure_could_be_told", "no_two_clients_look_alike"}  # they block nothing
LAX, STRICT = Checks(drift="off"), Checks(drift="block", drift_tasks=0.0, drift_edges=0.0, drift_transitions=0.0)


def settings_of(root: Path, checks: Checks = LAX) -> Settings:
    paths = Paths(lake=root / "lake", history=root / "history", intakes=root / "intakes")
    return Settings(paths=paths, checks=checks)


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, instance: dg.DagsterInstance) -> Path:
    """A lake with a snapshot, and a second one that is staged whole."""
    root = tmp_path_factory.mktemp("ready")
    write_history(root / "history", 8)
    assert run(settings_of(root), instance).success
    write_history(root / "history", 12)
    names = ["history/sources", "wkg/tasks", "wkg/embeddings", "wkg/procedures", "wkg/implementation_vectors"]
    for name in names:
        assert run(settings_of(root), instance, [name]).success
    return root


@pytest.fixture
def night(ready: Path, tmp_path: Path) -> Path:
    shutil.copytree(ready, tmp_path / "night")
    return tmp_path / "night"


def staged_file(root: Path, name: str) -> Path:
    (file,) = (root / "lake" / ".staged").glob(f"w*/tables/{name.removeprefix('wkg/')}/{PART}")
    return file


def red(result: dg.ExecuteInProcessResult) -> dict[str, set[str]]:
    """The assets of each failed check; each says what was wrong."""
    failed = [one for one in result.get_asset_check_evaluations() if not one.passed]
    assert all(one.description for one in failed)
    names = {one.check_name for one in failed}
    return {n: {one.asset_key.to_user_string() for one in failed if one.check_name == n} for n in names}


def with_a_row(table: pa.Table) -> pa.Table:
    """The table, with a row where history gave it none."""
    if table.num_rows:
        return table
    row: dict[str, Any] = {}
    for field in table.schema:
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            row[field.name] = 0
        elif pa.types.is_fixed_size_list(field.type):
            row[field.name] = [0.0] * field.type.list_size
    return pa.Table.from_pylist([row], schema=table.schema)


@pytest.mark.parametrize("check", [name for name in CHECKED if name in BREAKS])
def test_a_broken_table_turns_its_check_red_and_is_not_published(
    night: Path, instance: dg.DagsterInstance, check: str
) -> None:
    settings = settings_of(night)
    before = Lake(settings.paths.lake).current_snapshot()
    datasets = {spec.asset_key.to_user_string() for spec in (*MINED_CHECKS, *EMBEDDED_CHECKS) if spec.name == check}
    for name in datasets:
        file = staged_file(night, name)
        pq.write_table(BREAKS[check](name, with_a_row(pq.ParquetFile(file).read())), file)
    for record in (night / "lake" / ".staged").glob("w*/*_checks.json"):
        record.unlink()
    mined = {spec.asset_key for spec in MINED_CHECKS if spec.name == check}
    selection = [(MINED_CHECKS, "wkg/edges")] if mined else []
    selection += [(EMBEDDED_CHECKS, "wkg/embeddings")] if datasets - {k.to_user_string() for k in mined} else []
    found: set[str] = set()
    for declared, _ in selection:
        names = sorted({spec.asset_key.to_user_string() for spec in declared})
        result = run(settings, instance, names)
        found |= red(result).get(check, set())
        assert result.success == (check in WARNS), failure_of(result)
    assert found == datasets
    assert run(settings, instance, ["wkg/snapshot"]).success == (check in WARNS)
    if check not in WARNS:
        assert Lake(settings.paths.lake).current_snapshot() == before


@pytest.mark.parametrize("check", sorted(IN_THE_LAST_SNAPSHOT))
def test_too_large_a_drift_turns_its_check_red(night: Path, instance: dg.DagsterInstance, check: str) -> None:
    settings = settings_of(night, STRICT)
    lake = Lake(settings.paths.lake)
    before = lake.current_snapshot() or ""
    name, change = IN_THE_LAST_SNAPSHOT[check]
    file = lake.snapshot_folder(before) / name.removeprefix("wkg/") / PART
    pq.write_table(change(pq.ParquetFile(file).read()), file)
    result = run(settings, instance, [name])
    assert not result.success
    assert red(result)[check] == {name}
    assert not run(settings, instance, ["wkg/snapshot"]).success
    assert lake.current_snapshot() == before


def test_an_index_that_lacks_a_vector_turns_its_check_red(night: Path, instance: dg.DagsterInstance) -> None:
    (ids,) = (night / "lake" / ".staged").glob("w*/tables/index/ids.json")
    write_json(ids, read_json_value(ids)[1:])
    result = run(settings_of(night), instance, ["wkg/embeddings"])
    assert red(result)["the_index_holds_every_vector"] == {"wkg/embeddings"}
    assert not result.success


def test_too_little_recall_turns_its_check_red(night: Path, instance: dg.DagsterInstance) -> None:
    (record,) = (night / "lake" / ".staged").glob("w*/tasks.json")
    made = read_json(record) or {}
    write_json(record, made | {"figures": made["figures"] | {"recall_at_10": 0.5}})
    result = run(settings_of(night), instance, ["wkg/embeddings"])
    assert not result.success
    assert red(result) == {"recall_at_10_against_exact_search": {"wkg/embeddings"}}


def lose_cases(root: Path) -> None:
    write_history(root / "history", 1)


def lose_records(root: Path) -> None:
    lake = Lake(root / "lake")
    file = lake.folder(SOURCES) / PART
    table = one_more("records")("", pq.ParquetFile(file).read())
    lake.replace(file, lambda path: pq.write_table(table, path), copy=False)


def lose_implementations(root: Path) -> None:
    lake = Lake(root / "lake")
    for folder in lake.folder(IMPLEMENTATIONS).glob("*/*"):
        table = pq.ParquetFile(folder / PART).read()
        (folder / file_lists.NAME).unlink()
        write_table(IMPLEMENTATIONS, table.filter(pc.not_equal(table["case_id"], "c0")), folder)
        file_lists.list_files(folder)


@pytest.mark.parametrize(
    ("check", "break_it"),
    [
        ("cases_are_not_lost", lose_cases),
        ("records_add_up", lose_records),
        ("implementations_as_counted", lose_implementations),
    ],
)
def test_history_that_does_not_add_up_turns_its_check_red(
    night: Path, instance: dg.DagsterInstance, check: str, break_it: Callable[[Path], None]
) -> None:
    assert check in {spec.name for spec in HISTORY_CHECKS}
    break_it(night)
    settings = settings_of(night)
    before = Lake(settings.paths.lake).current_snapshot()
    result = run(settings, instance, ["history/sources"])
    assert not result.success
    assert red(result)[check] == {"history/sources"}
    assert Lake(settings.paths.lake).current_snapshot() == before


def test_every_check_of_a_rebuild_has_input_here_that_fails_it() -> None:
    elsewhere = {"the_index_holds_every_vector", "recall_at_10_against_exact_search"}
    assert {*BREAKS, *IN_THE_LAST_SNAPSHOT, *elsewhere} == set(CHECKED)
    assert key("wkg/edges") in {spec.asset_key for spec in MINED_CHECKS}
