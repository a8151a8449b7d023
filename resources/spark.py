"""The Spark session: one a process, started by the first step that needs it, kept for later runs of the process."""

import os
import sys
from typing import TYPE_CHECKING

import dagster as dg

from opus_pipelines.settings import Spark as SparkSettings

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
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


class SparkResource(dg.ConfigurableResource):
    """The settings' [spark] section; nothing is started before `session` is called."""

    master: str
    driver_memory: str
    shuffle_partitions: int
    conf: dict[str, str]

    @classmethod
    def of(cls, settings: SparkSettings) -> "SparkResource":
        """The resource that these settings describe."""
        return cls(**settings.model_dump())

    def session(self) -> "SparkSession":
        """The process's session."""
        from pyspark.sql import SparkSession

        # Python workers take python3 from the PATH unless told, and that one lacks our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(self.master).appName("opus")
        conf = CONF | {"spark.driver.memory": self.driver_memory, "spark.sql.shuffle.partitions": str(self.shuffle_partitions)} | self.conf
        for key, value in conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session
