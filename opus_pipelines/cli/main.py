"""The entry point of `opus`: global options, all commands, and every error as one clear line with its exit code."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from opus_pipelines.cli.decide import decide
from opus_pipelines.cli.error_lines import guarded
from opus_pipelines.cli.errors import errors
from opus_pipelines.cli.evaluate import evaluate
from opus_pipelines.cli.export import export
from opus_pipelines.cli.flow import flow
from opus_pipelines.cli.forecast import forecast
from opus_pipelines.cli.forget import forget
from opus_pipelines.cli.graph import graph
from opus_pipelines.cli.init import check, init
from opus_pipelines.cli.options import Options
from opus_pipelines.cli.program import program
from opus_pipelines.cli.read import best, explain, query, report, status, tasks
from opus_pipelines.cli.score import score
from opus_pipelines.cli.train import models, train
from opus_pipelines.cli.verify import verify
from opus_pipelines.cli.write import generate, rebuild, rollback, sample, ui
from opus_pipelines.core.safe_text import printable


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--lake",
    type=click.Path(path_type=Path),
    help="The folder for everything that is written (or OPUS_LAKE). Default: lake",
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
    context.obj = Options(lake, settings)
    _log_to_stderr()


for command in (
    init,
    check,
    sample,
    rebuild,
    generate,
    best,
    explain,
    decide,
    export,
    report,
    graph,
    query,
    score,
    train,
    models,
    evaluate,
    errors,
    forecast,
    flow,
    program,
    rollback,
    verify,
    status,
    tasks,
    ui,
    forget,
):
    opus.add_command(command)


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
