"""The command `opus export`: writes a ranked workflow as a file for another program.

It only reads the lake, and loads neither Dagster nor Spark nor torch.
"""

import sys
from pathlib import Path
from typing import Any

import click

from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.registry import declared

# The built-in formats, which the help shows. They are named here again, because importing the formats costs every
# command some time; a test holds that they agree.
EXPORT_FORMATS = ("bpmn", "mermaid", "json", "yaml")


class _FormatName(click.Choice[str]):
    """The name of an export format: one of FORMS, or one that an installed distribution adds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value in declared("export_formats") else super().convert(value, param, ctx)


@click.command()
@click.argument("workflow")
@click.option("--to", "form", type=_FormatName(EXPORT_FORMATS), help="Default: by the ending of --out, else yaml")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; without it, stdout."
)
@click.pass_obj
def export(options: Options, workflow: str, form: str | None, out: Path | None) -> None:
    """Write a ranked workflow as BPMN 2.0, Mermaid, or the JSON or YAML that `opus score` reads.

    WORKFLOW is an id that `opus best` shows, or the beginning of one.

    \b
    Example:
      opus export f3a9 --to bpmn --out claim.bpmn
      opus export f3a9 --out claim.yaml && opus score claim.yaml
    """
    from opus_pipelines.reporting.explain import find_workflow
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.workflows import read_workflow
    from opus_pipelines.workflow.formats.registry import exported, format_of_suffix

    connection = connect(options.lake())
    annotated = read_workflow(connection, find_workflow(connection, workflow))
    form = form or (format_of_suffix(out.suffix) if out else None) or "yaml"
    write(exported(annotated, form), out)


def write(content: bytes, out: Path | None) -> None:
    """Writes bytes to a file, or to stdout where no file or `-` is named.

    Raises InputError where the folder is missing.
    """
    if out is None or str(out) == "-":
        sys.stdout.buffer.write(content)  # bytes: a terminal's encoding may lack a title's letters
        sys.stdout.buffer.flush()
        return
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out.absolute().parent}: no such folder for {out.name}")
    out.write_bytes(content)
    click.echo(f"written: {out}", err=True)
