"""Where Dagster's record of runs is said to be: in the lake's dagster.yaml, by the names of variables alone."""

from pathlib import Path

import pytest
import yaml

from opus_pipelines.core.errors import LakeError, SettingsError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.run_storage import VARIABLES, instance_file, lost_in, rows, storage_of, where

RUNS = "SELECT run_id FROM runs"
SET = {
    "DAGSTER_PG_HOST": "127.0.0.1",
    "DAGSTER_PG_DB": "dagster",
    "DAGSTER_PG_USERNAME": "opus",
    "DAGSTER_PG_PASSWORD": "6vQsecret",
    "DAGSTER_PG_PORT": "9",
}


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in SET.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def lake_with(folder: Path, text: str) -> Lake:
    lake = Lake(folder)
    lake.dagster_home.mkdir(parents=True)
    (lake.dagster_home / "dagster.yaml").write_text(text)
    return lake


def test_the_file_names_variables_and_no_value(tmp_path: Path, variables: pytest.MonkeyPatch) -> None:
    text = instance_file("telemetry: {enabled: false}\n", "postgres")
    assert [value for value in SET.values() if value in text.replace("scheme: postgresql", "")] == []
    stated = yaml.safe_load(text)
    assert stated["telemetry"] == {"enabled": False}
    assert stated["storage"]["postgres"]["postgres_db"] == {
        **{key: {"env": name} for key, name in VARIABLES.items()},
        "port": {"env": "DAGSTER_PG_PORT"},
        "scheme": "postgresql+psycopg2",
    }
    variables.delenv("DAGSTER_PG_PORT")
    assert yaml.safe_load(instance_file("", "postgres"))["storage"]["postgres"]["postgres_db"]["port"] == 5432
    lake = lake_with(tmp_path, text)
    assert storage_of(lake) == "postgres"
    assert ".db" not in where(lake, "r1")


def test_without_postgres_the_file_is_the_common_one_and_the_record_lies_in_the_lake(tmp_path: Path) -> None:
    assert instance_file("telemetry: {enabled: false}\n", "sqlite") == "telemetry: {enabled: false}\n"
    lake = lake_with(tmp_path, "telemetry: {enabled: false}\n")
    assert storage_of(lake) == storage_of(Lake(tmp_path / "none")) == "sqlite"
    assert "history/runs/r1.db" in where(lake, "r1")
    assert rows(lake, RUNS) == []


@pytest.mark.parametrize("missing", VARIABLES.values())
def test_a_variable_that_is_not_set_is_named(variables: pytest.MonkeyPatch, missing: str) -> None:
    variables.setenv(missing, "")
    with pytest.raises(SettingsError, match=missing) as refusal:
        instance_file("", "postgres")
    assert "DAGSTER_PG_DB" not in str(refusal.value).replace(missing, "")


@pytest.mark.parametrize(
    "stated", ["postgres_db: {hostname: {env: DAGSTER_PG_HOST}, port: 9}", "postgres_url: {env: U}"]
)
def test_a_server_that_does_not_answer_is_one_line_without_the_password(
    tmp_path: Path, variables: pytest.MonkeyPatch, stated: str
) -> None:
    variables.setenv("U", "postgresql://opus:6vQsecret@127.0.0.1:9/dagster")
    lake = lake_with(tmp_path, f"storage: {{postgres: {{{stated}}}}}\n")
    with pytest.raises(LakeError, match="Postgres cannot be used") as refusal:
        rows(lake, RUNS)
    assert "6vQsecret" not in str(refusal.value)
    variables.delenv("U")
    variables.delenv("DAGSTER_PG_HOST")
    with pytest.raises(LakeError, match="is not set"):
        rows(lake, RUNS)


def test_a_lost_connection_is_told_from_other_errors() -> None:
    import psycopg2

    with pytest.raises(RuntimeError) as failure:
        fail_as_dagster_does(psycopg2.OperationalError("server closed the connection unexpectedly"))
    assert lost_in(failure.value)
    assert not lost_in(ValueError("a value"))


def fail_as_dagster_does(reason: Exception) -> None:
    try:
        raise reason
    except Exception as error:
        raise RuntimeError("the step failed") from error
