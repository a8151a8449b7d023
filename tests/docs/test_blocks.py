"""Every shell block of README and docs is run as it is written, on the sample lake that `make run` leaves."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import write_views_sql
from tests.docs.opus_server import served
from tests.docs.pages import ROOT, blocks, pages

pytestmark = pytest.mark.model

ELSEWHERE = ("docs/tutorial.md",)  # tests/test_tutorial.py runs it, on an export of its own
FIRST = "docs/how-to/operator.md"  # it rebuilds and generates: the set-up runs it
LAST = "docs/how-to/delivery-lead.md"  # its decisions change what later pages would read
SCRIPTS = {
    page: "\n".join(block.text for block in blocks(page) if block.info == "sh" and not block.targets)
    for page in sorted(pages(), key=lambda page: (page == LAST, page))
    if page not in ELSEWHERE
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A virtual environment like that of `make`, whose `opus` is run by a server."""
    folder = tmp_path_factory.mktemp("venv")
    (folder / "bin").mkdir()
    (folder / "bin" / "activate").write_text(f'PATH="{folder / "bin"}:{sys.prefix}/bin:$PATH"\n')
    with served(folder / "bin"):
        yield folder


@pytest.fixture(scope="module")
def checkout(sample_files: Any, sample_lake: Lake, environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the repository's is after `make run`, as far as the pages know it: build/sample, build/lake and
    .venv.

    Other tests share the mined sample; the rebuild of the operator's guide finds it current, and its `opus generate`
    makes all results. Of each contract but the delivery lead's one intake is enough.
    """
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(sample_files.directory, folder / "build" / "sample")
    for contract in (folder / "build" / "sample" / "intakes").glob("*/*"):
        for intake in sorted(contract.glob("*/intake.toml"))[1:] if contract.name != "motor-claims" else ():
            shutil.rmtree(intake.parent)
    shutil.copytree(sample_lake.root, folder / "build" / "lake")
    write_views_sql(Lake(folder / "build" / "lake"))  # a rebuild that finds nothing new does not
    (folder / ".venv").symlink_to(environment)
    run(folder, SCRIPTS[FIRST])
    assert (folder / "build" / "lake" / "workflows" / "current").is_dir()
    return folder


def run(folder: Path, script: str) -> None:
    """Run the lines in one shell, which ends at the first that fails."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = ["bash", "-e", "-o", "pipefail", "-x", "-c", script]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("page", [page for page, script in SCRIPTS.items() if script and page != FIRST])
def test_the_blocks_of(page: str, checkout: Path) -> None:
    run(checkout, SCRIPTS[page])
