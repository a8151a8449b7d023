"""Collects what the four scores are measured from: the facts about a task, and its context in one workflow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opus_pipelines.workflow.model import TaskNode, Workflow


@dataclass(frozen=True)
class TaskFacts:
    """The facts about one task in any workflow; None means unknown.

    Names of data are folded (`workflow.constraints.folded`), each once. `statements`: its instructions and
    descriptions, one sentence each. `leaving`: the share of its transitions in history that cross the border of its
    community. `outcomes`: the share of its executions with a recorded outcome. `figures`: the share of its cost and
    time that history recorded. `q`: P(it is right | something before it was wrong), as history shows it.
    """

    statements: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    private: frozenset[str] = frozenset()
    community: str | None = None
    leaving: float | None = None
    outcomes: float = 0.0
    figures: float = 0.0
    q: float = 0.0
    is_review: bool = False


class WorkflowContext:
    """One workflow as the scores see it: the order of its tasks, and which tasks leave and take which data.

    Sets of tasks are bit masks with one bit per task (`bit`), for speed. `below` and `above`: all tasks after and
    before one, at any distance. `fed`: the tasks that follow an input. `delivers`: the tasks that lead to an output, at
    most through reviews. `has_community`: the tasks of known community. `other_communities`: for each task, those of
    them in another community.
    """

    def __init__(self, workflow: Workflow, facts: Mapping[str, TaskFacts]) -> None:
        self.workflow, self.facts = workflow, facts
        by_id = workflow.by_id
        self.tasks = [n for n in workflow.topological() if isinstance(by_id[n], TaskNode)]
        self.bit = {n: 1 << place for place, n in enumerate(self.tasks)}
        self.below, self.above = dict.fromkeys(self.tasks, 0), dict.fromkeys(self.tasks, 0)
        self.children, self.parents = dict.fromkeys(self.tasks, 0), dict.fromkeys(self.tasks, 0)
        self.fed: set[str] = set()
        self.delivers: set[str] = set()
        self._read_edges()
        self.makers, self.takers = self._named("outputs"), self._named("inputs")
        self.has_community, self.other_communities = self._communities()

    def each(self, tasks: int) -> Iterator[str]:
        """Yields the tasks of a bit mask, in topological order."""
        while tasks:
            least = tasks & -tasks
            yield self.tasks[least.bit_length() - 1]
            tasks ^= least

    def _read_edges(self) -> None:
        bit = self.bit
        for src, dst in self.workflow.edges:
            if src in bit and dst in bit:
                self.children[src] |= bit[dst]
                self.parents[dst] |= bit[src]
            elif src in bit:
                self.delivers.add(src)
            elif dst in bit:
                self.fed.add(dst)
        for task in self.tasks:
            self.above[task] = self.parents[task]
            for other in self.each(self.parents[task]):
                self.above[task] |= self.above[other]
        for task in reversed(self.tasks):
            self.below[task] = self.children[task]
            for other in self.each(self.children[task]):
                self.below[task] |= self.below[other]
            if task in self.delivers and self.facts[task].is_review:
                self.delivers.update(self.each(self.parents[task]))

    def _named(self, side: str) -> dict[str, int]:
        masks: dict[str, int] = {}
        for task in self.tasks:
            for name in getattr(self.facts[task], side):
                masks[name] = masks.get(name, 0) | self.bit[task]
        return masks

    def _communities(self) -> tuple[int, dict[str, int]]:
        """Returns the community masks. A review belongs to the community of the tasks that it reviews, if it is one."""
        own: dict[str, str | None] = {}
        members: dict[str, int] = {}
        for task in self.tasks:
            known = self.facts[task]
            communities = {own[u] for u in self.each(self.parents[task])} if known.is_review else {known.community}
            own[task] = name = communities.pop() if len(communities) == 1 else None
            if name is not None:
                members[name] = members.get(name, 0) | self.bit[task]
        has_community = sum(members.values())
        return has_community, {
            task: has_community & ~members[name] if name is not None else 0 for task, name in own.items()
        }
