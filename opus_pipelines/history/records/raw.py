"""The records that format readers create and the assembler turns into rows.

Times are microseconds since 1970 in UTC.

"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COUNT_COLUMNS = {  # the columns of history/sources by the fields of Counts
    "records": "records",
    "used": "records_used",
    "not_work": "records_not_work",
    "rejected": "records_rejected",
    "implementations": "implementations",
    "task_implementations": "task_implementations",
    "duplicates": "records_duplicate",
    "corrected": "records_corrected",
    "quarantined": "cases_quarantined",
    "caseless": "records_without_case",
}
# What the transitions of a life cycle mean; the place of a meaning is its code in columns. `words.toml` has the words,
# and says what differs between `open` and `start`. A word that nobody knows is "unknown".
MEANINGS = ("", "start", "complete", "schedule", "suspend", "resume", "ate_abort", "fail", "open", "close", "unknown")
OTHER, START, COMPLETE, NO_WORK, SUSPEND, RESUME, ABORT, FAIL, OPEN, CLOSE, UNKNOWN = range(len(MEANINGS))
HOPELESS = 20_000  # rejected records: more of a file that has little else say nothing new


@dataclass(slots=True)
class Task:
    """One Task Implementation. Its fields are the columns of the `tasks` struct, in their order."""

    position: int = 0
    task_key: str = ""
    title: str | None = None
    description: str | None = None
    instructions: list[str] | None = None
    actor: str | None = None
    actor_kind: str | None = None
    model: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: float | None = None
    wait_ms: float | None = None
    cost_usd: float | None = None
    cost_compute_usd: float | None = None
    cost_model_usd: float | None = None
    cost_human_usd: float | None = None
    cost_basis: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    memory_gb: float | None = None
    threads: float | None = None
    success: bool | None = None
    inputs: list[str] | None = None
    outputs: list[str] | None = None
    predecessors: list[int] | None = None
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Event:
    """One event of a log: `task` has what it says of the task, `time` its time.

    `transition` is one of MEANINGS, or None where the record states none. `interval`: the record states start and end
    itself, so it is not paired with another. `order` decides between events of the same time. `fields` are the case
    values of the record if the case is joined from several files; None if they are in the fields of the case already.
    """

    position: int
    task: Task
    time: int | None
    transition: str | None = None
    instance: str | None = None
    interval: bool = False
    event_id: str | None = None
    fields: dict[str, Any] | None = None
    order: float = 0.0


@dataclass(slots=True)
class Case:
    """One case: its own values under the names of `column_mapping.CaseMap`, and its events in file order.

    `shared` is the number of its events that also belong to an earlier case and were counted there; none of them has a
    transition.
    """

    case_id: str
    fields: dict[str, Any]
    events: list[Event]
    shared: int = 0


@dataclass(frozen=True)
class Cause:
    """The record that causes a whole case to be quarantined."""

    path: str
    position: int
    code: str


@dataclass(frozen=True)
class Reject:
    """One record that could not be used.

    `case_id` is its case, if known. `cause` is the record that caused the reject, if it is not the record itself.
    """

    position: int
    code: str
    reason: str
    record: str | None
    case_id: str | None = None
    cause: Cause | None = None


@dataclass
class Counts:
    """Counts of what became of the records of a file.

    `currencies` are those of its amounts, without the dollar. `duplicates` and `corrected` are part of `not_work`.
    `quarantined` counts cases that are quarantined because of a rejected record in this file. `caseless` counts
    rejected records whose case is unknown.
    """

    records: int = 0
    used: int = 0
    not_work: int = 0
    rejected: int = 0
    duplicates: int = 0
    corrected: int = 0
    quarantined: int = 0
    caseless: int = 0
    implementations: int = 0
    task_implementations: int = 0
    currencies: list[str] = field(default_factory=list)

    def is_no_log(self, used: int) -> bool:
        """Tells whether the file is probably no log of its format.

        That is so if many records are rejected and less than one in a hundred is used.
        """
        return self.rejected > HOPELESS and self.rejected > 99 * used

    def row(self) -> Mapping[str, Any]:
        """Returns the counts as columns of history/sources."""
        return {column: getattr(self, name) for name, column in COUNT_COLUMNS.items()} | {"currencies": self.currencies}
