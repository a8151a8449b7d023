"""The entry point of `opus`: global options, all commands, and every error as one clear line with its exit code."""

import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from opus_pipelines.cli.error_lines import guarded
from opus_pipelines.cli.options import Options
from opus_pipelines.core.formatting import printable

MODULES = {  # the commands of each module of this package; a module is imported when one of its commands is used
    "decide": ("decide",),
    "errors": ("errors",),
    "evaluate": ("evaluate",),
    "export": ("export",),
    "flow": ("flow",),
    "forecast": ("forecast",),
    "forget": ("forget",),
    "graph": ("graph",),
    "init": ("init", "check", "discover"),
    "program": ("program",),
    "read": ("best", "explain", "query", "report", "status", "tasks"),
    "score": ("score",),
    "train": ("models", "train"),
    "verify": ("verify",),
    "write": ("generate", "rebuild", "rollback", "sample", "ui"),
}
# commands that write nothing: of a lake in an object store they read one commit, beside whoever writes
READERS = frozenset(("best", "errors", "explain", "export", "graph", "query", "report", "score", "status", "tasks"))
PLACES = {command: module for module, commands in MODULES.items() for command in commands}


class Commands(click.Group):
    """The commands of `opus`, each imported at its first use: most of the time of a short command was imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands."""
        return sorted({*PLACES, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of that name, or None."""
        if cmd_name not in self.commands and cmd_name in PLACES:
            module = importlib.import_module(f"opus_pipelines.cli.{PLACES[cmd_name]}")
            self.add_command(getattr(module, cmd_name))
        return super().get_command(ctx, cmd_name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--lake",
    type=click.Path(path_type=Path),
    help="The folder for everything that is written, or s3://bucket/prefix (or OPUS_LAKE). Default: lake",
)
@click.option(
    "--settings",
    type=click.Path(path_type=Path),
    help="Settings file. Default: opus.toml of the working directory, which may not set what runs code",
)
@click.version_option(package_name="opus-pipelines")
@click.pass_context
def opus(context: click.Context, lake: Path | None, settings: Path | None) -> None:
    """From a company's history of work to the workflows it should run next.

    \b
    Example:
      opus sample demo
      opus --lake demo/lake rebuild --history demo/history
      opus --lake demo/lake generate --intakes demo/intakes
      opus --lake demo/lake best
    """
    context.obj = Options(lake, settings, context.invoked_subcommand in READERS)
    _log_to_stderr()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 failed, 2 wrong usage."""
    stated = list(sys.argv[1:] if arguments is None else arguments)

    def command() -> None:
        with opus.make_context("opus", list(stated)) as context:
            opus.invoke(context)

    return guarded(command, lambda: Options.lake_of(stated))


def _log_to_stderr() -> None:
    """Shows the progress of long stages on stderr."""
    logger = logging.getLogger("opus_pipelines")
    if not any(isinstance(handler, _Progress) for handler in logger.handlers):
        logger.addHandler(_Progress())
    logger.setLevel(logging.INFO)
    logger.propagate = False


class _Progress(logging.Handler):
    """Writes one line for each log record, with the seconds since the process began."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one log record."""
        mark = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        click.echo(f"{record.relativeCreated / 1000:7.1f} s  {mark}{printable(record.getMessage())}", err=True)


if __name__ == "__main__":
    sys.exit(main())
