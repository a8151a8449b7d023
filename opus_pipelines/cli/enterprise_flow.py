"""The commands `opus flow outline|validate|score|compare`: flows of an enterprise platform. They need no lake."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.options import Options
from opus_pipelines.core.errors import InputError

if TYPE_CHECKING:
    from opus_pipelines.flows.enterprise.catalogue import Catalogue
    from opus_pipelines.flows.enterprise.documents import FlowDocument, Input
    from opus_pipelines.quality.platform_flows import ModelRow

_FILE = click.Path(path_type=Path, dir_okay=False)
_CATALOGUE = click.option(
    "--catalogue", type=_FILE, help="TOML or JSON of tables, triggers and actions. Default: that of an invented company"
)
WRITERS = ("composer", "catalogue", "nearest", "frequent")


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
    from opus_pipelines.flows.enterprise.composer import Composer
    from opus_pipelines.flows.enterprise.documents import document_text
    from opus_pipelines.flows.enterprise.examples import known, read_examples, world_examples

    text = sys.stdin.read() if requirement == "-" else requirement
    if learn is not None:
        found, rejected = read_examples(learn)
        show.left_out(rejected)
        flows = [example.flow for example in found]
    else:
        flows = [] if catalogue is not None else [flow for _, flow in known(world_examples())]
    composer = Composer(_catalogue(catalogue), flows)
    made = composer.flow(text) if inputs else composer.outline(text)
    if as_json:
        click.echo(document_text(made), nl=False)
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
    from opus_pipelines.flows.enterprise.validation import structure_errors

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
    from opus_pipelines.flows.scores import flow_scores

    scores = flow_scores(_flow(file), [_flow(path) for path in references], _catalogue(catalogue))
    values = dataclasses.asdict(scores).items()
    shown = [(name, "-" if v is None else str(v) if isinstance(v, int) else f"{v:.4f}") for name, v in values]
    show.table(("score", "value"), shown)


def _catalogue(path: Path | None) -> "Catalogue":
    from opus_pipelines.flows.enterprise.catalogue import read_platform_catalogue
    from opus_pipelines.flows.enterprise.examples import world_catalogue

    return world_catalogue() if path is None else read_platform_catalogue(path)


def _flow(path: Path) -> "FlowDocument":
    from opus_pipelines.flows.enterprise.documents import read_document

    try:
        return read_document(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _inputs(inputs: "Sequence[Input]") -> str:
    return " | ".join(f"{given.name}={given.value}" for given in inputs)


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(WRITERS), help="A writer; may be repeated.")
@click.option(
    "--examples", "file", type=_FILE, help='JSONL of {"requirement", "flow", "part"?}. Default: the invented ones'
)
@click.option("--catalogue", "catalogue_file", type=_FILE, help="The catalogue of --examples.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Only so many requirements of each kind, by the hash of their ids."
)
@click.option("--record", is_flag=True, help="Write the rows into the lake (view evaluations_flows), too.")
@click.option("--samples", type=_FILE, help="Write the first writer's flows with their scores here.")
@click.pass_obj
def compare(
    options: Options,
    models: tuple[str, ...],
    file: Path | None,
    catalogue_file: Path | None,
    limit: int | None,
    record: bool,
    samples: Path | None,
) -> None:
    """Compare writers of flows on held-out requirements: quality with 95 % intervals, structure errors, seconds.

    \b
    composer   learnt from the tune part
    catalogue  the same, having read the catalogue's texts only
    nearest    the flow of the most similar requirement of the tune part
    frequent   the most frequent flow of the tune part

    \b
    Example:
      opus flow compare --model composer --model nearest --samples samples.jsonl
    """
    from opus_pipelines.core.formatting import Ticker
    from opus_pipelines.core.ids import digest
    from opus_pipelines.flows.enterprise.catalogue import read_platform_catalogue
    from opus_pipelines.flows.enterprise.examples import HELD_OUT, known, read_examples, world_catalogue, world_examples
    from opus_pipelines.quality.platform_flows import PUBLISHED, flow_samples, flow_writers, model_rows, written_flows

    if (file is None) != (catalogue_file is None):
        raise InputError("--examples and --catalogue belong together")
    catalogue = world_catalogue() if catalogue_file is None else read_platform_catalogue(catalogue_file)
    found, rejected = (list(world_examples()), []) if file is None else read_examples(file)
    show.left_out(rejected)
    held_out = sorted((e for e in found if e.part == HELD_OUT), key=lambda e: (e.kind, digest(e.id)))
    kinds = dict.fromkeys(example.kind for example in held_out)
    asked = [example for kind in kinds for example in [e for e in held_out if e.kind == kind][:limit]]
    if not asked:
        raise InputError("no requirement is held out; state a part for each line of --examples")
    flows = [
        written_flows(writer, asked, catalogue, Ticker(writer.name, show.note))
        for writer in flow_writers(catalogue, found, models or WRITERS)
    ]
    rows = [_cells(row) for own in flows for row in model_rows(own, catalogue)]
    show.table(_HEAD, rows, f"{len(asked)} held-out requirements; learnt from {len(known(found))} others")
    if file is None:
        note = "Published, times 100, of other data and catalogues: for orientation only"
        show.table(("model", "what", "FlowSim"), PUBLISHED, note)
    if record:
        from opus_pipelines.core.schemas import EVALUATION_FLOWS
        from opus_pipelines.quality.platform_flows import evaluation_of
        from opus_pipelines.quality.score_rows import publish

        evaluation = evaluation_of([one for own in flows for one in own])
        publish(options.lake(), EVALUATION_FLOWS, evaluation)
        show.note(f"rows by requirement: evaluation {evaluation.id} in the view evaluations_flows")
    if samples is not None:
        samples.write_text("\n".join(flow_samples(flows[0])) + "\n", "utf-8")
        show.note(f"written: {samples}")


_HEAD = (
    "model",
    "kind",
    "n",
    "FlowSim",
    "outline",
    "validated",
    "bag of steps",
    "errors",
    "HS",
    "HT",
    "failed",
    "s",
    "p95",
)


def _cells(row: "ModelRow") -> tuple[str, ...]:
    def mean(name: str) -> str:
        own = row.means[name]
        return f"{own.mean:.3f} [{own.low:.3f}, {own.high:.3f}]"

    return (
        row.model,
        row.kind,
        str(row.n),
        mean("flowsim"),
        mean("flowsim_outline"),
        mean("valid_flowsim"),
        mean("bag_of_steps"),
        f"{row.structure_errors:.3f}",
        f"{row.hallucinated_steps:.3f}",
        f"{row.hallucinated_tables:.3f}",
        str(row.failed),
        f"{row.seconds:.4f}",
        f"{row.seconds_p95:.4f}",
    )
