"""What people call tasks, and which tasks they mean: titles and raw keys of every source, compared as titles are compared."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import folded


class Names:
    """Task ids by any of their names."""

    def __init__(self, graph: WorkGraph, aliases: Iterable[Mapping[str, Any]]) -> None:
        self._graph = graph
        self._tasks: dict[str, set[str]] = defaultdict(set)
        for task in graph.tasks.values():
            self._tasks[folded(task.title)].add(task.task_id)
        for row in aliases:
            for name in (row["title"], row["task_key"]):
                if name and row["task_id"] in graph.tasks:
                    self._tasks[folded(name)].add(row["task_id"])

    def tasks(self, name: str) -> frozenset[str]:
        """The tasks that go by this name."""
        return frozenset(self._tasks.get(folded(name), ()))

    def titles(self, name: str) -> list[str]:
        """The titles of the tasks that go by this name."""
        return sorted(self._graph.tasks[t].title for t in self.tasks(name))
