"""What becomes of one intake, whoever works on it: rows of every dataset, a status, and a line for a person."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.schemas import DATASETS, INTAKES, Dataset
from opus_pipelines.generation.flow import generate
from opus_pipelines.generation.records import GenerationContext, Ranked, Refused
from opus_pipelines.generation.results.rows import Row, broken_row, generation_rows, intake_row
from opus_pipelines.generation.results.workflow_rows import workflow_rows
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lake.results import Columns, by_column
from opus_pipelines.lwm.interface import Usage
from opus_pipelines.lwm.retrieval.task_names import refuse_unknown_prices


@dataclass
class IntakeOutcome:
    """What became of an intake.

    Attributes:
        status: generated, refused or failed.
        summary: one line for a person, without the intake's name.
        rows: rows by the name of their dataset, column by column: other processes take them so in half the time.
        ranked: the records behind the rows, one for each Intention.
        usage: what the answers of a language model took, None where none was asked.
    """

    status: str
    summary: str
    rows: dict[str, Columns] = field(default_factory=dict)
    ranked: list[Ranked] = field(default_factory=list)
    usage: Usage | None = None


def outcome_of(intake: Intake, context: GenerationContext) -> IntakeOutcome:
    """Generates for one intake; the outcome is failed where something stated for the intake names nothing known.

    Raises whatever else generation raises.
    """
    try:
        refuse_unknown_prices(context.terms.cost, context.index.graph)
        intentions = generate(intake, context)
    except SettingsError as error:  # the person who stated it reads it; only this intake fails
        return failed_outcome(intake, str(error))
    except Refused as refusal:
        reason = str(refusal)
        return IntakeOutcome("refused", f"refused: {reason}", _intake(intake_row(intake, "refused", reason)))
    rows = _intake(intake_row(intake, "generated", None)) | _by_dataset(
        row for ranked in intentions for rows in (generation_rows, workflow_rows) for row in rows(ranked, context)
    )
    goals = f"{len(intentions)} goals: " if len(intentions) > 1 else ""
    usage = Usage.total(ranked.drafted.usage for ranked in intentions if ranked.drafted.usage)
    return IntakeOutcome("generated", goals + "; ".join(map(_summary, intentions)), rows, intentions, usage)


def _summary(ranked: Ranked) -> str:
    """Says how many workflows there are, what the best earns or what ranks them, and its size."""
    number, best = len(ranked.ranked), ranked.ranked[0][1]
    workflows, tasks = f"{number} workflow{'s' * (number > 1)}", f"in {len(best.tasks)} tasks"
    if best.evaluation.reward_usd is None:
        return f"{workflows} ranked by {', '.join(ranked.context.ranking.criteria)} (no gain stated), the best {tasks}"
    return f"{workflows}, the best earns {best.evaluation.reward_usd:.2f} USD {tasks}"


def failed_outcome(intake: Intake, reason: str) -> IntakeOutcome:
    """An intake that could be read and not be worked on."""
    return _failed(intake_row(intake, "failed", reason))


def unread_outcome(intake_id: str, folder: str, reason: str) -> IntakeOutcome:
    """An intake whose settings or documents could not even be read."""
    return _failed(broken_row(intake_id, folder, reason))


def _failed(row: Row) -> IntakeOutcome:
    return IntakeOutcome("failed", f"failed: {row['reason']}", _intake(row))


def _intake(row: Row) -> dict[str, Columns]:
    return {INTAKES.name: by_column(INTAKES, [row])}


def _by_dataset(rows: Iterable[tuple[Dataset, Row]]) -> dict[str, Columns]:
    by_dataset: dict[str, list[Row]] = defaultdict(list)
    for dataset, row in rows:
        by_dataset[dataset.name].append(row)
    return {name: by_column(DATASETS[name], found) for name, found in by_dataset.items()}
