"""What every writer of history says in the same words: case ids, outcomes, instructions, amounts."""

from opus_pipelines.sample.cases import Case, Performed
from opus_pipelines.sample.sources import Source


def case_id(case: Case) -> str:
    """An id that is unique in its source: initials of contract and kind, and a number."""
    initials = "".join(word[0] for word in f"{case.contract} {case.kind.title}".split()).upper()
    return f"{initials}-{case.number + 1:04d}"


def outcome(source: Source, case: Case) -> str | None:
    """The source's word for how the case ended, None where nobody wrote it down."""
    return None if case.success is None else source.outcome[not case.success]


def instructions(step: Performed) -> str:
    """What the actor was told."""
    return step.task.instructions[step.way.actor_kind]


def usd(step: Performed) -> float:
    """The step's cost in dollars, to the millionth."""
    return round(step.cost_usd, 6)


def cost_parts(step: Performed) -> tuple[float | str, float | str, float | str]:
    """(people, models, programs): the cost under the one that it belongs to, the others empty."""
    kind = step.way.actor_kind
    return tuple(usd(step) if kind == part else "" for part in ("human", "model", "code"))  # type: ignore[return-value]
