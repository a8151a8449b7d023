"""The commands `opus flow outline|validate|score`: flows of an enterprise platform as JSON. They need no lake."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.enterprise_flows.catalogue import Catalogue
    from opus_pipelines.enterprise_flows.documents import FlowDocument, Input

_FILE = click.Path(path_type=Path, dir_okay=False)
_CATALOGUE = click.option(
    "--catalogue", type=_FILE, help="TOML or JSON of tables, triggers and actions. Default: that of an invented company"
)


@click.command()
@click.argument("requirement")
@_CATALOGUE
@click.option("--learn", type=_FILE, help='JSONL of {"requirement", "flow"}: annotated flows to learn from.')
@click.option("--inputs/--no-inputs", default=True, help="Fill the inputs of each step. Default: yes")
@click.option("--json", "as_json", is_flag=True, help="Write the flow as JSON.")
def outline(requirement: str, catalogue: Path | None, learn: Path | None, inputs: bool, as_json: bool) -> None:
    """Write the flow that REQUIREMENT asks for: trigger, steps and the words that each comes from. `-` reads stdin.

    Only steps, tables and columns of the catalogue can come out.

    \b
    Example:
      opus flow outline "When an incident is created, send an email to the caller."
    """
    from opus_pipelines.cli import show
    from opus_pipelines.enterprise_flows.composer import Composer
    from opus_pipelines.enterprise_flows.flow_examples import known, read_examples
    from opus_pipelines.enterprise_flows.flow_json import write
    from opus_pipelines.enterprise_flows.world.examples import examples

    text = sys.stdin.read() if requirement == "-" else requirement
    if learn is not None:
        found, rejected = read_examples(learn)
        for line in rejected[:5]:
            show.note(f"left out: {line}")
        flows = [example.flow for example in found]
    else:
        flows = [] if catalogue is not None else [flow for _, flow in known(examples())]
    composer = Composer(_catalogue(catalogue), flows)
    made = composer.flow(text) if inputs else composer.outline(text)
    if as_json:
        click.echo(write(made), nl=False)
        return
    rows = [(0, f"when {t.type}", _inputs(t.inputs), t.annotation) for t in made.triggers]
    rows += [(c.order, "  " * depth + c.name, _inputs(c.inputs), c.annotation) for depth, c in made.nested()]
    show.table(("order", "step", "inputs", "words of the requirement"), rows)


@click.command()
@click.argument("file", type=_FILE)
@_CATALOGUE
def validate(file: Path, catalogue: Path | None) -> None:
    """List the structure errors of the flow JSON in FILE, each with its element. The exit code is 1 where there is one.

    \b
    Example:
      opus flow validate flow.json --catalogue catalogue.toml
    """
    from opus_pipelines.cli import show
    from opus_pipelines.enterprise_flows.validation import structure_errors

    errors = structure_errors(_flow(file), _catalogue(catalogue))
    if not errors:
        click.echo(f"{file}: no structure error", err=True)
        return
    show.table(("error", "element", "reason"), [(e.code, e.element, e.message) for e in errors])
    raise click.exceptions.Exit(1)


@click.command()
@click.argument("file", type=_FILE)
@click.argument("references", type=_FILE, nargs=-1, required=True)
@_CATALOGUE
def score(file: Path, references: tuple[Path, ...], catalogue: Path | None) -> None:
    """Score the flow JSON in FILE against REFERENCES: FlowSim, TreeBLEU, trigger, components, unknown names.

    With several references each score is that of the one with the highest FlowSim.

    \b
    Example:
      opus flow score flow.json reference.json
    """
    from opus_pipelines.cli import show
    from opus_pipelines.enterprise_flows.scores import flow_scores

    found = flow_scores(_flow(file), [_flow(path) for path in references], _catalogue(catalogue))
    values = dataclasses.asdict(found).items()
    shown = [(name, "-" if v is None else str(v) if isinstance(v, int) else f"{v:.4f}") for name, v in values]
    show.table(("score", "value"), shown)


def _catalogue(path: Path | None) -> "Catalogue":
    from opus_pipelines.enterprise_flows.catalogue import read_catalogue
    from opus_pipelines.enterprise_flows.world.examples import world_catalogue

    return world_catalogue() if path is None else read_catalogue(path)


def _flow(path: Path) -> "FlowDocument":
    from opus_pipelines.enterprise_flows.flow_json import read

    try:
        return read(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _inputs(inputs: "Sequence[Input]") -> str:
    return " | ".join(f"{given.name}={given.value}" for given in inputs)
