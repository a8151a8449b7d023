"""`opus export`: a ranked workflow as a file for another program. It only reads; neither Dagster nor Spark nor torch
is loaded.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.workflow.formats.annotated import AnnotatedWorkflow

FORMS = ("bpmn", "mermaid", "json", "yaml")
_ENDINGS = {".bpmn": "bpmn", ".mmd": "mermaid", ".mermaid": "mermaid", ".json": "json", ".yaml": "yaml", ".yml": "yaml"}


@click.command()
@click.argument("workflow")
@click.option("--to", "form", type=click.Choice(FORMS), help="Default: by the ending of --out, else yaml")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; without it, stdout."
)
@click.pass_obj
def export(options: Options, workflow: str, form: str | None, out: Path | None) -> None:
    """A ranked workflow as BPMN 2.0, Mermaid, or the JSON or YAML that `opus score` reads.

    WORKFLOW is an id that `opus best` shows, or the beginning of one.

    \b
    Example:
      opus export f3a9 --to bpmn --out claim.bpmn
      opus export f3a9 --out claim.yaml && opus score claim.yaml
    """
    from opus_pipelines.reporting.explain import find_workflow
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.workflows import read_workflow

    connection = connect(options.lake())
    found = read_workflow(connection, find_workflow(connection, workflow))
    form = form or (_ENDINGS.get(out.suffix.casefold()) if out else None) or "yaml"
    write(_bytes(found, form), out)


def write(content: bytes, out: Path | None) -> None:
    """Bytes to a file, or to stdout where none is named (or `-`)."""
    if out is None or str(out) == "-":
        sys.stdout.buffer.write(content)  # bytes: a terminal's encoding may lack a title's letters
        sys.stdout.buffer.flush()
        return
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out.absolute().parent}: no such folder for {out.name}")
    out.write_bytes(content)
    click.echo(f"written: {out}", err=True)


def _bytes(found: "AnnotatedWorkflow", form: str) -> bytes:
    from opus_pipelines.workflow.formats.bpmn import as_bpmn
    from opus_pipelines.workflow.formats.json_yaml import as_json, as_yaml
    from opus_pipelines.workflow.formats.mermaid import as_mermaid

    if form == "bpmn":
        return as_bpmn(found)
    text = as_mermaid(found) if form == "mermaid" else as_json(found.file) if form == "json" else as_yaml(found.file)
    return text.encode()
