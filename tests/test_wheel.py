"""The wheel, installed outside of the checkout: it takes one name, and finds what stands beside the package there."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("opus_pipelines", "assets", "jobs", "resources", "sql")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "dagster.yaml", "workspace.yaml")
OPUS = ["-c", "import sys; from opus_pipelines.cli.start import main; sys.exit(main())"]
ASK = """
import importlib.util, json
before = [importlib.util.find_spec(name) is not None for name in ("assets", "jobs", "resources", "sql")]
import opus_pipelines.definitions as definitions
from opus_pipelines.core.checkout import ROOT, SQL
import assets
from opus_pipelines.reporting.views import shipped_queries
print(json.dumps([before, str(ROOT), assets.__file__, len(list(SQL.rglob("*.sql"))), len(shipped_queries())]))
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel was installed into."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, capture_output=True, text=True)
    return target


def python(installed: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs an interpreter that has the wheel and its dependencies, and not the checkout."""
    paths = os.pathsep.join((str(installed), sysconfig.get_path("purelib")))
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OPUS_", "PYTHON"))}
    base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return subprocess.run(
        [str(base), *arguments], cwd=cwd, env=own | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=300
    )


def test_the_wheel_takes_one_name(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert names - {"bin", "__pycache__"} == {"opus_pipelines"}


def test_definitions_find_assets_jobs_resources_and_sql_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    done = python(installed, "-c", ASK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before, root, assets, statements, queries = json.loads(done.stdout.splitlines()[-1])
    assert before == [False] * 4
    assert Path(root) == installed / "opus_pipelines" / "_checkout"
    assert Path(assets).is_relative_to(root)
    assert statements == len(list((ROOT / "sql").rglob("*.sql")))
    assert queries > 20


def test_commands_run_outside_of_the_checkout(installed: Path, tmp_path: Path) -> None:
    history, lake = tmp_path / "history", ["--lake", "lake"]
    assert python(installed, *OPUS, "sample", "demo", cwd=tmp_path).returncode == 0
    (history / "claims").mkdir(parents=True)
    for name in ("source.toml", "claims.jsonl"):
        text = (tmp_path / "demo" / "history" / "castellan_household" / name).read_text("utf-8")
        lines = text.splitlines()[: 25 if name == "claims.jsonl" else None]
        (history / "claims" / name).write_text("\n".join(lines) + "\n", "utf-8")
    rebuilt = python(installed, *OPUS, *lake, "rebuild", "--history", "history", cwd=tmp_path)
    assert rebuilt.returncode == 0, rebuilt.stderr
    status = python(installed, *OPUS, *lake, "status", cwd=tmp_path)
    assert status.returncode == 0, status.stderr
    assert "claims" in status.stdout
