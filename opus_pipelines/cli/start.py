"""Where the program `opus` begins. Loading the commands takes a second, in which Ctrl-C must be a line as well."""

import sys
from collections.abc import Callable


def _commands() -> Callable[[], int]:
    from opus_pipelines.cli.main import main

    return main


def main(load: Callable[[], Callable[[], int]] = _commands) -> int:
    """Loads the command line and runs one command. Returns its exit code."""
    try:
        return load()()
    except KeyboardInterrupt:  # before the commands can catch it
        sys.stderr.write("opus: stopped before it began\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
