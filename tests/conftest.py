"""What many tests share: one Spark session and one encoder, each started by the first test that asks for it."""

import os
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers take `python3` from PATH otherwise
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # tests are over before the second compiler pays: half the time
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    if jars := os.environ.get("OPUS_GRAPHFRAMES_JARS"):
        conf["spark.jars"] = jars
    builder = SparkSession.builder.master("local[2]").appName("opus-tests")
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def encoder() -> object:
    from opus_pipelines.embedding.encoder import Encoder

    return Encoder()
