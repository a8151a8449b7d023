"""Defines the constraints on a workflow: the `[constraints]` table of contract.toml and intake.toml, EVAL (12).

The readers of those files use this module; `generation.search.constraints` tests a workflow against the constraints.
"""

import unicodedata
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from opus_pipelines.core.settings import Section

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Name = Annotated[str, Field(min_length=1)]


_Group = Annotated[tuple[_Name, ...], Field(min_length=2)]
Unit = Literal["hours", "days", "working_hours", "working_days"]
NOT_APPLIED = "rule not applied"  # in the words of a deadline that nobody can tell whether it is kept


class StepDeadline(Section):
    """By when one step is done, counted from the start of the first step, or from the end of the step `after`."""

    step: _Name
    within: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    unit: Unit = "hours"
    after: _Name | None = None

    @property
    def text(self) -> str:
        """In words: 'Pay' within 10 working days of 'Receive Invoice'."""
        unit = self.unit.replace("_", " ").removesuffix("s" if self.within == 1 else "")
        start = "the start" if self.after is None else repr(self.after)
        return f"{self.step!r} within {self.within:g} {unit} of {start}"


class Constraints(Section):
    """What makes a workflow feasible. Tasks are named by title; `before` holds where both of a pair occur."""

    max_cost_usd: _Amount | None = Field(None, description="EVAL (5) at most")
    max_duration_hours: _Amount | None = Field(
        None, description="touch time at most: work alone along the longest path, EVAL (2)"
    )
    max_lead_time_hours: _Amount | None = Field(
        None,
        description="lead time at most: from the start of the first step to the end of the last one, "
        "waiting included; a deadline",
    )
    min_p_deadline: _Share | None = Field(
        None,
        description="probability to keep max_lead_time_hours, and each of deadlines, at least; unstated: 0.9",
    )
    min_success: _Share | None = Field(None, description="EVAL (4) at least")
    must_contain: tuple[_Name, ...] = Field((), description="tasks it must have")
    must_not_contain: tuple[_Name, ...] = Field((), description="tasks it must not have")
    before: tuple[tuple[_Name, _Name], ...] = Field((), description="pairs: the first is done before the second")
    one_of: tuple[_Group, ...] = Field((), description="groups of tasks: it must have at least one of each group")
    exactly_one_of: tuple[_Group, ...] = Field(
        (), description="groups of tasks: it must have one of each group, and no second one"
    )
    deadlines: tuple[StepDeadline, ...] = Field(
        (),
        description="by when single steps are done, waiting included; unit: hours, days, working_hours or working_days",
    )


def merged(contract: Constraints, intake: Constraints) -> Constraints:
    """Returns the contract's constraints, with every key that the intake itself states in place of the contract's."""
    return contract.model_copy(update={name: getattr(intake, name) for name in intake.model_fields_set})


@lru_cache(1 << 14)
def folded(title: str) -> str:
    """Returns a title in the form that is compared: case, width, `_`, `-` and all other punctuation are ignored."""
    text = unicodedata.normalize("NFKC", title).casefold()
    return " ".join("".join(c if c.isalnum() or unicodedata.combining(c) else " " for c in text).split())
