"""The error door of `opus`: whatever a command raises becomes one line that a person understands, and an exit code.

Errors with a message for a person are shown as they are. Of all others the line says what kind of thing went wrong and
what to look at, and the full trace goes to a log.
"""

import contextlib
import errno
import os
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import click

from opus_pipelines.core.errors import STOPPED, OpusError
from opus_pipelines.core.formatting import clean, printable

DONE, FAILED, USAGE = 0, 1, 2
_DAMAGE = "`opus verify` tells whether a file of the lake is the cause"  # only a hash that differs shows damage
_INTERRUPTED_IN_DUCKDB = "Query interrupted"  # a RuntimeError that DuckDB raises on Ctrl-C instead of its own error
_MOST = 300  # characters of an error's own words
# what a foreign error means, by the package that raises it
_PACKAGES = {
    "duckdb": f"DuckDB cannot do it: {_DAMAGE}",
    "_duckdb": f"DuckDB cannot do it: {_DAMAGE}",
    "pyarrow": f"a Parquet file cannot be read or written: {_DAMAGE}",
    "faiss": f"the search index cannot be read: {_DAMAGE}",
    "py4j": "Spark failed; its log is in .dagster/spark.log of the lake",
    "pyspark": "Spark failed; its log is in .dagster/spark.log of the lake",
    "dagster": "Dagster failed; `opus ui` shows the run",
    "sqlalchemy": f"a database of Dagster or MLflow in the lake cannot be used: {_DAMAGE}",
    "sqlite3": f"a database of Dagster or MLflow in the lake cannot be used: {_DAMAGE}",
    "mlflow": "MLflow failed",
    "torch": "a model cannot be used",
    "safetensors_rust": "a model's file cannot be read",
    "pydantic_core": f"a record does not have its declared form: {_DAMAGE}",
    "yaml": "a YAML file cannot be read",
    "lxml": "an XML file cannot be read",
    "zipfile": "an archive is damaged",
    "zlib": "a compressed file is damaged or cut off",
    "subprocess": "a program that opus started failed",
    "jinja2": "a page cannot be written",
}
# what a built-in error means, the first that fits
_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (MemoryError, "memory was not enough; close other programs, or do less at once"),
    (RecursionError, "something that was read is nested too deeply"),
    (UnicodeEncodeError, "a text has characters that cannot be written here; set PYTHONIOENCODING=utf-8"),
    (UnicodeError, "a text is not in the encoding that it should have (UTF-8)"),
    (EOFError, f"a file ended too early: {_DAMAGE}"),
    (ImportError, "a package that opus needs is missing or broken; install again with `make`"),
    (LookupError, f"a record lacks what it should have: {_DAMAGE}"),
    (ArithmeticError, "a calculation failed"),
    (ValueError, f"a value is not what it should be: {_DAMAGE}"),
    (SyntaxError, "code could not be read; install again with `make`"),
)


def guarded(action: Callable[[], object], lake_of: Callable[[], Path]) -> int:
    """Runs a command and returns its exit code: 0 done, 1 failed, 2 wrong usage. It raises nothing.

    `lake_of` returns the lake, in whose error log the traces of unexpected errors are kept.
    """
    try:
        action()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.ClickException as error:
        error.show()
        return FAILED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else DONE if end.code is None else _said(str(end.code))
    except BrokenPipeError:
        _forget_stdout()
        return FAILED
    except BaseException as error:
        return _said(line_of(error, lambda: keep_trace(lake_of)))
    return DONE


def line_of(error: BaseException, keep: Callable[[], Path | None] = lambda: None) -> str:
    """Returns the line for a person. `keep` stores the trace of an error that nobody foresaw, and returns where."""
    if isinstance(error, KeyboardInterrupt | click.Abort) or _interrupted(error):
        return STOPPED
    if isinstance(error, OpusError):
        return printable(str(error)) or f"it failed without a reason ({type(error).__name__})"
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error)
    where = keep()
    trace = f"; the full trace is in {where}" if where is not None else ""
    own = clean(_own_words(error))[:_MOST]
    return f"unexpected: {_meaning(error)} ({type(error).__name__}: {own}){trace}"


def _meaning(error: BaseException) -> str:
    if (limit := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) != resource.RLIM_INFINITY:
        return f"no file may be larger than {limit:,} bytes here; raise the limit with `ulimit -f unlimited`"
    package = type(error).__module__.partition(".")[0]
    if package in _PACKAGES:
        return _PACKAGES[package]
    return next((meaning for kind, meaning in _KINDS if isinstance(error, kind)), "opus has a defect; please report it")


def _own_words(error: BaseException) -> str:
    """Returns an error's message; one whose message cannot be made has none."""
    try:
        text = str(error)
    except Exception:
        return "no message"
    return " ".join(text[: 10 * _MOST].split()) or "no message"


def _of_system(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{_of_file(error)}; make room, and run the command again"
    if error.errno == errno.EFBIG:
        return f"a file would be larger than it may be here{_of_file(error)}; `ulimit -f` shows the limit"
    if error.errno == errno.EMFILE:
        return "too many files are open; raise the limit with `ulimit -n 4096`"
    return clean(_own_words(error))[:_MOST]


def _of_file(error: OSError) -> str:
    return f" ({clean(os.fsdecode(error.filename))})" if isinstance(error.filename, str | bytes) else ""


def _interrupted(error: BaseException) -> bool:
    """Tells whether a library wrapped Ctrl-C into an error of its own."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if isinstance(link, KeyboardInterrupt) or type(link).__name__ in (
            "InterruptException",
            "DagsterExecutionInterruptedError",
        ):
            return True
        if isinstance(link, RuntimeError) and str(link) == _INTERRUPTED_IN_DUCKDB:
            return True
        link = link.__cause__
    return False


def keep_trace(lake_of: Callable[[], Path]) -> Path | None:
    """Appends the trace to the lake's error log, or to one in the user's folder of states; only the user can read it.

    Returns None where it cannot. A log in the folder of temporary files would be everybody's.
    """
    try:
        lake = lake_of()
        folder = lake / ".dagster" if lake.is_dir() else _user_folder()
    except Exception:
        folder = _user_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "opus-errors.log"
        from opus_pipelines.history.records.private_text import mask_text  # its patterns take a quarter of a second

        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        os.fchmod(handle, 0o600)  # a log that an earlier version made is readable by others
        with os.fdopen(handle, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(mask_text(traceback.format_exc()) + "\n")
    except Exception:
        return None
    return path


def _user_folder() -> Path:
    """Returns the folder for states of this user (XDG Base Directory Specification)."""
    stated = os.environ.get("XDG_STATE_HOME")
    return (Path(stated) if stated else Path.home() / ".local" / "state") / "opus"


def _said(message: str) -> int:
    try:
        click.echo(f"opus: {message}", err=True)
    except UnicodeEncodeError:
        click.echo(f"opus: {message.encode('ascii', 'backslashreplace').decode()}", err=True)
    except (OSError, KeyboardInterrupt):
        pass  # nobody reads stderr
    return FAILED


def _forget_stdout() -> None:
    """The interpreter flushes stdout once more at its end, which would raise again.

    A stdout without a descriptor is no pipe. The signal SIGPIPE stays ignored: a program that calls `main`, such as a
    test or a server, would be killed by its next write to a closed connection.
    """
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
