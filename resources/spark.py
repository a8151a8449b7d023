"""The Spark session: one a process, started by the first step that needs it, kept for later runs of the process."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from opus_pipelines.errors import SettingsError
from opus_pipelines.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # a client called 007 stays "007"
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


class SparkResource(dg.ConfigurableResource):
    """The settings' [spark] section; nothing is started before `session` is called. `log` takes what the JVM says."""

    master: str
    driver_memory: str
    shuffle_partitions: int
    conf: dict[str, str]
    log: str

    @classmethod
    def of(cls, settings: Settings) -> "SparkResource":
        """The resource that these settings describe."""
        return cls(**settings.spark.model_dump(), log=str(settings.paths.lake / ".dagster" / "spark.log"))

    def session(self) -> "SparkSession":
        """The process's session; raises SettingsError where it cannot be started."""
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

        # Python workers take python3 from the PATH unless told, and that one lacks our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(self.master).appName("opus")
        conf = CONF | {"spark.driver.memory": self.driver_memory, "spark.sql.shuffle.partitions": str(self.shuffle_partitions)} | self.conf
        for key, value in conf.items():
            builder = builder.config(key, value)
        try:
            with _stderr_to(Path(self.log)):
                session = builder.getOrCreate()
        except (PySparkRuntimeError, FileNotFoundError) as error:
            raise SettingsError(f"Spark does not start ({error}): it needs Java 17 or later; see {self.log}") from None
        session.sparkContext.setLogLevel("ERROR")
        return session


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Standard error into a file while the JVM is started: it inherits that, and the terminal is left to our own progress lines."""
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
