"""Reads a workflow file that a person edited, and checks it against the known tasks.

The figures in the file (p, cost, time) are not read: the workflow is evaluated by the figures of history like any
other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opus_pipelines.core.errors import InputError, WorkflowError
from opus_pipelines.intakes.decisions.record import WorkflowContent
from opus_pipelines.language.word_stems import near_names
from opus_pipelines.workflow.constraints import folded
from opus_pipelines.workflow.files import TaskEntry, WorkflowFile
from opus_pipelines.workflow.model import REVIEW, Actor, Workflow

_NEAREST = 5
UNSTATED = Actor()


@dataclass(frozen=True)
class KnownTasks:
    """The tasks that a workflow may have.

    `titles` is by id. `names` maps each folded name (`folded`) to ids. `actors` maps each id to its actors, most
    frequent first.
    """

    titles: Mapping[str, str]
    names: Mapping[str, frozenset[str]]
    actors: Mapping[str, Sequence[Actor]]

    def nearest(self, name: str) -> str:
        """Returns the names with the most similar spelling, as text."""
        shown = {folded(title): title for title in self.titles.values() if folded(title) in self.names}
        near = near_names(folded(name), shown, _NEAREST, 0.3)
        return f"the nearest: {', '.join(map(repr, near))}" if near else "`opus tasks` lists those there are"


def read_edited_workflow(file: WorkflowFile, known: KnownTasks, where: str) -> tuple[WorkflowContent, dict[str, str]]:
    """Returns the workflow of the file and the titles of its tasks; raises InputError with every defect in it."""
    try:
        workflow = file.workflow()
    except WorkflowError as error:
        raise InputError(f"{where}: {error}") from None
    wrong: list[str] = []
    tasks = {entry.id: _task(entry, known, wrong) for entry in file.tasks if entry.kind != REVIEW}
    if not tasks:
        wrong.append("it has no task")
    wrong += [
        f"the task {known.titles[task]!r} stands in it {count} times; a ranked workflow has each task once"
        for task, count in Counter(filter(None, tasks.values())).items()
        if count > 1
    ]
    reviews = {entry.id: _reviewed(entry, workflow, tasks, wrong) for entry in file.tasks if entry.kind == REVIEW}
    wrong += [
        f"the step {node!r} has {count} reviews; one may stand behind a step"
        for node, count in Counter(filter(None, reviews.values())).items()
        if count > 1
    ]
    actors = {entry.id: _actor(entry, tasks[entry.id], known, wrong) for entry in file.tasks if entry.id in tasks}
    if wrong:
        raise InputError(f"{where}: " + "; ".join(wrong))
    ids = {node: task for node, task in tasks.items() if task is not None}
    waits = frozenset((ids[a], ids[b]) for a, b in _waits(workflow, ids, reviews))
    order = tuple(ids[node] for node in workflow.topological() if node in ids)
    by_id = {entry.id: entry for entry in file.tasks}
    reviewers = {ids[node]: _stated_actor(by_id[review]) for review, node in reviews.items() if node is not None}
    return WorkflowContent(order, waits, {ids[node]: found for node, found in actors.items()}, reviewers), {
        t: known.titles[t] for t in order
    }


def _task(entry: TaskEntry, known: KnownTasks, wrong: list[str]) -> str | None:
    """Returns the task of a step by its id, else by its name.

    Where the task is unknown it returns None and adds a line to `wrong`.
    """
    named = known.names.get(folded(entry.title), frozenset()) if entry.title else frozenset[str]()
    if entry.task_id is not None and entry.task_id in known.titles:
        if entry.title is None or entry.task_id in named:
            return entry.task_id
        own = known.titles[entry.task_id]
        wrong.append(
            f"step {entry.id!r} has the task_id of {own!r} and the title {entry.title!r}: "
            "correct the title, or remove the task_id "
            f"({known.nearest(entry.title) if not named else f'then it is the task {entry.title!r}'})"
        )
        return None
    if len(named) == 1:
        return next(iter(named))
    called = entry.title or entry.task_id or entry.id
    if named:
        wrong.append(
            f"step {entry.id!r}: {len(named)} tasks are called {called!r}; "
            f"state the task_id: {', '.join(sorted(named))}"
        )
    else:
        wrong.append(f"step {entry.id!r}: no task is called {called!r}; {known.nearest(called)}")
    return None


def _actor(entry: TaskEntry, task: str | None, known: KnownTasks, wrong: list[str]) -> Actor:
    """Returns the actor of a step: the stated one, or the most frequent one where none is stated."""
    stated = _stated_actor(entry)
    actors = known.actors.get(task or "", (UNSTATED,)) or (UNSTATED,)
    if stated in actors or task is None:
        return stated
    if stated == UNSTATED:
        return actors[0]
    fitting = [actor for actor in actors if all(a is None or a == b for a, b in zip(stated, actor, strict=True))]
    if fitting:
        return fitting[0]
    wrong.append(
        f"step {entry.id!r}: history does not know {known.titles[task]!r} done by {stated.label}, "
        f"so it has no figures; it is done by {', '.join(actor.label for actor in actors[:_NEAREST])}"
    )
    return stated


def _stated_actor(entry: TaskEntry) -> Actor:
    return Actor(entry.actor_kind or None, entry.model or None, entry.actor_group or None)


def _reviewed(entry: TaskEntry, workflow: Workflow, tasks: Mapping[str, str | None], wrong: list[str]) -> str | None:
    """Returns the step that a review stands behind."""
    before = workflow.predecessors(entry.id)
    if len(before) == 1 and before[0] in tasks:
        return before[0]
    behind = ", ".join(map(repr, before)) or "nothing"
    wrong.append(f"the review {entry.id!r} stands behind {behind}; a review stands directly behind one task")
    return None


def _waits(
    workflow: Workflow, tasks: Mapping[str, str], reviews: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """Yields pairs of steps of which the second waits for the first; reviews are skipped."""
    for src, dst in workflow.edges:
        first, second = reviews.get(src) or src, reviews.get(dst) or dst
        if first in tasks and second in tasks and first != second:
            yield first, second
