"""Several kinds of work made one sequence, LWM (9): each brings what its cases needed, in the order in which they did it.

What no case ever did together has no sequence to look up. The merge is this project's own rule.
"""

from collections.abc import Sequence

from opus_pipelines.lwm.interface import Work

Tasks = tuple[str, ...]


def composed(works: Sequence[Work], best: Sequence[Sequence[Tasks]]) -> Tasks | None:
    """The works' tasks in one sequence; None where there are fewer than two, or one has no model.

    `best`: of each work its cases' sequences, best first. A work's model is the first of them that holds all it needs; of it the tasks
    count that are needed or that another work does.
    """
    models = [_model(work, found) for work, found in zip(works, best, strict=True)]
    if len(works) < 2 or not all(models):
        return None
    first, *others = models
    done = first
    for other, work in zip(others, works[1:], strict=True):
        needed = frozenset[str]().union(*work.needed)
        done = merged(done, tuple(t for t in other if t in needed or t in done))
    return done


def merged(one: Tasks, other: Tasks) -> Tasks:
    """Both in one: what only the other does comes right behind the last of the tasks that it does before."""
    found = list(one)
    for n, task in enumerate(other):
        if task not in found:
            found.insert(max((found.index(t) + 1 for t in other[:n]), default=0), task)
    return tuple(found)


def _model(work: Work, found: Sequence[Tasks]) -> Tasks:
    return next((tasks for tasks in found if all(group & set(tasks) for group in work.needed)), ())
