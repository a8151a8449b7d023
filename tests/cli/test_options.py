"""Which folders a command uses: those stated, else those that the lake was made from, else the defaults."""

import os
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.cli.options import Options
from opus_pipelines.lake.version import record_inputs, recorded_inputs


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake that was made from two folders, and a working directory elsewhere."""
    for name in ("history", "intakes"):
        (tmp_path / "client" / name).mkdir(parents=True)
        record_inputs(tmp_path / "lake", name, tmp_path / "client" / name)
    (tmp_path / "elsewhere" / "history").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def test_folders_that_the_lake_was_made_from_are_used_where_nothing_is_stated(made: Path) -> None:
    paths = Options(made / "lake").settings().paths
    assert (paths.history, paths.intakes) == (made / "client" / "history", made / "client" / "intakes")


def test_what_is_stated_wins(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        Options(made / "lake").settings(paths__history=Path("history")).paths.history == made / "elsewhere" / "history"
    )
    monkeypatch.setenv("OPUS_INTAKES", str(made / "other"))
    assert Options(made / "lake").settings().paths.intakes == made / "other"
    Path("opus.toml").write_text('[paths]\nhistory = "mine"\n')
    assert Options(made / "lake").settings().paths.history == made / "elsewhere" / "mine"


def test_a_folder_that_is_gone_and_a_lake_that_knows_none(made: Path) -> None:
    (made / "client" / "intakes").rmdir()
    assert recorded_inputs(made / "lake") == {"history": made / "client" / "history"}
    assert Options(made / "lake").settings().paths.intakes == made / "elsewhere" / "intakes"
    assert Options(made / "new").settings().paths.history == made / "elsewhere" / "history"
    with pytest.raises(ValueError, match="'lake' is no input of a lake"):
        record_inputs(made / "lake", "lake", made)


def test_the_ui_has_the_folders_that_the_lake_was_made_from(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(os, "execv", lambda _, arguments: started.append(arguments))
    assert main(["--lake", str(made / "lake"), "ui"]) == 0
    assert started[0][1] == "dev"
    assert os.environ["OPUS_HISTORY"] == str(made / "client" / "history")
    assert os.environ["OPUS_INTAKES"] == str(made / "client" / "intakes")
    assert os.environ["OPUS_LAKE"] == str(made / "lake")
    # Dagster starts in the lake: no .env and no module of the working directory is read
    assert Path.cwd() == made / "lake" / ".dagster"
    assert (os.environ["OPUS_FOLDER"], os.environ["PYTHONSAFEPATH"]) == (str(made / "elsewhere"), "1")
