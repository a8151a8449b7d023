"""docs/tutorial.md is run as it is written, on a small generated export."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from tests import ugly

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
WITHOUT_SPARK = ("opus init", "opus check", "printf", "mkdir")


@pytest.mark.long
def test_the_blocks_before_the_rebuild(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, without Spark: each command as written, and what the text says of it."""
    monkeypatch.chdir(tmp_path)
    ugly.write(tmp_path / "export.csv", ugly.synthetic())
    run = [line for block in BLOCKS for line in block.splitlines() if line.startswith(WITHOUT_SPARK)]
    assert len(run) == 8
    for line in run:
        if not line.startswith("opus"):
            subprocess.run(["bash", "-ec", line], check=True, cwd=tmp_path)
        else:
            assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "outcomes         54 cases succeeded, 6 did not" in shown
    assert "100.0 % of the occurrences have a cost" in shown
    assert (tmp_path / "intakes" / "Acme" / "travel" / "example" / "input" / "request.md").is_file()


@pytest.mark.nightly
def test_every_block_in_order(tmp_path: Path) -> None:
    """In a shell, as a new user: the last `opus best` and `opus status` show the contract."""
    ugly.write(tmp_path / "export.csv", ugly.synthetic())
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    script = "\n".join(BLOCKS)
    command = ["bash", "-e", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Acme" in done.stdout
    assert (tmp_path / "lake" / "workflows" / "current").is_dir()
