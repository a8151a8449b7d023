"""Converts events to Task Implementations by the rules of datasets.md.

A `start` is paired with a `complete` of the same case, task and instance, first in first out in the order of their
times. The waiting time counts from the end of the preceding task (the last one of the predecessors that the task
states). If a task began before that end, it did not wait, and the waiting time is NULL.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from operator import itemgetter

from opus_pipelines.history.records.records import Event, Task

WORK = frozenset({"start", "complete"})
NOT_WORK = frozenset(
    {
        "schedule",
        "assign",
        "reassign",
        "suspend",
        "resume",
        "withdraw",
        "pi_abort",
        "ate_abort",
        "autoskip",
        "manualskip",
        "unknown",
    }
)  # the rest of the XES standard's transitional model
_MERGED = (
    "title",
    "description",
    "instructions",
    "actor",
    "actor_kind",
    "model",
    "cost_usd",
    "cost_compute_usd",
    "cost_model_usd",
    "cost_human_usd",
    "cost_basis",
    "tokens_in",
    "tokens_out",
    "memory_gb",
    "threads",
    "success",
    "inputs",
    "outputs",
)


def has_work(events: Iterable[Event]) -> bool:
    """Tells whether any event is a start or a complete."""
    return any(e.transition in WORK for e in events)


def undecided(events: Iterable[Event]) -> bool:
    """Tells whether the tasks of these events depend on whether the log has a start or a complete anywhere."""
    return any(e.transition in NOT_WORK for e in events)


def tasks_of(events: list[Event], log_has_work: bool) -> tuple[list[Task], int]:
    """Returns the tasks of one case in execution order, and the number of its events that are no work.

    `log_has_work`: the log has a start or a complete somewhere, so its other standard transitions are no work.
    """
    tasks: list[Task] = []
    open_tasks: defaultdict[tuple[str, str | None], deque[Task]] = defaultdict(deque)
    stated: dict[int, Task] = {}
    not_work = 0
    for event in _in_order(events):
        transition, task = event.transition, event.task
        if log_has_work and transition in NOT_WORK:
            not_work += 1
            continue
        if event.interval:
            tasks.append(task)
        elif transition == "start":
            task.started_at = event.time
            tasks.append(task)
            open_tasks[task.task_key, event.instance].append(task)
        elif transition == "complete" and (waiting := open_tasks.get((task.task_key, event.instance))):
            task = waiting.popleft()
            _complete(task, event)
        else:
            task.started_at = task.ended_at = event.time
            tasks.append(task)
        stated[event.position] = task
    _number(tasks, stated)
    return tasks, not_work


def _in_order(events: list[Event]) -> list[Event]:
    """Sorts events by time, then by position. An event without a time stays behind the event before it."""
    keyed, last = [], -(2**63)
    for event in events:
        last = last if event.time is None else event.time
        keyed.append((last, event.position, event))
    keyed.sort(key=itemgetter(0, 1))
    return [event for _, _, event in keyed]


def _complete(task: Task, event: Event) -> None:
    """Ends `task` at `event`. A value of the completing event replaces that of the starting one."""
    task.ended_at = event.time
    if task.started_at is not None and event.time is not None and task.duration_ms is None:
        task.duration_ms = (event.time - task.started_at) / 1000
    ended = event.task
    task.duration_ms = task.duration_ms if ended.duration_ms is None else ended.duration_ms
    for name in _MERGED:
        value = getattr(ended, name)
        if value is not None:
            setattr(task, name, value)
    task.attributes |= ended.attributes


def _number(tasks: list[Task], stated: dict[int, Task]) -> None:
    """Sets positions, waiting times, and predecessors (stated as record positions) as positions of earlier tasks."""
    for position, task in enumerate(tasks):
        task.position = position
    for position, task in enumerate(tasks):
        before = tasks[position - 1 : position] if position else []
        if task.predecessors is not None:
            before = [stated[p] for p in task.predecessors if p in stated and stated[p].position < position]
            task.predecessors = sorted({t.position for t in before})
        ends = [t.ended_at for t in before]
        known = [end for end in ends if end is not None]
        if known and len(known) == len(ends) and task.started_at is not None and task.started_at >= max(known):
            task.wait_ms = (task.started_at - max(known)) / 1000
