"""A contract's intakes through processes that may be killed: the same rows by one of them, by several and by Spark;
what is poisonous costs only itself.
"""

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.schemas import RESULT_TABLES
from opus_pipelines.core.settings import Generation, Settings, Spark
from opus_pipelines.core.workers.pool import Worker
from opus_pipelines.generation.bulk.chunks import GenerationSetup
from opus_pipelines.generation.bulk.run import BulkRun, BulkSize
from opus_pipelines.generation.results.contract import check_result, publish_contract
from opus_pipelines.intakes.intake import discover
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.reporting.contract_tables import report_tables
from tests.core.workers.poison import REASONS, PoisonedSetup

pytestmark = [pytest.mark.spark, pytest.mark.model]

NOW = datetime(2026, 1, 31, tzinfo=UTC)


@pytest.fixture(scope="module")
def contract(sample_files: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Visit Coding, its four intakes."""
    folder = tmp_path_factory.mktemp("intakes")
    shutil.copytree(sample_files.intakes_folder / "meridian-clinics", folder / "meridian-clinics")
    return discover(folder)[0]


@pytest.fixture
def cached(sample_lake: Lake, encoder: TextEncoder) -> Any:
    return CachedEncoder(encoder, sample_lake.kept / "embeddings")


def in_bulk(lake: Any, contract: Any, encoder: TextEncoder, folder: Any, **more: Any) -> Any:
    lines: list[str] = []
    setup = GenerationSetup(lake.root, lake.current_snapshot(), more.pop("settings", Settings()))
    setup = more.pop("setup", setup)
    with BulkRun(setup, encoder, more.pop("session", None), lines.append, **more) as bulk:
        return bulk.generate(contract, folder, "run", NOW), lines


@pytest.fixture(scope="module")
def by_one_server(
    contract: Any, sample_lake: Lake, encoder: TextEncoder, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The result, what was said meanwhile, and the folder that it was staged in."""
    folder = tmp_path_factory.mktemp("one_server") / "out"
    return *in_bulk(sample_lake, contract, CachedEncoder(encoder, sample_lake.kept / "embeddings"), folder), folder


def test_a_server_encodes_before_it_works_and_tells_of_each_intake(contract: Any, by_one_server: Any) -> None:
    result, said, folder = by_one_server
    assert result.texts_missed == 0
    assert len([line for line in said if line.startswith("Meridian Clinics / Visit Coding: intake ")]) == len(
        contract.intakes
    )
    assert not (folder / "work").exists()


@pytest.mark.parametrize(
    ("is_cluster", "shared_files"),
    [(False, True), (True, True), pytest.param(True, False, marks=pytest.mark.nightly)],
    ids=["by processes", "by Spark", "by Spark without a shared folder"],
)
def test_the_same_rows_come_in_parts_and_are_published_whole(
    is_cluster: bool,
    shared_files: bool,
    contract: Any,
    sample_lake: Lake,
    cached: CachedEncoder,
    by_one_server: Any,
    spark: Any,
    tmp_path: Path,
) -> None:
    size = BulkSize(many=1, chunk=2)
    session = (lambda: spark) if is_cluster else None
    settings = Settings(spark=Spark(shared_files=shared_files))
    result, said = in_bulk(
        sample_lake, contract, cached, tmp_path / "out", session=session, size=size, settings=settings
    )
    assert not any(": intake " in line for line in said)
    for dataset in RESULT_TABLES:
        key = [(name, "ascending") for name in dataset.key]
        assert result.tables[dataset.name].sort_by(key).equals(by_one_server[0].tables[dataset.name].sort_by(key)), (
            dataset.name
        )
    result.tables.update(report_tables(result))
    assert [c for c in check_result(result, 4) if not c.passed] == []
    lake = Lake(tmp_path / "lake")
    counted = result.counts
    publish_contract(lake, result, NOW)
    folder = (
        lake.root
        / "workflows"
        / "tasks"
        / "client_key=Meridian_20Clinics"
        / "contract_key=Visit_20Coding"
        / f"result={result.result}"
    )
    assert sorted(f.name for f in folder.glob("*.parquet")) == ["part-00000.parquet", "part-00001.parquet"]
    assert result.counts == counted
    assert counted["generation/intakes"] == 4
    assert [pointer["result"] for pointer in lake.results()] == [result.result]


@pytest.mark.parametrize("many", [100, pytest.param(1, marks=pytest.mark.nightly)], ids=["by processes", "by Spark"])
def test_a_poisonous_intake_costs_only_itself(
    contract: Any,
    sample_lake: Lake,
    cached: CachedEncoder,
    spark: Any,
    tmp_path: Path,
    many: Any,
) -> None:
    size = BulkSize(many, chunk=3)  # each chunk of Spark's has poison beside what is wholesome
    folder = tmp_path / "intakes" / "meridian-clinics" / "visit-coding"
    shutil.copytree(contract.folder, folder)
    for name in REASONS:
        shutil.copytree(contract.intakes[0], folder / name)
    (poisoned,) = discover(tmp_path / "intakes")
    setup = PoisonedSetup(sample_lake.root, sample_lake.current_snapshot(), Settings())
    result, _ = in_bulk(sample_lake, poisoned, cached, tmp_path / "out", setup=setup, session=lambda: spark, size=size)
    rows = {r["folder"]: (r["status"], r["reason"]) for r in result.tables["generation/intakes"].to_pylist()}
    assert rows == {name: ("failed", reason) for name, reason in REASONS.items()} | {
        i.name: ("generated", None) for i in contract.intakes
    }
    assert sorted(result.failed) == sorted(
        f"Meridian Clinics/Visit Coding/{name}: {reason}" for name, reason in REASONS.items()
    )
    assert len(set(result.tables["workflows/optimized"]["intake_id"].to_pylist())) == len(contract.intakes)


def test_the_limits_are_those_of_the_settings_and_hold_for_what_a_contract_s_intakes_share(
    contract: Any, sample_lake: Lake, cached: CachedEncoder, tmp_path: Path
) -> None:
    settings = Settings(generation=Generation(seconds_per_intake=0.001))
    with pytest.raises(OpusError, match=r"documents: .* 0.001 s \(generation.seconds_per_intake\)"):
        in_bulk(sample_lake, contract, cached, tmp_path / "out", settings=settings)


def test_a_server_that_dies_is_an_error_that_names_the_job() -> None:
    with (
        Worker(os._exit) as server,
        pytest.raises(OpusError, match="the job ended with exit code 1"),
    ):
        server.do("the job")
