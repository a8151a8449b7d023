"""What many tests share: one Spark session and one encoder, each started by the first test that asks for it."""

import fcntl
import gc
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder

# The settings of whoever runs the tests must not change what the tests see. Subprocesses and the workers of
# pytest-xdist inherit the cleared environment; GraphFrames' jars are kept under another name, for the shared Spark
# session alone.
KEPT = {"OPUS_TEST_DATA"}
JARS = "TEST_GRAPHFRAMES_JARS"
if "OPUS_GRAPHFRAMES_JARS" in os.environ:
    os.environ[JARS] = os.environ["OPUS_GRAPHFRAMES_JARS"]
for _name in [name for name in os.environ if name.startswith("OPUS_") and name not in KEPT]:
    del os.environ[_name]
os.environ["XDG_CONFIG_HOME"] = os.devnull  # no settings of the user's own: they are looked for below this
# Two workers of pytest-xdist share the cores, and threads that wait for each other cost many times what they gain.
# NumPy and PyTorch read it when they are first imported, which nothing above does.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"


TESTS = Path(__file__).parent
ASKS_FOR_SPARK = re.compile(r"\bspark: (?:Any|object)\b")
MARKER_OF = {"spark": "spark", "encoder": "model", "sample_lake": "model"}  # fixtures of this file

pytest_plugins = ["tests.distributions", "tests.history_fixtures", "tests.intention_fixtures", "tests.wkg_fixtures"]

# No test cuts the power. On a busy disk each of some ten thousand calls waits for milliseconds.
os.fsync = lambda fd: None

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell; tests send it to themselves
    signal.signal(signal.SIGINT, signal.default_int_handler)
# how fast examples are drawn says more of a busy machine than of a test
settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30)
_usual = settings.get_profile("busy machine")
settings.register_profile("inner loop", _usual, max_examples=20)
settings.register_profile("nightly", _usual, max_examples=100)  # `tests.campaigns.examples` looks for it
settings.load_profile("busy machine")
gc.disable()  # what is collected stays: to look for garbage in thousands of tests costs a sixth of the time


def pytest_collection_finish() -> None:
    """The objects that exist now are not searched, which would take half a second; those that the tests make are."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest goes first, so that no worker is left alone with it at the end.

    Raises UsageError where a test asks for Spark or for the encoder without the marker by which `make test-fast`
    leaves it out.
    """
    unmarked = [
        f"{item.nodeid} asks for `{fixture}` and is not marked `{marker}`"
        for item in items
        if isinstance(item, pytest.Function)
        for fixture, marker in MARKER_OF.items()
        if fixture in item.fixturenames and not hasattr(item.module, fixture) and not item.get_closest_marker(marker)
    ]
    if unmarked:
        raise pytest.UsageError("; ".join(unmarked))
    with_spark = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    # The files beside this one run whole nights.
    items.sort(key=lambda item: (item.path not in with_spark, item.path.parent != TESTS))


class _OneSpark(LoadFileScheduling):
    """Gives the files of tests that ask for Spark to one worker: a second JVM costs half a minute of compiling."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if file in self.asks else file

    @cached_property
    def asks(self) -> set[str]:
        """The files with a test that has the fixture `spark` among its arguments."""
        return {
            path.relative_to(TESTS.parent).as_posix()
            for path in TESTS.rglob("test_*.py")
            if ASKS_FOR_SPARK.search(path.read_text("utf-8"))
        }


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _OneSpark | None:
    """Distributes the files of tests over the workers, with `--dist loadfile`."""
    return _OneSpark(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-algorithm-versions",
        action="store_true",
        help="write tests/algorithm_versions.json anew, where versions were raised",
    )


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers take `python3` from PATH otherwise
    conf = {
        # tests are over before the second compiler pays: half the time
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    if jars := os.environ.get(JARS):
        conf["spark.jars"] = jars
    builder = SparkSession.builder.master("local[2]").appName("opus-tests")
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def encoder() -> object:
    from opus_pipelines.language.embedding.encoder import Encoder

    return Encoder()


@pytest.fixture(scope="session")
def sample_files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The five sources of the sample, without the harder contracts. Shared: copy what a test changes."""
    from opus_pipelines.quality.sample import write_sample

    return write_sample(tmp_path_factory.mktemp("sample") / "it")


@pytest.fixture(scope="session")
def sample_lake(sample_files: Any, tmp_path_factory: pytest.TempPathFactory, encoder: "TextEncoder") -> Any:
    """The sample's history mined once, with default settings. Shared: tests only read it, or publish results of
    contracts of their own.

    The first worker of pytest-xdist that asks for it mines it; the others copy what it mined.
    """
    from opus_pipelines.lake.layout import Lake

    lake = Lake(tmp_path_factory.mktemp("lake"))
    if "PYTEST_XDIST_WORKER" not in os.environ:
        mine_sample(lake, sample_files.history, encoder)
        return lake
    mined = tmp_path_factory.getbasetemp().parent / "sample_lake"
    with mined.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mined.exists():
            mine_sample(lake, sample_files.history, encoder)
            shutil.copytree(lake.root, mined)
            return lake
    shutil.copytree(mined, lake.root, dirs_exist_ok=True)
    return lake


def mine_sample(lake: Any, history: Path, encoder: "TextEncoder") -> None:
    """Reads and mines a history, and publishes the snapshot."""
    from opus_pipelines.core.settings import Settings
    from opus_pipelines.history.ingestion.ingest import read_history
    from opus_pipelines.language.embedding.cache import CachedEncoder
    from tests.rebuilding import build_snapshot, no_spark

    now = datetime(2026, 1, 31, tzinfo=UTC)
    state = read_history(lake, history, now)
    assert state.failed == []
    build_snapshot(no_spark, lake, Settings(), state, lambda: CachedEncoder(encoder, lake.kept / "embeddings"), now)
