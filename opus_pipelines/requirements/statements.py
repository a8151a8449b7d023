"""What a normative sentence states about a process, before any of its phrases is matched with a task.

The kinds are the templates of declarative process models (existence, absence, precedence, response, succession,
choice), and two that bound figures: deadline and limit. A statement keeps the words of its sentence;
`requirements.rules` makes demands on a workflow of it.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["existence", "absence", "precedence", "response", "succession", "choice", "deadline", "limit"]


@dataclass(frozen=True)
class Condition:
    """What a statement depends on: `text` in the words of the sentence, or a figure: `op` (<, <=, >, >=), `amount` and
    `unit`.

    `unit`: an ISO currency code, "percent", "count", a unit of time, or the noun that was counted. `negated`: the
    statement holds unless.
    `is_scope`: the text names a kind of case ("for theft claims"), it is no clause that may be so or not within a case.
    """

    text: str = ""
    op: str = ""
    amount: float | None = None
    unit: str = ""
    negated: bool = False
    is_scope: bool = False


@dataclass(frozen=True)
class ProcedureStatement:
    """One statement. `a` and `b` are phrases in time order: precedence means `b` only after `a`, response that `b`
    follows `a`.

    `a` is "" in a deadline of the whole workflow. Deadlines and limits have `amount`, `unit` and, for a limit, `op`;
    `calendar` is "working" where working days or business hours are counted and "calendar" otherwise. `options`: the
    alternatives of a choice.
    `exclusive`: no more than one of them. `since`: from what the time of a deadline is counted, "" where the sentence
    does not say it.
    `verb`: the stem of the verb that is obliged or forbidden, where there is one; `strong`: the sentence obliges, it
    does not merely tell.
    `doubt`: why the reading is not to be trusted, "" where it is; a doubtful statement demands nothing.
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
