"""Keeps the decisions on a contract's workflows in the lake, one numbered file per decision, and describes them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from opus_pipelines.core.formatting import clean, usd
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import DECISIONS
from opus_pipelines.lake.layout import Lake, read_table, table_of, write_table
from opus_pipelines.workflow.model import Actor, TaskOrder, review_id

Kind = Literal["accept", "reject", "edit"]
Pair = tuple[str, str]


@dataclass(frozen=True)
class WorkflowContent:
    """The identity of a workflow: its tasks, which task waits for which, and who does each.

    `tasks` stand in one order that keeps `waits`. `actors` is by task, `reviews` by the task that the review stands
    behind.
    """

    tasks: tuple[str, ...]
    waits: frozenset[Pair]
    actors: Mapping[str, Actor]
    reviews: Mapping[str, Actor] = field(default_factory=dict)

    @property
    def order(self) -> TaskOrder:
        """The waits as a partial order."""
        return TaskOrder.of(self.tasks, self.waits)

    @cached_property
    def signature(self) -> tuple[Any, ...]:
        """A value that is equal for equal workflows, in whatever order their steps are listed."""
        steps = {(task, *self.actors[task]) for task in self.tasks} | {
            (review_id(task), *actor) for task, actor in self.reviews.items()
        }
        return frozenset(steps), frozenset(self.order.pairs())


@dataclass(frozen=True)
class DecidedStep:
    """One row of the column `steps`."""

    task_id: str
    title: str
    is_review: bool
    actor_kind: str | None
    model: str | None
    actor_group: str | None
    after: tuple[int, ...]

    @property
    def actor(self) -> Actor:
        """The actor of the step."""
        return Actor(self.actor_kind, self.model, self.actor_group)


@dataclass(frozen=True)
class Decision:
    """One row of `decisions`."""

    client: str
    contract: str
    decision: Kind
    intake_id: str
    intake: str
    intention_id: str
    workflow_id: str
    result: str | None
    rank: int | None
    steps: tuple[DecidedStep, ...]
    decided_at: datetime
    why: str | None = None
    decided_by: str | None = None
    vector: tuple[float, ...] | None = None
    encoder: str | None = None
    number: int = 0

    @property
    def decision_id(self) -> str:
        """The id that other datasets use for the decision."""
        return make_id("d", self.client, self.contract, self.number)

    @cached_property
    def content(self) -> WorkflowContent:
        """The workflow, with the task ids of the day of the decision."""
        return content_of(self.steps)

    @property
    def titles(self) -> dict[str, str]:
        """The title of each task on the day of the decision."""
        return {step.task_id: step.title for step in self.steps if not step.is_review}


@dataclass(frozen=True)
class Decisions:
    """All decisions on one contract, by number.

    `followers` maps a former task id of the id ledger to the ids of its present tasks.
    """

    all: tuple[Decision, ...] = ()
    followers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def versions(self) -> list[str]:
        """A hash of the decisions up to each number; empty without decisions.

        A result records the last hash, which states the decisions that it was generated with.
        """
        hashes, last = [], ""
        for one in self.all:
            last = digest(
                last, one.decision_id, one.decision, one.intention_id, one.why, one.decided_by, one.content.signature
            )
            hashes.append(last)
        return hashes

    def chosen(self, intention_id: str) -> Decision | None:
        """Returns the decision that holds for this Intention; None where there is none.

        It is the last one accepted or edited whose workflow was not rejected for the Intention afterwards.
        """
        rejected = set()
        for one in reversed([d for d in self.all if d.intention_id == intention_id]):
            if one.decision != "reject":
                if one.content.signature not in rejected:
                    return one
            else:
                rejected.add(one.content.signature)
        return None

    def rejected(self, intention_id: str) -> list[Decision]:
        """Returns the rejections that exclude a workflow from this Intention.

        The Intention's own last decision on a workflow holds. Where it has none, the last decision of the contract
        holds.
        """
        last: dict[Any, Decision] = {}
        for one in [*self.all, *(d for d in self.all if d.intention_id == intention_id)]:
            last[one.content.signature] = one
        return [one for one in last.values() if one.decision == "reject"]

    def chosen_elsewhere(self, intention_id: str) -> list[Decision]:
        """Returns the decisions that hold for the contract's other Intentions."""
        others = dict.fromkeys(d.intention_id for d in self.all if d.intention_id != intention_id)
        return [decision for other in others if (decision := self.chosen(other))]


NO_DECISIONS = Decisions()


def content_of(steps: Iterable[DecidedStep]) -> WorkflowContent:
    """Returns the workflow of these rows. A step that waits for a review waits for the review's task."""
    steps = list(steps)
    tasks = [s for s in steps if not s.is_review]
    waits = {(steps[place].task_id, s.task_id) for s in tasks for place in s.after if steps[place].task_id != s.task_id}
    return WorkflowContent(
        tuple(s.task_id for s in tasks),
        frozenset(waits),
        {s.task_id: s.actor for s in tasks},
        {s.task_id: s.actor for s in steps if s.is_review},
    )


def steps_of(content: WorkflowContent, titles: Mapping[str, str]) -> tuple[DecidedStep, ...]:
    """Returns the rows of a workflow, each review directly behind its task."""
    places: dict[str, int] = {}  # of the step that those wait for which wait for the task
    rows: list[DecidedStep] = []
    before = defaultdict(list)
    for src, dst in content.order.covers():
        before[dst].append(src)
    for task in content.tasks:
        rows.append(
            DecidedStep(
                task, titles[task], False, *content.actors[task], tuple(sorted(places[t] for t in before[task]))
            )
        )
        if task in content.reviews:
            rows.append(DecidedStep(task, titles[task], True, *content.reviews[task], (len(rows) - 1,)))
        places[task] = len(rows) - 1
    return tuple(rows)


def decisions_of(lake: Lake, client: str, contract: str) -> Decisions:
    """Returns the decisions on a contract, and the present ids of task ids that changed since."""
    folder = lake.folder(DECISIONS, client_key=client, contract_key=contract)
    if not folder.is_dir():  # most contracts have none, and then Arrow is not loaded
        return Decisions((), {})
    table = read_table(DECISIONS, folder)
    decisions = tuple(sorted((_decision(row) for row in table.to_pylist()), key=lambda d: d.number))
    wanted = {step.task_id for one in decisions for step in one.steps}
    return Decisions(decisions, _followers(lake, wanted) if wanted else {})


def add(lake: Lake, decision: Decision) -> Decision:
    """Adds a decision under the contract's next number; the caller must hold the lock of the lake."""
    folder = lake.folder(DECISIONS, client_key=decision.client, contract_key=decision.contract)
    numbered = replace(
        decision,
        number=1 + max((d.number for d in decisions_of(lake, decision.client, decision.contract).all), default=0),
    )
    name = f"decision-{numbered.number:06}.parquet"
    rows = table_of(DECISIONS, [_row(numbered)])
    lake.publish_file(lambda path: write_table(DECISIONS, rows, path.parent, path.name), folder / name, copy=True)
    return numbered


def _followers(lake: Lake, wanted: set[str]) -> dict[str, tuple[str, ...]]:
    from opus_pipelines.wkg.task_matching.id_ledger import read_ledger

    followers: dict[str, set[str]] = defaultdict(set)
    for entry in read_ledger(lake.kept / "ids.parquet").values():
        for former in wanted.intersection(entry.former):
            followers[former].add(entry.task_id)
    return {former: tuple(sorted(now)) for former, now in sorted(followers.items())}


_COLUMNS = (
    "client",
    "contract",
    "decision",
    "intake_id",
    "intake",
    "intention_id",
    "workflow_id",
    "result",
    "rank",
    "decided_at",
    "why",
    "decided_by",
    "encoder",
    "number",
)


def _row(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in _COLUMNS} | {
        "decision_id": decision.decision_id,
        "vector": list(decision.vector) if decision.vector else None,
        "steps": [{**vars(step), "after": list(step.after)} for step in decision.steps],
    }


def _decision(row: Mapping[str, Any]) -> Decision:
    return Decision(
        **{name: row[name] for name in _COLUMNS},
        vector=tuple(row["vector"]) if row["vector"] else None,
        steps=tuple(DecidedStep(**{**step, "after": tuple(step["after"] or ())}) for step in row["steps"] or ()),
    )


_Row = dict[str, Any]
_NEXT = {
    "accept": "is rank 1 from the next `opus generate` on",
    "reject": "is left out by the next `opus generate`",
    "edit": "gives way to the person's version at the next `opus generate`",
}
_PAST = {"accept": "accepted", "reject": "rejected", "edit": "edited"}


def decision_text(row: _Row) -> str | None:
    """Returns one line about the decisions on a workflow; None where there is none.

    The row has the columns `decision` to `better_by_usd` of workflows/optimized, and the last decision on the workflow.
    """
    parts = []
    if row["decision"]:
        parts.append(_with_reason(row["decision"], row["decided_by"], row["decided_why"]))
    if row["better_workflow_id"]:
        parts.append(f"a better one exists: {row['better_workflow_id']}{_by(row)}")
    if row["decision_note"]:
        parts.append(clean(row["decision_note"]))
    kind, number = row["last_decision"], row["last_number"]
    if kind and number > row["applied_number"]:
        parts.append(f"{_with_reason(_PAST[kind], row['last_by'], row['last_why'])}; it {_NEXT[kind]}")
    elif kind and not row["decision"] and number < row["applied_number"]:
        parts.append(f"{_PAST[kind]} by decision {number}; decision {row['applied_number']} on this intake came later")
    return "; ".join(parts) or None


def _with_reason(what: str, who: str | None, why: str | None) -> str:
    return f"{what}{f' by {clean(who)}' if who else ''}{f': {clean(why)}' if why else ''}"


def _by(row: _Row) -> str:
    """Returns by how much the better workflow earns more; where support decides, in what it is better.

    A workflow that ranks higher without earning more keeps constraints that the chosen one breaks.
    """
    more_usd = row["better_by_usd"]
    if row["completeness"] == "support":
        return ", which keeps the constraints or agrees more with similar cases"
    if more_usd is None:
        return ""
    return f", +{usd(more_usd)} Reward" if more_usd > 0 else f", which keeps the constraints ({usd(more_usd)} Reward)"
