"""Where the program `opus` begins. Loading the commands takes a second, in which Ctrl-C must be a line as well."""

import gc
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_STOPPED = "opus: stopped before it began\n"


def _commands() -> Callable[[], int]:
    gc.disable()  # what is loaded stays, so looking for garbage in it costs a sixth of a short command and finds none
    try:
        from opus_pipelines.cli.main import main
    finally:
        gc.freeze()
        gc.enable()
    return main


def main(load: Callable[[], Callable[[], int]] = _commands) -> int:
    """Loads the command line and runs one command. Returns its exit code."""
    try:
        return _loaded(load)()
    except KeyboardInterrupt:  # before the commands can catch it
        sys.stderr.write(_STOPPED)
        return 1


def _loaded(load: Callable[[], Callable[[], int]]) -> Callable[[], int]:
    """Loads the commands. Ctrl-C ends the process meanwhile: nothing has begun that an exception would have to tidy up.

    An exception inside a module that is written in C, as of DuckDB, would end the process with a trace.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody ignores the signal, or has other plans with it
        return load()
    signal.signal(signal.SIGINT, _end)
    try:
        return load()
    finally:
        signal.signal(signal.SIGINT, before)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, _STOPPED.encode())
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
