"""The Spark session and GraphFrames' JVM half: what a person reads where it cannot be had, and that the process can go
on.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Settings
from resources.spark import (
    FOR_SMALL_INPUT,
    JAVA_OPTIONS,
    OF_ENVIRONMENT,
    SMALL_BYTES,
    SparkResource,
    java_home,
    java_options,
)

NOWHERE = "io.nowhere:nothing_2.13:0.0.1"
# Each in a process of its own: the tests' shared session would be in the way.
ASK = """
import json, sys
from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Settings
from resources.spark import SparkResource

settings = Settings.model_validate(json.loads(sys.argv[1]))
said = []
try:
    SparkResource.of(settings).graph_session()
except SettingsError as error:
    said.append(str(error))
local = settings.model_copy(update={"graph": settings.graph.model_copy(update={"engine": "local"})})
session = SparkResource.of(local).session(int(sys.argv[2]))
print(json.dumps([*said, session.range(3).count(), session.conf.get("spark.driver.extraJavaOptions", "none")]))
"""


def settings(lake: Path, **graph: str) -> Settings:
    ivy = lake / "ivy.xml"
    ivy.write_text(
        '<ivysettings><settings defaultResolver="here"/><resolvers><filesystem name="here">'
        f'<artifact pattern="{lake}/[artifact]-[revision].[ext]"/></filesystem></resolvers></ivysettings>'
    )
    conf = {"spark.jars.ivySettings": str(ivy), "spark.jars.ivy": str(lake / "ivy")}
    spark = {"master": "local[1]", "driver_memory": "512m", "conf": conf}
    return Settings.model_validate({"paths": {"lake": str(lake)}, "spark": spark, "graph": graph})


@pytest.mark.nightly
@pytest.mark.spark
def test_a_package_that_cannot_be_fetched_is_named_and_the_next_session_starts(tmp_path: Path) -> None:
    asked = settings(tmp_path, engine="graphframes", graphframes_package=NOWHERE).model_dump(mode="json", by_alias=True)
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(asked), "1000"], capture_output=True, text=True, timeout=300, check=True
    )
    complaint, rows, java = json.loads(done.stdout.splitlines()[-1])
    assert complaint.startswith(f'graph.graphframes_package = "{NOWHERE}" cannot be fetched')
    assert "OPUS_GRAPHFRAMES_JARS" in complaint
    assert 'graph.engine = "local"' in complaint
    assert rows == 3
    assert java == "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what reads a thousand bytes is over before C2 pays


@pytest.mark.nightly  # two sessions, half a minute; a package that cannot be fetched is tried in the default run
@pytest.mark.spark
def test_jars_without_graphframes_are_named_and_the_next_session_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.jar").write_bytes(b"PK\x05\x06" + bytes(18))
    monkeypatch.setenv("OPUS_GRAPHFRAMES_JARS", str(tmp_path / "empty.jar"))
    asked = settings(tmp_path).model_dump(mode="json", by_alias=True)
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(asked), str(2**30)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    complaint, rows, java = json.loads(done.stdout.splitlines()[-1])
    assert complaint.startswith(f"OPUS_GRAPHFRAMES_JARS={tmp_path}/empty.jar does not hold GraphFrames ")
    assert rows == 3
    assert "TieredStopAtLevel" not in java


def test_a_jar_that_is_not_there_is_named_before_spark_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPUS_GRAPHFRAMES_JARS", f"{tmp_path}/a.jar, {tmp_path}/b.jar")
    (tmp_path / "a.jar").touch()
    with pytest.raises(SettingsError, match=f"^OPUS_GRAPHFRAMES_JARS: no such file {tmp_path}/b.jar$"):
        SparkResource.of(settings(tmp_path, engine="graphframes")).session()


@pytest.mark.parametrize(
    ("size", "conf", "variable", "expected"),
    [
        (0, {}, None, {JAVA_OPTIONS: FOR_SMALL_INPUT}),
        (SMALL_BYTES, {}, None, {}),
        (0, {JAVA_OPTIONS: "-XX:+UseG1GC"}, None, {}),
        (0, {}, "JAVA_TOOL_OPTIONS", {}),
    ],
)
def test_options_of_a_person_replace_those_of_a_small_input(
    monkeypatch: pytest.MonkeyPatch, size: int, conf: dict[str, str], variable: str | None, expected: dict[str, str]
) -> None:
    for name in OF_ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "-XX:+UseParallelGC")
    assert java_options(size, conf) == expected


def java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-16' >&2\n")
    program.chmod(0o755)
    return home


def test_a_java_is_looked_for_where_spark_starts_and_one_line_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", "11.0.2")))
    with pytest.raises(SettingsError) as error:
        java_home([tmp_path / "jvm"])
    assert str(error.value).startswith("Spark needs Java 17 or later")
    assert "\n" not in str(error.value)
    java(tmp_path / "jvm" / "java-21", "21.0.1")
    assert java_home([tmp_path / "jvm"]) == tmp_path / "jvm" / "java-21"


def test_the_first_run_of_a_checkout_asks_for_no_java() -> None:
    root = Path(__file__).resolve().parents[2]
    recipe = subprocess.run(["make", "-n", "run"], cwd=root, capture_output=True, text=True, timeout=60, check=True)
    assert "java" not in recipe.stdout.lower()
