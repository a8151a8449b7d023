"""How many modules one piece of work enters; the numbers only get smaller."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "modules_entered.py"
MOST = {"intake": 80, "log": 76, "utterance": 19}


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("modules_entered", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_called_function_counts_once_with_its_lines(tmp_path: Path) -> None:
    from opus_pipelines.core.ids import make_id

    def work() -> None:
        make_id("t", "one")
        make_id("t", "two")

    called = loaded().Calls(tmp_path / "calls.jsonl").of(work)
    assert {file for file, *_ in called} == {"core/ids.py"}
    assert [last > first for _, first, last in called if first == make_id.__code__.co_firstlineno] == [True]


@pytest.mark.model
@pytest.mark.parametrize("what", MOST)
def test_no_more_modules_than_before(what: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, what], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["modules"] <= MOST[what]
