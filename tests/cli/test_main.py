import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opus_pipelines.cli.error_lines import keep_trace
from opus_pipelines.cli.main import COMPLETION, GROUPS, main, opus
from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import SettingsError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import write_views_sql


@pytest.fixture
def empty_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_views_sql(Lake(tmp_path / "lake"))
    return tmp_path / "lake"


def test_the_commands_are_these() -> None:
    assert opus.list_commands(click.Context(opus)) == [
        "best",
        "bid",
        "check",
        "completion",
        "conformance",
        "decide",
        "discover",
        "evaluate",
        "explain",
        "export",
        "flow",
        "forecast",
        "forget",
        "generate",
        "graph",
        "init",
        "models",
        "program",
        "query",
        "rebuild",
        "report",
        "rollback",
        "sample",
        "score",
        "status",
        "tasks",
        "train",
        "ui",
        "verify",
        "whatif",
    ]


@pytest.mark.parametrize("name", opus.list_commands(click.Context(opus)))
def test_help_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert (
        f"Example:\n    opus {'--lake' if name in ('rebuild', 'generate', 'ui', 'forget') else name}"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "Usage: opus"),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
        (["best", "--format", "xml"], 2, "'xml' is not one of"),
        (["generate", "--contract", "x"], 2, "--contract needs --client"),
        (["query", "--set", "x", "ranking"], 2, "'x' is not NAME=VALUE"),
        (["--settings", "no.toml", "status"], 1, "opus: no.toml: no such settings file"),
        (["best"], 1, "opus: no ranked workflows yet; `opus generate` makes them"),
        (["explain", "f1"], 1, "opus: no current workflow is called 'f1'"),
        (["rebuild", "--history", "nowhere"], 1, "nowhere: no such history folder"),
        (["generate"], 1, "has no snapshot yet; `opus rebuild` makes one"),
        (["rebuild", "--history", "lake/x"], 1, "lies inside the lake"),
    ],
)
def test_what_goes_wrong_is_one_line_and_an_exit_code(
    empty_lake: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(arguments) == code
    written = capsys.readouterr()
    assert message in written.err + written.out
    assert "Traceback" not in written.err


def test_an_unexpected_error_is_a_line_and_its_trace_a_file(
    empty_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(opus.commands, "broken", click.Command("broken", callback=lambda: 1 / 0))
    assert main(["broken"]) == 1
    log = empty_lake / ".dagster" / "opus-errors.log"
    said = capsys.readouterr().err
    assert said.startswith("opus: unexpected: a calculation failed (ZeroDivisionError: division by zero)")
    assert said.endswith(f" {log}\n")
    assert "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_without_a_lake_the_trace_is_in_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    log = keep_trace(lambda: tmp_path / "none")
    assert log == tmp_path / "state" / "opus" / "opus-errors.log"
    assert log.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_is_a_line(
    empty_lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(opus.commands, "stopped", click.Command("stopped", callback=stopped))
    assert main(["stopped"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("opus: stopped")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("csv", "a,b,c\n1,,x\n"),
        ("json", '[\n {\n  "a": 1,\n  "b": null,\n  "c": "x"\n }\n]\n'),
        ("table", "a  b  c\n1  -  x\n"),
    ],
)
def test_query_writes_rows_to_stdout(
    empty_lake: Path, capsys: pytest.CaptureFixture[str], form: str, expected: str
) -> None:
    assert main(["query", "SELECT 1 AS a, NULL AS b, 'x' AS c", "--format", form]) == 0
    assert capsys.readouterr() == (expected, "")


def test_what_a_spreadsheet_could_run_is_escaped_and_counted(
    empty_lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "SELECT '=cmd|A0' AS \"=name\", '＝1' AS b, -5 AS c", "--format", "csv"]) == 0
    out, said = capsys.readouterr()
    assert out == "'=name,b,c\n'=cmd|A0,'＝1,-5\n"
    assert said.startswith("3 texts ")


@pytest.mark.long
def test_parquet_goes_to_stdout_as_bytes(empty_lake: Path) -> None:
    command = [sys.executable, "-m", "opus_pipelines.cli.main", "query", "SELECT 1 AS a", "--format", "parquet"]
    done = subprocess.run(command, capture_output=True, check=True, cwd=empty_lake.parent)
    assert done.stdout[:4] == b"PAR1"


def test_query_alone_lists_queries_and_views(empty_lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query"]) == 0
    out = capsys.readouterr().out
    assert "saving_against_history" in out
    assert "workflows_optimized" in out


HEAVY = (
    "dagster",
    "torch",
    "pyspark",
    "transformers",
    "faiss",
    "scipy",
    "sklearn",
    "pandas",
    "mlflow",
    "pyarrow.dataset",
)
ARROW = ("numpy", "pyarrow")  # a third of the CPU time of a command that only reads views


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["status"], HEAVY + ARROW),
        (["graph"], HEAVY),
        (["query", "ranking"], HEAVY + ARROW),
        (["best"], HEAVY + ARROW),
        (["explain", "f"], HEAVY + ARROW),
    ],
)
def test_reading_verbs_load_nothing_heavy(empty_lake: Path, arguments: list[str], heavy: tuple[str, ...]) -> None:
    code = (
        "import sys, json; from opus_pipelines.cli.main import main; "
        f"main({arguments!r}); print(json.dumps([m for m in {heavy!r} if m in sys.modules]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=empty_lake.parent
    )
    assert json.loads(done.stderr.splitlines()[-1]) == []


def test_the_command_line_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPUS_LAKE", "from-environment")
    assert Options().settings().paths.lake == tmp_path / "from-environment"
    assert Options(Path("from-option")).settings().paths.lake == tmp_path / "from-option"


def test_inputs_never_lie_inside_the_lake(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="lies inside the lake"):
        Options(tmp_path).settings(paths__history=tmp_path / "history")


def test_help_shows_every_command_in_one_group() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == opus.list_commands(click.Context(opus))
    text = CliRunner().invoke(opus, ["--help"]).output
    assert all(f"\n{title}:" in text for title in GROUPS)


@pytest.mark.parametrize(
    ("typed", "meant"), [(["genrate"], "generate"), (["flow", "convrt"], "convert"), (["program", "ran"], "run")]
)
def test_a_typing_error_is_answered_with_the_nearest_command(
    typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_opus_for_what_may_follow(shell: str) -> None:
    written = CliRunner().invoke(opus, ["completion", shell])
    assert written.exit_code == 0
    assert COMPLETION in written.output


def test_a_shell_is_told_the_commands_that_may_follow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {COMPLETION: "bash_complete", "COMP_WORDS": "opus re", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 0
    assert capsys.readouterr().out.split() == ["plain,rebuild", "plain,report"]
