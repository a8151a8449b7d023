"""`opus flow new` and the edit of a flow by an utterance. They load the sentence encoder, and no language model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.flow_generation.activities import ActivityCatalogue
    from opus_pipelines.flow_generation.generator import FlowWriter
    from opus_pipelines.flows.edits import Operation
    from opus_pipelines.flows.model import Flow

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
CATALOGUE_HELP = "JSON list of {id, description}. Default: the tasks of the current snapshot"
LEARN_HELP = "A folder of Flow-Bench's form whose flows are learnt from."


@click.command()
@click.argument("utterance")
@click.option("--catalogue", type=FILE, help=CATALOGUE_HELP)
@click.option("--learn", "learning", type=FOLDER, help=LEARN_HELP)
@click.option("--to", "form", default="python", show_default=True, help="The format; `opus flow formats` lists them.")
@click.option("-o", "--output", type=FILE, help="The file to write. Default: stdout")
@click.pass_obj
def new(
    options: Options, utterance: str, catalogue: Path | None, learning: Path | None, form: str, output: Path | None
) -> None:
    """Write the flow that UTTERANCE asks for. Each chosen step is listed on stderr with its probability.

    Only activities of the catalogue can come out; a step that none of them fits becomes a user task.

    \b
    Example:
      opus flow new "Retrieve all leads. For each lead, create an issue in Jira" --catalogue activities.json
    """
    from opus_pipelines.flows.formats.registry import written

    made = _writer(options, catalogue, learning).new(utterance)
    for step, probability in made.steps:
        click.echo(f"{probability:6.1%}  {step}", err=True)
    content, losses = written(made.flow, form)
    for loss in losses:
        click.echo(f"not kept: {loss.feature}: {loss.what}", err=True)
    if output is None:
        sys.stdout.buffer.write(content.rstrip(b"\n") + b"\n")
        return
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output.absolute().parent}: no such folder for the flow")
    output.write_bytes(content)
    click.echo(f"written: {output}", err=True)


def edited_by(
    options: Options, flow: "Flow", utterance: str, catalogue: Path | None
) -> "tuple[Flow, tuple[Operation, ...]]":
    """Returns the flow after the edits that an utterance asks for, and the operations, which go to stderr."""
    from opus_pipelines.flow_generation.editing import edited

    result = edited(_writer(options, catalogue, None), utterance, flow)
    for line in result.described:
        click.echo(line, err=True)
    return result.flow, result.operations


def _writer(options: Options, catalogue: Path | None, learning: Path | None) -> "FlowWriter":
    from opus_pipelines.embedding.encoder import encoder_of
    from opus_pipelines.flow_generation.activities import read_catalogue
    from opus_pipelines.flow_generation.flow_folder import read_folder
    from opus_pipelines.flow_generation.generator import learn

    found = read_catalogue(catalogue) if catalogue else _tasks(options)
    tasks = read_folder(learning).tasks if learning else ()
    return learn(found, tasks, encoder_of(options.settings().encoder))


def _tasks(options: Options) -> "ActivityCatalogue":
    """The tasks of the current snapshot as a catalogue."""
    from opus_pipelines.core.tables.wkg import TASKS
    from opus_pipelines.flow_generation.activities import catalogue_of_tasks
    from opus_pipelines.lake.layout import dataset_folder, read_table

    lake = options.lake()
    snapshot = lake.current_snapshot()
    if snapshot is None:
        raise InputError(f"{lake.root} has no snapshot; state --catalogue, or run opus rebuild first")
    folder = dataset_folder(lake.snapshot_folder(snapshot), TASKS)
    rows = read_table(TASKS, folder, columns=["title", "description"]).to_pylist()
    return catalogue_of_tasks([(row["title"] or "", row["description"] or "") for row in rows])
