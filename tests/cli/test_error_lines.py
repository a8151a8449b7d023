"""The error door: every exception class that can reach the command line becomes one line and an exit code."""

import builtins
import errno
import json
import signal
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import duckdb
import pyarrow as pa
import pytest
import yaml
from lxml import etree
from pydantic import BaseModel, ValidationError

from opus_pipelines.cli import start
from opus_pipelines.cli.error_lines import DONE, FAILED, USAGE, guarded, line_of
from opus_pipelines.core import errors
from opus_pipelines.core.errors import STOPPED, CheckResult
from opus_pipelines.flows.enterprise.values import QueryError
from opus_pipelines.flows.programs.tools import ToolError
from opus_pipelines.wkg.checks import CasesLost


def classes(base: type[BaseException]) -> Iterator[type[BaseException]]:
    """The class and all that inherit from it."""
    yield base
    for inner in base.__subclasses__():
        yield from classes(inner)


BUILT_IN = [value for value in vars(builtins).values() if isinstance(value, type) and issubclass(value, Exception)]
FOREIGN = [*classes(duckdb.Error), *classes(pa.ArrowException), zipfile.BadZipFile, zlib.error, yaml.YAMLError]
OWN = list(classes(errors.OpusError))
NEED_ARGUMENTS: dict[type[BaseException], tuple[object, ...]] = {
    UnicodeDecodeError: ("utf-8", b"\xff", 0, 1, "invalid start byte"),
    UnicodeEncodeError: ("ascii", "ü", 0, 1, "ordinal not in range(128)"),
    UnicodeTranslateError: ("ü", 0, 1, "no mapping"),
    ExceptionGroup: ("several", [ValueError("one")]),
    CasesLost: (CheckResult("a", False, "a\nmessage\x1b[31m", "history/sources"),),
    QueryError: ("the value has no end", 3),
    ToolError: ("failed", "a\nmessage\x1b[31m"),
}


class Unspeakable(Exception):
    """An error whose message cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no")


def shown(error: BaseException, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and what stderr says."""

    def fail() -> None:
        raise error

    return guarded(fail, lambda: tmp_path), capsys.readouterr().err


@pytest.mark.parametrize("kind", [*BUILT_IN, *FOREIGN, *OWN, Unspeakable], ids=lambda kind: kind.__name__)
def test_every_class_is_one_line_with_an_exit_code(
    kind: type[BaseException], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = NEED_ARGUMENTS.get(kind, ("a\nmessage\x1b[31m",))
    code, said = shown(kind(*arguments), tmp_path, capsys)
    if kind is BrokenPipeError:
        assert (code, said) == (FAILED, "")
        return
    assert code == FAILED
    assert said.startswith("opus: ")
    assert "Traceback" not in said
    assert all(line.isprintable() for line in said.splitlines())
    if kind not in OWN:  # their messages are written for a person, and may have lines
        assert said.count("\n") == 1


class Two(BaseModel):
    """A record with one number."""

    number: int


def of_pydantic() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Two.model_validate({"number": "x"})
    return caught.value


MEANINGS = {
    "odd pointer": (KeyError("snapshot"), "opus verify"),
    "no JSON": (json.JSONDecodeError("Expecting value", "x", 0), "opus verify"),
    "no record": (of_pydantic(), "opus verify"),
    "damaged Parquet": (pa.ArrowInvalid("magic bytes"), "opus verify"),
    "damaged dataset": (duckdb.IOException("magic bytes"), "opus verify"),
    "nested": (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
    "memory": (MemoryError(), "memory was not enough"),
    "text": (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "encoding"),
    "terminal": (UnicodeEncodeError("ascii", "ü", 0, 1, "not in range"), "PYTHONIOENCODING"),
    "package": (ModuleNotFoundError("No module named 'faiss'"), "make"),
    "disk": (OSError(errno.ENOSPC, "No space left on device", "/lake/x"), "the disk is full (/lake/x)"),
    "rights": (PermissionError(errno.EACCES, "Permission denied", "/lake/x"), "/lake/x"),
    "program": (subprocess.CalledProcessError(1, ["java"]), "program"),
    "XML": (etree.LxmlError("x"), "XML"),
    "defect": (AttributeError("'NoneType' object has no attribute 'x'"), "report it"),
}


@pytest.mark.parametrize(("error", "words"), MEANINGS.values(), ids=MEANINGS.keys())
def test_the_line_says_what_to_look_at(
    error: BaseException, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = shown(error, tmp_path, capsys)
    assert (code, words in said) == (FAILED, True)


def wrapped() -> RuntimeError:
    error = RuntimeError("the run failed")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), FAILED, f"opus: {STOPPED}\n"),
        (wrapped(), FAILED, f"opus: {STOPPED}\n"),
        (duckdb.InterruptException("INTERRUPT"), FAILED, f"opus: {STOPPED}\n"),
        (RuntimeError("Query interrupted"), FAILED, f"opus: {STOPPED}\n"),  # DuckDB, on Ctrl-C
        (click.Abort(), FAILED, f"opus: {STOPPED}\n"),
        (click.UsageError("no such option"), USAGE, "Error: no such option\n"),
        (click.ClickException("no"), FAILED, "Error: no\n"),
        (click.exceptions.Exit(0), DONE, ""),
        (SystemExit(), DONE, ""),
        (SystemExit(3), 3, ""),
        (SystemExit("why"), FAILED, "opus: why\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_ends_a_command_has_its_exit_code(
    error: BaseException, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(error, tmp_path, capsys) == (code, said)


def test_an_error_in_naming_the_lake_does_not_hide_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    def no_lake() -> Path:
        raise RecursionError

    def fail() -> None:
        raise KeyError("snapshot")

    assert guarded(fail, no_lake) == FAILED
    assert "snapshot" in capsys.readouterr().err


def test_no_message_is_a_line_too() -> None:
    assert line_of(errors.OpusError()) != ""
    assert line_of(OSError()).startswith("unexpected")


def test_ctrl_c_while_the_commands_are_loaded_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> Callable[[], int]:
        raise KeyboardInterrupt

    assert start.main(interrupted) == FAILED
    assert capsys.readouterr().err.startswith("opus: stopped")
    assert start.main(lambda: lambda: USAGE) == USAGE


def test_a_broken_pipe_does_not_change_what_the_process_does_at_the_next_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGPIPE)
    shown(BrokenPipeError(), tmp_path, capsys)
    assert signal.getsignal(signal.SIGPIPE) == before == signal.SIG_IGN


@pytest.mark.parametrize("error", [KeyError("b"), pa.ArrowNotImplementedError("interval"), duckdb.IOException("x")])
def test_no_error_says_that_the_lake_is_damaged(error: BaseException, tmp_path: Path) -> None:
    assert "damaged" not in line_of(error, lambda: tmp_path)


@pytest.mark.long
def test_a_closed_stdout_is_no_defect() -> None:
    command = f"{sys.executable} -m opus_pipelines.cli.main tasks --help >&-"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (DONE, "")


def test_a_file_over_the_limit_is_named() -> None:
    line = line_of(OSError(errno.EFBIG, "File too large", "a/part.parquet"))
    assert "a/part.parquet" in line
    assert "ulimit" in line
