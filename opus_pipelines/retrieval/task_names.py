"""The names of tasks: titles and raw keys of every source, compared in the same way as titles."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from opus_pipelines.core.word_stems import stems
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import folded


class TaskNames:
    """Task ids by any of their names."""

    def __init__(self, graph: WorkGraph, aliases: Iterable[Mapping[str, Any]]) -> None:
        self._graph = graph
        self._tasks: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)
        self._stems: dict[str, tuple[tuple[str, ...], ...]] = {}
        for task in graph.tasks.values():
            self._add(task.title, task.task_id)
        for row in aliases:
            for name in (row["title"], row["task_key"]):
                if name and row["task_id"] in graph.tasks:
                    self._add(name, row["task_id"])

    def _add(self, name: str, task: str) -> None:
        self._tasks[folded(name)].add(task)
        self._names[task].add(folded(name))

    def tasks(self, name: str) -> frozenset[str]:
        """Return the ids of the tasks with this name."""
        return frozenset(self._tasks.get(folded(name), ()))

    def titles(self, name: str) -> list[str]:
        """Return the titles of the tasks with this name, sorted."""
        return sorted(self._graph.tasks[t].title for t in self.tasks(name))

    def stems(self, task: str) -> tuple[tuple[str, ...], ...]:
        """Return the stems of each name of a task, for a search in running text."""
        if task not in self._stems:
            self._stems[task] = tuple(sorted({stems(name) for name in self._names.get(task, ())}))
        return self._stems[task]
