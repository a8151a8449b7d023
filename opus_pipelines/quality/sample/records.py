"""Formats what all writers of history share: case ids, outcomes, instructions, amounts."""

from opus_pipelines.quality.sample.cases import Case, Performed
from opus_pipelines.quality.sample.sources import Source


def case_id(case: Case) -> str:
    """Returns an id that is unique in its source: initials of contract and kind, and a number."""
    initials = "".join(word[0] for word in f"{case.contract} {case.kind.title}".split()).upper()
    return f"{initials}-{case.number + 1:04d}"


def outcome(source: Source, case: Case) -> str | None:
    """Returns the source's word for how the case ended, or None where it was not recorded."""
    return None if case.success is None else source.outcome[not case.success]


def instructions(step: Performed) -> str:
    """Returns the instructions that the actor was given."""
    return step.task.instructions[step.mode.actor_kind]


def usd(step: Performed) -> float:
    """Returns the step's cost in dollars, rounded to a millionth."""
    return round(step.cost_usd, 6)


def cost_parts(step: Performed) -> tuple[float | str, float | str, float | str]:
    """Returns (people, models, programs): the cost in the column that it belongs to, the others empty."""
    kind = step.mode.actor_kind
    return tuple(usd(step) if kind == part else "" for part in ("human", "model", "code"))  # type: ignore[return-value]
