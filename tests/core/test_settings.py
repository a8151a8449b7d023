from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Settings, load


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
