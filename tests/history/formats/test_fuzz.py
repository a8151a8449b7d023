"""Whatever a file holds, its reader uses it or refuses it with a reason: no crash, no hang, no flood of memory, no
record lost count of.

The files are made and read by `fuzz/campaign.py`, in processes of their own; `python
tests/history/formats/fuzz/campaign.py
--help` runs more.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CAMPAIGN = Path(__file__).parent / "fuzz" / "campaign.py"
DATA = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data in {DATA}; OPUS_TEST_DATA says where it is")


def campaign(*arguments: str) -> dict[str, Any]:
    # a Spark session of an earlier test may have set it, and the campaign's modules stand beside it
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(CAMPAIGN), *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.long
def test_mutants_of_every_format() -> None:
    found = campaign("--mutants", "40", "--seed", "4")
    assert found["faults"] == []
    assert found["files"] == 52
    assert found["became"].keys() == {"loaded", "rejected"}
    assert found["became"]["loaded"] >= 10


@pytest.mark.long
def test_files_made_to_hurt() -> None:
    found = campaign("--hostile", "all", "--every", "24")
    assert found["faults"] == []
    assert found["hostile"]["files"] > 15


@pytest.mark.long
@pytest.mark.data
@needs_data
def test_mutants_of_real_files() -> None:
    found = campaign("--mutants", "44", "--seed", "5", "--data", str(DATA))
    assert found["faults"] == []
    assert found["became"]["loaded"] >= 30


@pytest.mark.nightly
def test_thousands_of_mutants() -> None:
    assert campaign("--mutants", "2000", "--seed", "6")["faults"] == []


@pytest.mark.nightly
def test_every_file_made_to_hurt() -> None:
    assert campaign("--hostile", "all")["faults"] == []
