"""The commands `opus flow …`: convert, compare, write and edit block-structured flows, one by one or in a batch."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.cli import show
from opus_pipelines.cli.enterprise_flow import compare, outline, score, validate
from opus_pipelines.cli.options import NearestCommand, Options
from opus_pipelines.cli.write import batch
from opus_pipelines.core.errors import InputError, OpusError

if TYPE_CHECKING:
    from opus_pipelines.flows.from_text.activities import ActivityCatalogue
    from opus_pipelines.flows.from_text.generator import Made
    from opus_pipelines.flows.from_text.predictions import Make
    from opus_pipelines.workflow.blocks.formats.registry import Loss
    from opus_pipelines.workflow.blocks.model import Flow

_FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
CATALOGUE_HELP = "JSON list of {id, description}. Default: the tasks of the current snapshot"
LEARN_HELP = "A folder of Flow-Bench's form whose flows are learnt from."
BACKEND = click.option(
    "--backend",
    type=click.Choice(["ranker", "causal_lm", "openai_compatible"]),
    default="ranker",
    show_default=True,
    help="What writes; a language model sees flows of --learn as examples.",
)


@click.group(cls=NearestCommand)
def flow() -> None:
    """Convert, compare and edit flows: sequence, if, for, while, parallel, user task and call.

    \b
    Example:
      opus flow convert leads.py --to bpmn -o leads.bpmn
      opus flow diff before.bpmn after.bpmn
    """


@flow.command()
@click.argument("file", type=_FILE)
@click.option("--to", "form", required=True, help="The format to write; `opus flow formats` lists them.")
@click.option("--from", "source", help="The format of FILE. Default: by its ending")
@click.option("--duplicate", is_flag=True, help="Write steps that several ways of a BPMN share once for each way.")
@click.option("-o", "--output", type=_FILE, help="The file to write. Default: stdout")
def convert(file: Path, form: str, source: str | None, duplicate: bool, output: Path | None) -> None:
    """Write the flow in FILE in another format. What the format cannot keep is listed on stderr.

    \b
    Example:
      opus flow convert leads.py --to bpmn -o leads.bpmn
      opus flow convert leads.bpmn --to python
    """
    from opus_pipelines.workflow.blocks.formats.registry import read_flow, written

    content, losses = written(read_flow(file, source, duplicate), form)
    _warn(losses)
    show.file(content, output, "the flow")


@flow.command()
def formats() -> None:
    """List the formats of flows with the endings of their files and what they keep.

    \b
    Example:
      opus flow formats
    """
    from opus_pipelines.workflow.blocks.formats.registry import FLOW_FORMATS, Feature

    rows = []
    for name, form in FLOW_FORMATS.entries().items():
        lost = [str(feature) for feature in Feature if feature not in form.features]
        rows.append((name, " ".join(form.suffixes), "; ".join(lost)))
    show.table(("format", "endings", "does not keep"), rows)


@flow.command()
@click.argument("file", type=_FILE)
@click.option("--from", "source", help="The format of FILE. Default: by its ending")
def check(file: Path, source: str | None) -> None:
    """Read the flow in FILE and name every step that reads a variable which no step before it sets.

    A loop over its own variable and steps that need each other's results are found so.

    \b
    Example:
      opus flow check leads.bpmn
    """
    from opus_pipelines.workflow.blocks.expressions import FlowError
    from opus_pipelines.workflow.blocks.formats.registry import read_flow
    from opus_pipelines.workflow.blocks.model import read_before_set

    unset = read_before_set(read_flow(file, source))
    if unset:
        listed = "; ".join(f"step {step} reads {name}" for step, name in unset[:20])
        raise FlowError(f"{file}: {listed}: no step before it sets that variable")
    click.echo(f"{file}: every variable is set before it is read", err=True)


@flow.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Write the operations as JSON, as `opus flow edit` reads them.")
@click.option("--svg", type=_FILE, help="Draw both flows side by side into this file, changes in colour.")
def diff(before: Path, after: Path, as_json: bool, svg: Path | None) -> None:
    """List the edit operations that turn the flow in BEFORE into the one in AFTER; none where they are equal.

    \b
    Example:
      opus flow diff before.bpmn after.py
      opus flow diff before.py after.py --json > operations.json
      opus flow diff before.py after.py --svg difference.svg
    """
    from opus_pipelines.workflow.blocks.difference import difference
    from opus_pipelines.workflow.blocks.edit_files import operation_data
    from opus_pipelines.workflow.blocks.edits import described
    from opus_pipelines.workflow.blocks.formats.registry import read_flow

    old, new = read_flow(before), read_flow(after)
    operations = difference(old, new)
    if svg is not None:
        from opus_pipelines.reporting.pages.flows import difference_svg

        show.file(difference_svg(old, new).encode(), svg, "the flow")
    if as_json:
        click.echo(json.dumps([operation_data(operation) for operation in operations], indent=2, ensure_ascii=False))
        return
    for operation in operations:
        click.echo(described(operation))
    if not operations:
        click.echo("no difference", err=True)


@flow.command()
@click.argument("file", type=_FILE)
@click.option("--prior", type=_FILE, help="The flow before an edit; the page shows both and what changed.")
@click.option("--utterance", default="", help="What a person asked for.")
@click.option("--retrieved", type=_FILE, help="A JSON list of tables with activity, description and score.")
@click.option("-o", "--output", type=_FILE, required=True, help="The HTML file to write.")
def page(file: Path, prior: Path | None, utterance: str, retrieved: Path | None, output: Path) -> None:
    """Write a page about the flow in FILE: its picture, its text, what changed and what was retrieved.

    The page is one HTML file that loads nothing and runs no script.

    \b
    Example:
      opus flow page after.bpmn --prior before.bpmn -o after.html
    """
    from opus_pipelines.reporting.pages.flows import FlowPage, read_retrieved
    from opus_pipelines.reporting.pages.render import flow_page
    from opus_pipelines.workflow.blocks.formats.registry import read_flow

    try:
        rows = read_retrieved(retrieved.read_bytes()) if retrieved else ()
    except OSError as error:
        raise InputError(f"{retrieved}: {error.strerror or error}") from None
    before = read_flow(prior) if prior else None
    show.file(flow_page(FlowPage(read_flow(file), before, utterance, rows)).encode(), output, "the flow")


@flow.command()
@click.argument("file", type=_FILE)
@click.argument("utterances", metavar="UTTERANCE...", nargs=-1)
@click.option("--operations", type=_FILE, help="A JSON list, as `opus flow diff --json` writes it.")
@click.option("--catalogue", type=_FILE, help=CATALOGUE_HELP)
@click.option("--learn", "learning", type=FOLDER, help=LEARN_HELP)
@BACKEND
@click.option("-o", "--output", type=_FILE, help="The file to write, in the format of FILE. Default: stdout")
@click.option("--in-place", is_flag=True, help="Change FILE itself; `opus flow undo FILE` takes each turn back.")
@click.pass_obj
def edit(
    options: Options,
    /,
    file: Path,
    utterances: tuple[str, ...],
    operations: Path | None,
    output: Path | None,
    in_place: bool,
    **how: Any,
) -> None:
    """Edit the flow in FILE by an UTTERANCE, or by edit operations that name steps by their ids.

    Several utterances are turns: each edits what the one before it left. The operations that an utterance becomes are
    listed on stderr. A BPMN file keeps the ids and the layout of all that no operation touches. Where a
    turn fails, nothing of it is written; with --in-place the turns before it stay. A language model writes the whole
    flow after the edit, within the catalogue; the operations are the difference.

    \b
    Example:
      opus flow edit leads.bpmn "Remove the slack message" --catalogue activities.json -o edited.bpmn
      opus flow edit leads.bpmn "Send an email at the end" "Remove the first step" --in-place
      opus flow edit leads.bpmn --operations operations.json -o edited.bpmn
    """
    from opus_pipelines.workflow.blocks.edit_files import edit_file

    if bool(utterances) == (operations is not None):
        raise InputError("opus flow edit takes utterances or --operations, one of the two")
    if in_place and output is not None:
        raise InputError("--in-place changes FILE itself; leave -o out")
    content = b""
    for request, lines, content in _turns(options, file, utterances or operations, how):
        if in_place:
            left = edit_file(file, content, request, lines)
            click.echo(f"written: {file} ({left} {'turn' if left == 1 else 'turns'} can be undone)", err=True)
    if not in_place:
        show.file(content, output, "the flow")


@flow.command()
@click.argument("file", type=_FILE)
@click.option("--turns", type=click.IntRange(min=1), default=1, show_default=True, help="How many turns.")
@click.option("--list", "only_list", is_flag=True, help="Only list the turns that can be undone, the latest first.")
def undo(file: Path, turns: int, only_list: bool) -> None:
    """Take back the last turns of `opus flow edit FILE ... --in-place`, byte for byte.

    \b
    Example:
      opus flow undo leads.bpmn
      opus flow undo leads.bpmn --list
    """
    from opus_pipelines.workflow.blocks import edit_files as record

    listed = list(reversed(record.turns(file))) if only_list else record.undo(file, turns)
    show.table(("turn", "operations"), [(turn.request, "; ".join(turn.operations)) for turn in listed])
    if not only_list:
        click.echo(f"written: {file}", err=True)


def _turns(
    options: Options, file: Path, given: tuple[str, ...] | Path | None, how: dict[str, Any]
) -> Iterator[tuple[str, list[str], bytes]]:
    """Yields what each turn asks for, its operations as lines, and the content of the file after it."""
    from opus_pipelines.workflow.blocks.edit_files import read_operations
    from opus_pipelines.workflow.blocks.edits import applied, described
    from opus_pipelines.workflow.blocks.expressions import FlowError
    from opus_pipelines.workflow.blocks.formats.bpmn_writer import patched_bpmn
    from opus_pipelines.workflow.blocks.formats.registry import flow_format, format_of, read_flow, written

    def after(content: bytes, changed: "Flow") -> bytes:
        if name == "bpmn":
            return patched_bpmn(content, changed)
        new, losses = written(changed, name)
        _warn(losses)
        return new

    name, prior, content = format_of(file), read_flow(file), file.read_bytes()
    if isinstance(given, Path):
        try:
            operations = read_operations(given.read_bytes())
            changed = applied(prior, operations)
        except FlowError as error:
            raise FlowError(f"{given}: {error}") from None
        except OSError as error:
            raise InputError(f"{given}: {error.strerror or error}") from None
        yield f"operations of {given.name}", [described(each) for each in operations], after(content, changed)
        return
    make = _maker(options, **how)
    for number, utterance in enumerate(given or (), 1):
        try:
            made = make(utterance, prior)
        except OpusError as error:
            raise InputError(f"turn {number}: {error}" if len(given or ()) > 1 else str(error)) from None
        for line in made.operations:
            click.echo(line, err=True)
        _tell_changes(prior, made.flow)
        _tell_accounts(made)
        _tell_usage(made)
        content = after(content, made.flow)
        prior = flow_format(name).parse(content, file.stem)
        yield utterance, list(made.operations), content


@click.command()
@click.argument("utterance")
@click.option("--catalogue", type=_FILE, help=CATALOGUE_HELP)
@click.option("--learn", "learning", type=FOLDER, help=LEARN_HELP)
@click.option("--to", "form", default="python", show_default=True, help="The format; `opus flow formats` lists them.")
@BACKEND
@click.option("-o", "--output", type=_FILE, help="The file to write. Default: stdout")
@click.pass_obj
def new(options: Options, /, utterance: str, form: str, output: Path | None, **how: Any) -> None:
    """Write the flow that UTTERANCE asks for. Each chosen step is listed on stderr with its probability.

    Only activities of the catalogue can come out; a step that none of them fits becomes a user task.

    \b
    Example:
      opus flow new "Retrieve all leads. For each lead, create an issue in Jira" --catalogue activities.json
      opus --settings opus.toml flow new "Create an issue in Jira" --learn known --backend causal_lm
    """
    from opus_pipelines.workflow.blocks.formats.registry import written

    made = _maker(options, **how)(utterance, None)
    for step, probability in made.steps:
        click.echo(f"{probability:6.1%}  {step}", err=True)
    _tell_accounts(made)
    _tell_usage(made)
    content, losses = written(made.flow, form)
    for loss in losses:
        click.echo(f"not kept: {loss.feature}: {loss.what}", err=True)
    show.file(content.rstrip(b"\n") + b"\n" if output is None else content, output, "the flow")


def _maker(options: Options, catalogue: Path | None, learning: Path | None, backend: str) -> "Make":
    """What makes a flow of an utterance: what is learnt from the catalogue and flows, or a language model."""
    from functools import partial

    from opus_pipelines.flows.from_text.activities import read_catalogue
    from opus_pipelines.flows.from_text.flow_folder import read_folder
    from opus_pipelines.flows.from_text.generator import learn
    from opus_pipelines.flows.from_text.language_writers import chosen, made_by
    from opus_pipelines.flows.from_text.predictions import made_by_ranker
    from opus_pipelines.language.embedding.encoder import encoder_of
    from opus_pipelines.lwm.language_models.chat_client import KeptAnswers

    model = chosen(options.settings(), backend)
    activities = read_catalogue(catalogue) if catalogue else _tasks(options)
    tasks = read_folder(learning).tasks if learning else ()
    writer = learn(activities, tasks, encoder_of(options.settings().encoder))
    if model is None:
        return partial(made_by_ranker, writer)
    return partial(made_by, model.writer(writer, tasks, KeptAnswers(options.lake())))


def _tell_accounts(made: "Made") -> None:
    """Says what became of each clause, how likely the flow is right, and what a person must decide."""
    for account in made.accounts:
        lost = f" (not said: {', '.join(account.lost)})" if account.lost else ""
        click.echo(
            f"{account.became}: {account.text}" + (f" -> {account.result}" if account.result else "") + lost, err=True
        )
    if made.confidence is not None:
        click.echo(f"clauses accounted for: {made.accounted:.0%}; confidence: {made.confidence:.0%}", err=True)
    for question in made.questions:
        click.echo(f"draft: {question}", err=True)


def _tell_changes(before: "Flow", after: "Flow") -> None:
    """Shows the lines that an edit takes away and adds, before anything is written."""
    from difflib import unified_diff

    from opus_pipelines.workflow.blocks.formats.registry import written

    old, new = (written(flow, "python")[0].decode().splitlines() for flow in (before, after))
    for line in list(unified_diff(old, new, n=0, lineterm=""))[2:]:
        if not line.startswith("@@"):
            click.echo(line, err=True)


def _tell_usage(made: "Made") -> None:
    """Says what a language model took."""
    if made.usage is None:
        return
    read, written, usd = made.usage.tokens_in, made.usage.tokens_out, made.usage.cost_usd
    cost = "unknown" if usd is None else f"{usd:.6f} USD"
    click.echo(f"calls repaired: {made.repaired}; tokens: {read} read, {written} written; cost: {cost}", err=True)


def _tasks(options: Options) -> "ActivityCatalogue":
    """The tasks of the current snapshot as a catalogue."""
    from opus_pipelines.flows.batches.inputs import snapshot_activities

    lake = options.lake()
    snapshot = lake.current_snapshot()
    if snapshot is None:
        raise InputError(f"{lake.root} has no snapshot; state --catalogue, or run opus rebuild first")
    return snapshot_activities(lake, snapshot)


for _command in (new, batch, outline, validate, score, compare):
    flow.add_command(_command)


def _warn(losses: "Sequence[Loss]") -> None:
    for loss in losses:
        click.echo(f"not kept: {loss.feature}: " + (f"step {loss.id}: " if loss.id else "") + loss.what, err=True)
