"""Statements of a normative sentence about a process, before its phrases are matched with tasks.

The kinds are the templates of declarative process models (existence, absence, precedence, response, succession,
choice), and two that bound figures: deadline and limit. A statement keeps the words of its sentence;
`intakes.requirements.rules` derives the demands on a workflow from it.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["existence", "absence", "precedence", "response", "succession", "choice", "deadline", "limit"]


@dataclass(frozen=True)
class Condition:
    """A condition of a statement: `text` in the words of the sentence, or a figure.

    A figure has `op` (<, <=, >, >=), `amount` and `unit`: an ISO currency code, "percent", "count", a unit of time,
    or the noun that was counted. `of`: what the figure is a share or a part of ("price differences above 2 %"),
    "" where any figure of the unit will do ("claims above $10,000"). `negated`: the statement holds unless the
    condition is met. `is_scope`: the text names a kind of case ("for theft claims") and not something that may happen
    within a case.
    """

    text: str = ""
    op: str = ""
    amount: float | None = None
    unit: str = ""
    negated: bool = False
    is_scope: bool = False
    of: str = ""


@dataclass(frozen=True)
class ProcedureStatement:
    """One statement; `a` and `b` are phrases in the order of time.

    Precedence: `b` only after `a`; response: `b` follows `a`. `a` is "" in a deadline of the whole workflow.
    Deadlines and limits have `amount`, `unit` and, for a limit, `op`; `calendar` is "working" where working days or
    business hours are counted and "calendar" otherwise. `options`: the alternatives of a choice; `exclusive`: at
    most one of them. `since`: the event from which a deadline is counted, "" where the sentence does not name it.
    `verb`: the stem of the verb that is obliged or forbidden. `strong`: the sentence obliges; it does not merely
    describe. `doubt`: why the statement is not reliable, "" where it is; an unreliable statement demands nothing.
    """

    kind: Kind
    a: str = ""
    b: str = ""
    options: tuple[str, ...] = ()
    op: str = ""
    amount: float | None = None
    unit: str = ""
    calendar: str = ""
    conditions: tuple[Condition, ...] = ()
    verb: str = ""
    strong: bool = True
    doubt: str = ""
    since: str = ""
    exclusive: bool = False
