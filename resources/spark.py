"""The Spark session: one for each process, started by the first step that needs it, and kept for later runs."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.workers.carried_jobs import executor_conf, write_archive
from resources.settings import WithSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JARS = "OPUS_GRAPHFRAMES_JARS"
REMEDY = f'name another package there, or its jars in {JARS} (paths separated by commas), or set graph.engine = "local"'
UNRESOLVED = "unresolved dependency"  # Ivy's words
LEAST_JAVA = 17
JAVA_FOLDERS = (Path("/usr/lib/jvm"), Path("/opt/java"))
JAVA_MISSING = (
    f"Spark needs Java {LEAST_JAVA} or later, and none was found by JAVA_HOME, on the PATH, in /usr/lib/jvm or "
    "in /opt/java; install one, e.g. `apt-get install openjdk-17-jre-headless`, or set JAVA_HOME"
)
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Of a JVM that reads less than this, most of the CPU time went into compiling code that runs for a second, so that it
# compiles only with C1, and has one thread to collect garbage. Measured in docs/explanation/speed.md.
SMALL_BYTES = 64 * 2**20
FOR_SMALL_INPUT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OF_ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")  # read by any JVM
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # a client called 007 stays "007"
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


class SparkResource(WithSettings):
    """The settings' [spark] section.

    Nothing is started before a session is requested.
    """

    def session(self, input_bytes: int = 0) -> "SparkSession":
        """Returns the process's session. Raises SettingsError where it cannot be started.

        `input_bytes`: the size of the files that it will read, by which a new JVM chooses how it compiles.
        """
        return self._start(self.typed.graph.engine == "graphframes", input_bytes)

    @property
    def cluster_session(self) -> "Callable[[], SparkSession] | None":
        """What starts the session of a cluster; None where the master is this machine, which has no need of Spark."""
        return None if self.typed.spark.master.startswith("local") else self.session

    def graph_session(self) -> "SparkSession":
        """Returns a session with GraphFrames' JVM half.

        A session that was started without it, before `auto` knew the number of edges, is ended first, because a JVM's
        classes are fixed at its start. Raises SettingsError where the JVM half cannot be had.
        """
        from pyspark import SparkContext

        from opus_pipelines.wkg.graph_metrics import has_jvm_half

        was_running = SparkContext._active_spark_context is not None
        session = self._start(with_graphframes=True)
        if was_running and not has_jvm_half(session):
            end_jvm(session)
            session = self._start(with_graphframes=True)
        if not has_jvm_half(session):
            end_jvm(session)
            raise SettingsError(f"{self._jvm_half()} does not hold GraphFrames for this Spark: {REMEDY}")
        return session

    def _start(self, with_graphframes: bool, input_bytes: int = SMALL_BYTES) -> "SparkSession":
        from pyspark import SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is None:
            os.environ["JAVA_HOME"] = str(java_home())
        # Python workers take python3 from the PATH unless told, and that one lacks our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # workers start with `python -m`, which would import modules of the working directory, whosever they are
        os.environ.setdefault("PYTHONSAFEPATH", "1")
        spark, package = self.typed.spark, self.typed.graph.graphframes_package
        builder = SparkSession.builder.master(spark.master).appName("opus")
        conf = (
            CONF
            | {
                "spark.driver.memory": spark.driver_memory,
                "spark.sql.shuffle.partitions": str(spark.shuffle_partitions),
            }
            | spark.conf
        )
        if not spark.master.startswith("local"):
            archive = write_archive(self.typed.paths.lake / ".dagster" / "opus-package.zip")
            conf |= executor_conf(archive.resolve(), conf)
        conf |= java_options(input_bytes, conf)
        for key, value in (_and_graphframes(conf, package) if with_graphframes else conf).items():
            builder = builder.config(key, value)
        log = self.typed.paths.lake / ".dagster" / "spark.log"  # it receives the output of the JVM
        said_before = log.stat().st_size if log.exists() else 0
        try:
            with _stderr_to(log):
                session = builder.getOrCreate()
        except (PySparkRuntimeError, FileNotFoundError) as error:
            if with_graphframes and UNRESOLVED in _said_since(log, said_before):
                raise SettingsError(
                    f"{self._jvm_half()} cannot be fetched, so Spark does not start: {REMEDY}; see {log}"
                ) from None
            raise SettingsError(f"Spark does not start ({error}): it needs Java 17 or later; see {log}") from None
        session.sparkContext.setLogLevel("ERROR")
        return session

    def _jvm_half(self) -> str:
        return (
            f"{JARS}={os.environ[JARS]}"
            if os.environ.get(JARS)
            else f'graph.graphframes_package = "{self.typed.graph.graphframes_package}"'
        )


def java_home(folders: Sequence[Path] = JAVA_FOLDERS) -> Path:
    """Returns the home of a Java that Spark can run on. Raises SettingsError where this machine has none.

    It is looked for by JAVA_HOME, on the PATH, and in the folders where systems install it.
    """
    stated = os.environ.get("JAVA_HOME")
    places = [Path(stated, "bin", "java")] if stated else []
    places += [Path(command)] if (command := shutil.which("java")) else []
    places += [java for folder in folders for java in sorted(folder.glob("*/bin/java"))]
    for java in places:
        if _version_of(java) >= LEAST_JAVA:
            return java.resolve().parents[1]
    raise SettingsError(JAVA_MISSING)


def _version_of(java: Path) -> int:
    """Returns the major version that a `java` states; 0 where it is none."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    stated = re.search(r'version "(\d+)', said)
    return int(stated[1]) if stated else 0


def java_options(input_bytes: int, conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the conf by which a JVM starts that reads so many bytes; empty where a person stated options already.

    Two options that choose a garbage collector would keep the JVM from starting.
    """
    is_stated = JAVA_OPTIONS in conf or any(os.environ.get(name) for name in OF_ENVIRONMENT)
    return {} if is_stated or input_bytes >= SMALL_BYTES else {JAVA_OPTIONS: FOR_SMALL_INPUT}


def end_jvm(session: "SparkSession") -> None:
    """Stops the session and its JVM, so that the process's next session starts another.

    Spark itself keeps the JVM; no public function ends it.
    """
    from pyspark import SparkContext

    session.stop()
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with it
        gateway.proc.wait(timeout=60)


def _and_graphframes(conf: Mapping[str, str], package: str) -> dict[str, str]:
    """Returns the conf with GraphFrames' JVM half among its jars or packages.

    Raises SettingsError for a missing jar.
    """
    jars = [jar.strip() for jar in os.environ.get(JARS, "").split(",") if jar.strip()]
    if missing := [jar for jar in jars if not Path(jar).is_file()]:
        raise SettingsError(f"{JARS}: no such file {', '.join(missing)}")
    key, value = ("spark.jars", ",".join(jars)) if jars else ("spark.jars.packages", package)
    return {**conf, key: f"{conf[key]},{value}" if conf.get(key) else value}


def _said_since(log: Path, offset: int) -> str:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read().decode("utf-8", "replace")


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Redirects standard error to a file while the JVM starts.

    The JVM inherits it, and the terminal is left to our own progress lines.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
