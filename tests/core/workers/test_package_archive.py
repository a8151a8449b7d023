"""The archive that brings this package to executors."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from opus_pipelines.core.workers.carried_jobs import executor_conf, write_archive


@pytest.mark.long
def test_the_archive_holds_a_package_that_runs_by_itself(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a" / "package.zip")
    with ZipFile(archive) as opened:
        opened.extractall(tmp_path / "unpacked")
        names = opened.namelist()
    assert "opus_pipelines/history/records/token_prices.toml" in names
    assert "sql/wkg/edges.sql" in names
    assert not [name for name in names if "__pycache__" in name]
    code = "import opus_pipelines.wkg.mining.engines as q; print(q.__file__); q.query('edges')"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(run.stdout.strip()).is_relative_to(tmp_path / "unpacked")
    assert write_archive(tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_what_a_person_stated_for_executors_stays() -> None:
    stated = {"spark.archives": "env.tar.gz#env", "spark.executorEnv.PYTHONPATH": "/opt/more"}
    assert executor_conf(Path("/lake/p.zip"), stated) == {
        "spark.archives": "env.tar.gz#env,/lake/p.zip#opus_package",
        "spark.executorEnv.PYTHONPATH": "opus_package:/opt/more",
        "spark.executorEnv.PYTHONSAFEPATH": "1",
    }
