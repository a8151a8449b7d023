"""What becomes of one intake, whoever works on it: rows of every dataset, a status, and a line for a person."""

from dataclasses import dataclass, field

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.schemas import INTAKES
from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.decisions.record import NO_DECISIONS, Decisions
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.evaluation.calendar import CalendarSettings
from opus_pipelines.generation.flow import GenerationResult, Refused, generate
from opus_pipelines.generation.results.rows import Row, broken_row, generation_rows, intake_row
from opus_pipelines.generation.results.workflow_rows import workflow_rows
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import LargeWorkModel
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.retrieval.stated_names import refuse_unknown_prices


@dataclass(frozen=True)
class PublishTerms:
    """What a contract settles for all of its intakes beside their constraints."""

    cost: Cost
    review: Review
    decisions: Decisions = NO_DECISIONS
    calendar: CalendarSettings | None = None


@dataclass
class IntakeOutcome:
    """`status` is generated, refused or failed; `rows` go by dataset name; `said`: what came of it, in words."""

    status: str
    said: str
    rows: list[tuple[str, Row]] = field(default_factory=list)
    made: list[GenerationResult] = field(default_factory=list)


def outcome_of(
    intake: Intake,
    terms: PublishTerms,
    knowledge: SnapshotIndex,
    encoder: TextEncoder,
    model: LargeWorkModel,
    settings: Settings,
) -> IntakeOutcome:
    """Generate for one intake; failed where what is stated for it names nothing known. Raises what else generating
    raises.
    """
    try:
        refuse_unknown_prices(terms.cost, knowledge.graph)
        made = generate(
            intake, knowledge, encoder, model, terms.cost, settings, terms.review, terms.decisions, terms.calendar
        )
    except SettingsError as error:  # what a person stated cannot be meant: it is told, and costs this intake alone
        return failed_outcome(intake, str(error))
    if isinstance(made, Refused):
        return IntakeOutcome(
            "refused", f"refused: {made.reason}", [(INTAKES.name, intake_row(intake, "refused", made.reason))]
        )
    rows = [(INTAKES.name, intake_row(intake, "generated", None))]
    for one in made:
        rows += [(dataset.name, row) for dataset, row in generation_rows(intake, one, knowledge.graph, model)]
        rows += [(dataset.name, row) for dataset, row in workflow_rows(intake, one, knowledge, model)]
    said = [_said(one) for one in made]
    goals = f"{len(made)} goals: " if len(made) > 1 else ""
    return IntakeOutcome("generated", goals + "; ".join(said), rows, made)


def _said(made: GenerationResult) -> str:
    """How many workflows, what the best earns or what ranks them, and its size."""
    number, best = len(made.ranked), made.ranked[0][1]
    workflows, tasks = f"{number} workflow{'s' * (number > 1)}", f"in {len(best.tasks)} tasks"
    if best.evaluation.reward_usd is None:
        return f"{workflows} ranked by {', '.join(made.ranking.criteria)} (no gain stated), the best {tasks}"
    return f"{workflows}, the best earns {best.evaluation.reward_usd:.2f} USD {tasks}"


def failed_outcome(intake: Intake, reason: str) -> IntakeOutcome:
    """An intake that could be read and not be worked on."""
    return _failed(intake_row(intake, "failed", reason))


def unread_outcome(intake_id: str, folder: str, reason: str) -> IntakeOutcome:
    """An intake whose settings or documents could not even be read."""
    return _failed(broken_row(intake_id, folder, reason))


def _failed(row: Row) -> IntakeOutcome:
    return IntakeOutcome("failed", f"failed: {row['reason']}", [(INTAKES.name, row)])
