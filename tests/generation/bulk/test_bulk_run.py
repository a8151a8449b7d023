"""A contract's intakes through processes that may be killed: the same rows as in one process, and what is poisonous costs only itself."""

import os
import shutil
import sys
from datetime import UTC, datetime

import pytest

from opus_pipelines.embedding.cache import CachedEncoder
from opus_pipelines.errors import OpusError
from opus_pipelines.generation.bulk import run as bulk_run
from opus_pipelines.generation.bulk.run import BulkRun
from opus_pipelines.generation.bulk.server import Server
from opus_pipelines.generation.checks import check_result
from opus_pipelines.generation.contract import TABLES, generate_contract, publish_contract
from opus_pipelines.generation.discover import discover
from opus_pipelines.generation.knowledge import Knowledge
from opus_pipelines.lake import Lake
from opus_pipelines.reports.contract import report_tables
from opus_pipelines.settings import Generation, Settings
from opus_pipelines.wkg.snapshot import Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.model]

NOW = datetime(2026, 1, 31, tzinfo=UTC)
POISON = """
import os, time
from contextlib import contextmanager
from dataclasses import dataclass
from opus_pipelines.generation.bulk.chunks import Bench, GenerationSetup
from opus_pipelines.generation.bulk.killable import Killable

class PoisonedBench(Bench):
    def read(self, item):
        if item[1] is not None and item[1].name.startswith("unreadable"):
            os.kill(os.getpid(), 9)
        return super().read(item)

    def work(self, item):
        if item[0].folder.startswith("hangs"):
            time.sleep(60)
        if item[0].folder.startswith("eats"):
            len([bytearray(1 << 20) for _ in range(4000)])
        if item[0].folder.startswith("dies"):
            os.kill(os.getpid(), 11)
        return super().work(item)

@dataclass(frozen=True)
class PoisonedSetup(GenerationSetup):
    @contextmanager
    def bench(self):
        bench = PoisonedBench(self)
        with Killable(bench.read, 20.0, 1024) as bench.reading, Killable(bench.work, 4.0, 1024) as bench.working:
            yield bench
"""


@pytest.fixture(scope="module")
def contract(sample_files, tmp_path_factory):
    """Visit Coding, its three intakes."""
    folder = tmp_path_factory.mktemp("intakes")
    shutil.copytree(sample_files.intakes_folder / "meridian-clinics", folder / "meridian-clinics")
    return discover(folder)[0]


@pytest.fixture
def cached(sample_lake, encoder):
    return CachedEncoder(encoder, sample_lake.kept / "embeddings")


def in_bulk(lake, contract, encoder, folder, **more):
    said = []
    snapshot = lake.current_snapshot()
    with BulkRun(lake, snapshot, more.pop("settings", Settings()), encoder, more.pop("session", None), said.append, **more) as bulk:
        return bulk.generate(contract, folder, "run", NOW), said


@pytest.fixture(scope="module")
def in_one_process(contract, sample_lake, encoder):
    cached = CachedEncoder(encoder, sample_lake.kept / "embeddings")
    return generate_contract(contract, Knowledge(Snapshot.open(sample_lake)), Settings(), cached, "run", NOW)


def test_processes_give_the_rows_of_one_process(contract, sample_lake, cached, in_one_process, tmp_path):
    result, said = in_bulk(sample_lake, contract, cached, tmp_path / "out")
    assert result.result == in_one_process.result
    assert result.texts_missed == 0
    for dataset in TABLES:
        key = [(name, "ascending") for name in dataset.key]
        assert result.tables[dataset.name].equals(in_one_process.tables[dataset.name].sort_by(key)), dataset.name
    assert len([line for line in said if line.startswith("Meridian Clinics / Visit Coding: intake ")]) == 3
    assert not (tmp_path / "out" / "work").exists()


def test_spark_gives_them_too_in_parts_and_they_are_published_whole(
    contract, sample_lake, cached, in_one_process, spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(bulk_run, "CHUNK", 2)
    result, _ = in_bulk(sample_lake, contract, cached, tmp_path / "out", session=lambda: spark, many=1)
    for dataset in TABLES:
        key = [(name, "ascending") for name in dataset.key]
        assert result.tables[dataset.name].sort_by(key).equals(in_one_process.tables[dataset.name].sort_by(key)), dataset.name
    result.tables.update(report_tables(result, 0.8))
    assert [c for c in check_result(result, 3) if not c.passed] == []
    lake = Lake(tmp_path / "lake")
    counted = result.counts
    publish_contract(lake, result, NOW)
    folder = lake.root / "workflows" / "tasks" / "client_key=Meridian_20Clinics" / "contract_key=Visit_20Coding" / f"result={result.result}"
    assert sorted(f.name for f in folder.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    assert result.counts == counted
    assert counted["generation/intakes"] == 3
    assert [pointer["result"] for pointer in lake.results()] == [result.result]


def test_a_poisonous_intake_costs_only_itself(contract, sample_lake, cached, tmp_path, monkeypatch):
    (tmp_path / "poison.py").write_text(POISON)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    import poison

    folder = tmp_path / "intakes" / "meridian-clinics" / "visit-coding"
    shutil.copytree(contract.folder, folder)
    for name in ("unreadable", "hangs", "eats", "dies"):
        shutil.copytree(contract.intakes[0], folder / name)
    (poisoned,) = discover(tmp_path / "intakes")
    setup = poison.PoisonedSetup(sample_lake.root, sample_lake.current_snapshot(), Settings())
    result, _ = in_bulk(sample_lake, poisoned, cached, tmp_path / "out", setup=setup)
    del sys.modules["poison"]
    reasons = {r["folder"]: r["reason"] for r in result.tables["generation/intakes"].to_pylist() if r["status"] == "failed"}
    assert reasons == {
        "unreadable": "its process was ended by signal 9",
        "hangs": "it took more than 4 s (generation.seconds_per_intake)",
        "eats": "it needed more than 1024 MB (generation.memory_mb_per_intake)",
        "dies": "its process was ended by signal 11",
    }
    assert sorted(line.split(":")[0] for line in result.failed) == [
        f"Meridian Clinics/Visit Coding/{name}" for name in ("dies", "eats", "hangs", "unreadable")
    ]
    assert result.tables["generation/intakes"]["status"].to_pylist().count("generated") == 3


def test_the_limits_are_those_of_the_settings_and_hold_for_what_a_contract_s_intakes_share(contract, sample_lake, cached, tmp_path):
    settings = Settings(generation=Generation(seconds_per_intake=0.001))
    with pytest.raises(OpusError, match=r"documents: it took more than 0.001 s \(generation.seconds_per_intake\)"):
        in_bulk(sample_lake, contract, cached, tmp_path / "out", settings=settings)


def test_a_server_that_dies_is_an_error_that_names_the_job():
    with Server(os._exit) as server, pytest.raises(OpusError, match="the process that worked on the job ended with 1: too little memory"):
        server.do("the job")
