"""Which clause of an utterance asks for which activity, so that flows become pairs of clause and activity."""

from collections import Counter
from collections.abc import Sequence

from opus_pipelines.flows.from_text.activity_features import Habits, Query
from opus_pipelines.flows.from_text.activity_ranker import ActivityRanker
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.synthesis import Example
from opus_pipelines.flows.text.clauses import STEP
from opus_pipelines.workflow.blocks.model import Call, Flow, UserTask, activities, walk

_UNALIGNED = -12.0  # the score of a step that no clause asks for, and of a clause that asks for no step
_MANY = 500


def context_of(
    task_utterance: str, prior: Flow | None, ranker: ActivityRanker
) -> tuple[dict[str, float], frozenset[str]]:
    """Returns the applications that the utterance names, and those of the flow that is edited."""
    by_id = ranker.table.catalogue.by_id
    used = frozenset(by_id[a].application for a in activities(prior) if a in by_id) if prior else frozenset[str]()
    return ranker.table.names.named(task_utterance), used - {""}


def pairs(task: FlowTask, ranker: ActivityRanker) -> list[tuple[Query, str | None]]:
    """Returns the step clauses of a task as queries, each with its activity; None for a user task.

    A clause that is aligned with no step of the flow is left out. The alignment keeps the order and has the highest
    sum of scores.
    """
    if task.expected is None:
        return []
    clauses = [clause for clause in ranker.table.names.clauses(task.utterance) if clause.kind == STEP]
    wanted = _wanted(task.expected, task.prior)
    named, prior = context_of(task.utterance, task.prior, ranker)
    by_id = ranker.table.catalogue.by_id
    table: list[list[float]] = []
    ranker.table.encode([Query(clause, "", named, prior) for clause in clauses])
    for clause in clauses:
        ranked = {r.activity: r.score for r in ranker.ranked(Query(clause, "", named, prior), _MANY)}
        floor = min(ranked.values(), default=0.0)
        top = max(ranked.values(), default=0.0)
        table.append([top - 4.0 if step is None else ranked.get(step, floor) for step in wanted])
    found = _best_alignment(table, len(wanted))
    result: list[tuple[Query, str | None]] = []
    carried, used = "", set[str](activities(task.prior) if task.prior else ())
    for place, step in found:
        clause = clauses[place]
        result.append((Query(clause, carried, named, prior, frozenset(used)), wanted[step]))
        activity = by_id.get(wanted[step] or "")
        if activity is not None:
            carried = activity.application
            used.add(activity.id)
    return result


def _wanted(expected: Flow, prior: Flow | None) -> list[str | None]:
    left = (
        Counter(_step(s) for s in walk(prior.body) if isinstance(s, Call | UserTask))
        if prior
        else Counter[str | None]()
    )
    wanted = []
    for statement in walk(expected.body):
        if isinstance(statement, Call | UserTask):
            step = _step(statement)
            if left[step]:
                left[step] -= 1
            else:
                wanted.append(step)
    return wanted


def _step(statement: Call | UserTask) -> str | None:
    return statement.activity if isinstance(statement, Call) else None


def _best_alignment(table: Sequence[Sequence[float]], width: int) -> list[tuple[int, int]]:
    """Needleman-Wunsch over clauses and steps."""
    height = len(table)
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    for i in range(height + 1):
        for j in range(width + 1):
            if i or j:
                ways = []
                if i:
                    ways.append(best[i - 1][j] + _UNALIGNED)
                if j:
                    ways.append(best[i][j - 1] + _UNALIGNED)
                if i and j:
                    ways.append(best[i - 1][j - 1] + table[i - 1][j - 1])
                best[i][j] = max(ways)
    found, i, j = [], height, width
    while i and j:
        if best[i][j] == best[i - 1][j - 1] + table[i - 1][j - 1]:
            found.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif best[i][j] == best[i - 1][j] + _UNALIGNED:
            i -= 1
        else:
            j -= 1
    return found[::-1]


def learning_examples(tasks: Sequence[FlowTask], ranker: ActivityRanker) -> list[Example]:
    """Returns the pairs of all tasks whose clause asks for an activity."""
    return [Example(query, step) for task in tasks for query, step in pairs(task, ranker) if step is not None]


def habits_of(tasks: Sequence[FlowTask], ranker: ActivityRanker) -> Habits:
    """Returns how often the flows of the tasks use each activity and application."""
    by_id = ranker.table.catalogue.by_id
    used, applications, flows = Counter[str](), Counter[str](), 0
    for task in tasks:
        flow = task.expected
        if flow is None:
            continue
        flows += 1
        found = set(activities(flow))
        used.update(found)
        applications.update({by_id[a].application for a in found if a in by_id})
    share = max(1, flows)
    return Habits(
        {activity: min(1.0, 5 * count / share) for activity, count in used.items()},
        {application: min(1.0, 2 * count / share) for application, count in applications.items() if application},
    )
