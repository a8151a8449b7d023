"""Spark reads the objects of a commit, and writes beside them, by hadoop-aws and the modules of the SDK that it needs.

TEST_S3A_JARS names the folder of the jars of deploy/s3a/pom.xml.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.object_store.folders import origin_in
from opus_pipelines.lake.object_store.trees import addresses
from tests.lake.conftest import Place
from tests.published_lake import publish

JARS = Path(os.environ.get("TEST_S3A_JARS", ""))
_READ = """
import json, sys
from pyspark.sql import SparkSession
jars, endpoint, out, *files = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config("spark.jars", jars)
settings = {"endpoint": endpoint, "endpoint.region": "us-east-1", "path.style.access": "true",
    "connection.ssl.enabled": "false",
    "aws.credentials.provider": "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"}
for name, value in settings.items():
    builder = builder.config("spark.hadoop.fs.s3a." + name, value)
spark = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "700m").getOrCreate()
rows = {file: spark.read.parquet(file).count() for file in files}
spark.range(rows[files[0]]).write.parquet(out)
print(json.dumps([rows, spark.read.parquet(out).count()]))
spark.stop()
"""


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.skipif(not JARS.name, reason="TEST_S3A_JARS names no folder of jars; see deploy/s3a/pom.xml")
def test_spark_reads_the_objects_of_a_commit_and_writes_beside_them(place: Place) -> None:
    import pyarrow.parquet as pq

    lake = place.machine().lake()
    publish(lake)
    lake = Lake(lake.root)
    origin = origin_in(lake.root)
    assert origin is not None
    tables = {path: url for path, url in addresses(lake.root, origin).items() if path.endswith("part-00000.parquet")}
    rows = {url.replace("s3://", "s3a://"): pq.read_metadata(lake.root / path).num_rows for path, url in tables.items()}
    assert len(rows) > 5
    jars = ",".join(str(jar) for jar in sorted(JARS.glob("*.jar")))
    out = f"s3a://{place.bucket}/out of spark"
    done = subprocess.run(
        [sys.executable, "-c", _READ, jars, place.server.endpoint, out, *rows],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found, written = json.loads(done.stdout.splitlines()[-1])
    assert found == rows
    assert written == next(iter(rows.values()))
