"""The entry point of `opus`: global options, all commands, and every error as one clear line with its exit code."""

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from opus_pipelines.cli.error_lines import guarded
from opus_pipelines.cli.options import NearestCommand, Options
from opus_pipelines.core.formatting import printable

MODULES = {  # the commands of each module of this package; a module is imported when one of its commands is used
    "bid": ("bid",),
    "conformance": ("conformance",),
    "decide": ("decide",),
    "evaluate": ("evaluate",),
    "flow": ("flow",),
    "forecast": ("forecast",),
    "forget": ("forget",),
    "init": ("init", "check", "discover"),
    "program": ("program",),
    "read": ("best", "explain", "export", "graph", "query", "report", "status", "tasks"),
    "score": ("score",),
    "train": ("models", "train"),
    "verify": ("verify",),
    "whatif": ("whatif",),
    "write": ("generate", "rebuild", "rollback", "sample", "ui"),
}
GROUPS = {  # the order of `opus --help`
    "Daily work": ("rebuild", "generate", "decide", "forecast", "init", "check", "sample"),
    "Looking at results": (
        "best",
        "explain",
        "status",
        "tasks",
        "graph",
        "discover",
        "report",
        "export",
        "query",
        "conformance",
        "whatif",
        "bid",
    ),
    "Flows and programs": ("flow", "program", "score"),
    "Models": ("train", "models", "evaluate"),
    "Settings and care": ("ui", "verify", "rollback", "forget", "completion"),
}
# commands that write nothing: of a lake in an object store they read one commit, beside whoever writes
READERS = frozenset(
    (
        "best",
        "bid",
        "conformance",
        "explain",
        "export",
        "graph",
        "query",
        "report",
        "score",
        "status",
        "tasks",
        "whatif",
    )
)
COMPLETION = "_OPUS_COMPLETE"  # the environment variable by which a shell asks
PLACES = {command: module for module, commands in MODULES.items() for command in commands}


class Commands(NearestCommand):
    """The commands of `opus`, each imported at its first use: most of the time of a short command was imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands."""
        return sorted({*PLACES, *self.commands})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in the groups by which a person looks for them."""
        longest = max(map(len, self.list_commands(ctx)))
        for title, names in GROUPS.items():
            with formatter.section(title):
                commands = [made for name in names if (made := self.get_command(ctx, name)) is not None]
                rows = [(str(made.name), made.get_short_help_str(formatter.width - 6 - longest)) for made in commands]
                formatter.write_dl([(name.ljust(longest), text) for name, text in rows])

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


@opus.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Write the script by which SHELL completes commands and options with the Tab key.

    Put it into a file that the shell reads when it starts:

    \b
    bash  ~/.local/share/bash-completion/completions/opus
    zsh   a file _opus in a folder of $fpath, for example ~/.zfunc
    fish  ~/.config/fish/completions/opus.fish

    \b
    Example:
      opus completion bash > ~/.local/share/bash-completion/completions/opus
    """
    from click.shell_completion import get_completion_class

    if made := get_completion_class(shell):
        click.echo(made(opus, {}, "opus", COMPLETION).source())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 failed, 2 wrong usage."""
    _open_streams()
    stated = list(sys.argv[1:] if arguments is None else arguments)
    if asked := os.environ.get(COMPLETION):  # a shell asks what may follow
        from click.shell_completion import shell_complete

        return shell_complete(opus, {}, "opus", COMPLETION, asked)

    def command() -> None:
        with opus.make_context("opus", list(stated)) as context:
            opus.invoke(context)

    return guarded(command, lambda: Options.lake_of(stated))


def _open_streams() -> None:
    """Opens what was closed of stdout and stderr on nothing: the next file would be called by its number otherwise."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


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
