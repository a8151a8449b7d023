"""The command `opus decide`: a person accepts, rejects or changes a ranked workflow.

It loads neither Dagster nor Spark nor torch.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from opus_pipelines.cli.options import Options
from opus_pipelines.cli.show import note
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.formatting import clean

LONGEST = 2_000  # characters of a reason, which stands in tables and on pages


@click.command()
@click.argument("workflow")
@click.argument("decision", type=click.Choice(("accept", "reject", "edit")))
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--why", help="The reason, shown with the workflow.")
@click.option("--by", "decided_by", help="Who decides, shown with the workflow.")
@click.pass_obj
def decide(
    options: Options, workflow: str, decision: str, file: Path | None, why: str | None, decided_by: str | None
) -> None:
    """Accept a ranked workflow, reject it, or replace it by a changed one (FILE).

    The next `opus generate` follows the decision. WORKFLOW is an id that `opus best` shows, or the beginning of one.
    An accepted workflow stays rank 1 for its intake; where another workflow earns more, the reports name that one too.
    A rejected workflow is not ranked again under its contract. FILE is what `opus export` wrote, as YAML, JSON or
    BPMN, changed by you. The last decision holds; `opus query "FROM decisions"` lists all.

    \b
    Example:
      opus decide f3a9 accept --why "The team knows it" --by "Ines Moreau"
      opus export f3a9 --out claim.yaml
      opus decide f3a9 edit claim.yaml
    """
    if (decision == "edit") != (file is not None):
        raise click.UsageError(
            "edit needs the FILE with the changed workflow" if decision == "edit" else f"{decision} takes no FILE"
        )
    from opus_pipelines.intakes.decisions import record
    from opus_pipelines.intakes.decisions.edited import read_edited_workflow
    from opus_pipelines.reporting.views import connect
    from opus_pipelines.reporting.workflows import WorkflowLookup, known_tasks
    from opus_pipelines.workflow.formats.registry import read_file

    settings = options.settings()
    lake = options.lake()
    connection = connect(lake)
    lookup, kind = WorkflowLookup(lake, connection), cast("record.Kind", decision)
    decision_row = lookup.decision(workflow, kind, datetime.now(UTC), settings.encoder.model)
    decision_row = replace(decision_row, why=_text(why, "--why"), decided_by=_text(decided_by, "--by"))
    if file is not None:
        known = known_tasks(connection, decision_row.workflow_id, settings.generation.between_clients == "texts")
        content, titles = read_edited_workflow(read_file(file), known, str(file))
        if content.signature == decision_row.content.signature:
            same = f"{file} has the same steps, order and people as {decision_row.workflow_id}"
            raise InputError(f"{same}; `opus decide {workflow} accept` keeps them")
        decision_row = replace(decision_row, steps=record.steps_of(content, titles))
    with lake.lock():
        lake.ensure_empty()
        kept = record.add(lake, decision_row)
    outcome = {"accept": "accepted", "reject": "rejected", "edit": "replaced by your version"}[decision]
    note(f"{kept.client} / {kept.contract} / {kept.intake}: {kept.workflow_id} is {outcome} (decision {kept.number})")
    for place, step in enumerate(kept.steps if decision == "edit" else (), start=1):
        after = f", after {', '.join(str(n + 1) for n in step.after)}" if step.after else ""
        note(f"  {place}. {'review of ' if step.is_review else ''}{step.title} by {step.actor.label}{after}")
    note(f"`opus generate --client {kept.client!r} --contract {kept.contract!r}` ranks by it")


def _text(text: str | None, option: str) -> str | None:
    """Returns a person's text as one line. Raises InputError where it is too long."""
    if text is None or not text.strip():
        return None
    if len(text) > LONGEST:
        raise InputError(f"{option} has {len(text)} characters; at most {LONGEST} are kept")
    return clean(text)
