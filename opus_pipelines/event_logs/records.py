"""The plain records that readers make and the assembler turns into rows. Times are microseconds since 1970 in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HOPELESS = 20_000  # rejected records: more of a file that has little else say nothing new


@dataclass(slots=True)
class Task:
    """One Task Implementation; its fields are the columns of the `tasks` struct, in their order."""

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
    """One record of a log, read: `task` holds what it says of the task, `time` its moment.

    `interval` marks a record that states start and end itself, and so pairs with no other. `fields`: what the record
    says of its case, kept apart where the case is put together from several files; None where it is in the case's own
    fields already.
    """

    position: int
    task: Task
    time: int | None
    transition: str | None = None
    instance: str | None = None
    interval: bool = False
    event_id: str | None = None
    fields: dict[str, Any] | None = None


@dataclass(slots=True)
class Case:
    """One case, read: the values of its own under the names of `mapping.CASE_FIELDS`, and its events in file order.

    `shared`: how many of its events stand in an earlier case too, and were counted there; none of them has a
    transition.
    """

    case_id: str
    fields: dict[str, Any]
    events: list[Event]
    shared: int = 0


@dataclass(frozen=True)
class Cause:
    """The record because of which a whole case is put aside."""

    path: str
    position: int
    code: str


@dataclass(frozen=True)
class Reject:
    """One record that could not be used. `case_id`: its case, where that is known; `cause`: the record because of
    which it went, if not its own fault.
    """

    position: int
    code: str
    reason: str
    record: str | None
    case_id: str | None = None
    cause: Cause | None = None


@dataclass
class Counts:
    """What became of a file's records. `currencies`: those of its amounts, but for the dollar.

    `duplicates` and `corrected` are among `not_work`. `quarantined`: cases put aside whole because of a rejected record
    that stands in this file; `caseless`: rejected records that do not tell their case.
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

    def hopeless(self, used: int) -> bool:
        """Is it no log, but a file of another kind: so many records are rejected, and of a hundred not one is used?"""
        return self.rejected > HOPELESS and self.rejected > 99 * used

    def row(self) -> Mapping[str, Any]:
        """As columns of history/sources."""
        return {
            "records": self.records,
            "records_used": self.used,
            "records_not_work": self.not_work,
            "records_rejected": self.rejected,
            "implementations": self.implementations,
            "task_implementations": self.task_implementations,
            "records_duplicate": self.duplicates,
            "records_corrected": self.corrected,
            "cases_quarantined": self.quarantined,
            "records_without_case": self.caseless,
            "currencies": self.currencies,
        }
