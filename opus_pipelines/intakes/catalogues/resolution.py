"""What the tools of a catalogue are: tasks that history knows, or tasks that only this contract declares."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.wkg.graph import ExecutionMode, Task, WorkGraph
from opus_pipelines.wkg.task_matching.duplicate_detection import SHARED, opposed, same_words, unmatched

STATEMENT_WORDS = 5  # a shorter description does not identify a task


@dataclass(frozen=True)
class Resolved:
    """A tool and its task; `is_known` where history has that task."""

    tool: DeclaredTask
    task_id: str
    title: str
    is_known: bool

    @property
    def task(self) -> Task:
        """The tool as a task that nobody did: its figures are priors, and a price of the catalogue is its cost."""
        mode = ExecutionMode(self.tool.actor_kind)
        if self.tool.price_usd is not None:
            mode = replace(mode, cost_usd_mean=self.tool.price_usd, cost_basis="declared")
        return Task(
            self.task_id,
            self.title,
            self.tool.description,
            inputs=self.tool.inputs,
            outputs=self.tool.outputs,
            execution_modes=(mode,),
        )


@dataclass(frozen=True)
class ResolvedCatalogue:
    """The tools of a contract's catalogue, each resolved, by name in plain words."""

    by_name: Mapping[str, Resolved]

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def named(self, procedure: ParsedProcedure | None) -> ParsedProcedure | None:
        """Returns the procedure with the steps that the catalogue names under the ids of its tasks, each once."""
        if procedure is None or not self:
            return procedure
        steps: dict[str, ProcedureStep] = {}
        for step in procedure.steps:
            found = self.by_name.get(plain(step.name)) if step.is_new else None
            if found is not None:
                step = replace(step, task_id=found.task_id, name=found.title, is_new=not found.is_known)
            # The goal of a part is its last step and stays there.
            if step.sentence is None:
                steps.pop(step.task_id, None)
            steps.setdefault(step.task_id, step)
        return replace(procedure, steps=tuple(steps.values()))

    def declared(self, ids: Collection[str]) -> dict[str, Task]:
        """Returns those of the tasks that only the catalogue has, by id."""
        found = (tool for tool in self.by_name.values() if not tool.is_known)
        return {tool.task_id: tool.task for tool in found if tool.task_id in ids}


NOTHING_DECLARED = ResolvedCatalogue({})


@dataclass(frozen=True)
class Owner:
    """Whose catalogue it is. Tasks of two contracts never have one id."""

    client: str
    contract: str
    industry: str | None


def resolve(
    catalogue: Catalogue, owner: Owner, graph: WorkGraph, named: Callable[[str], frozenset[str]]
) -> ResolvedCatalogue:
    """Returns what each tool is. `named` returns the ids of the tasks that have a name.

    A tool is a task of history of the same industry where it has one of its names, or other forms of the same words
    (`wkg.task_matching.duplicate_detection`), or its very description and no opposed word.
    """
    known = _Known(graph, owner.industry, named)
    found = {}
    for tool in catalogue.tasks:
        task = known.task(tool)
        found[tool.plain] = (
            Resolved(tool, task.task_id, task.title, True)
            if task
            else Resolved(tool, make_id("t", "declared", owner.client, owner.contract, tool.plain), tool.name, False)
        )
    return ResolvedCatalogue(found)


class _Known:
    """The tasks of an industry, to be found by name or description."""

    def __init__(self, graph: WorkGraph, industry: str | None, named: Callable[[str], frozenset[str]]) -> None:
        tasks = [t for t in graph.tasks.values() if industry is None or industry in t.industries]
        self._tasks = {t.task_id: t for t in tasks if t.activity_kind == "step"}
        self._named = named
        self._by_marks: dict[tuple[str, ...], list[Task]] = defaultdict(list)
        self._by_text: dict[str, list[Task]] = defaultdict(list)
        for task in self._tasks.values():
            self._by_marks[_marks(plain(task.title))].append(task)
            self._by_text[plain(task.description or "")].append(task)

    def task(self, tool: DeclaredTask) -> Task | None:
        """Returns the task that the tool is, None where it is none; of several the one that was done most often."""
        same = [self._tasks[t] for t in self._named(tool.name) if t in self._tasks]
        words = tool.plain.split()
        same = same or [t for t in self._by_marks.get(_marks(tool.plain), ()) if same_words(words, _words(t))]
        statement = plain(tool.description or "")
        if not same and len(statement.split()) >= STATEMENT_WORDS:
            stated = self._by_text.get(statement, [])
            same = [t for t in stated if len(stated) == 1 and not opposed(*unmatched(words, _words(t)))]
        return min(same, key=lambda t: (-t.implementations, t.task_id), default=None)


def _words(task: Task) -> list[str]:
    return plain(task.title).split()


def _marks(name: str) -> tuple[str, ...]:
    """Returns what all forms of the words have in common: how they begin, in any order."""
    return tuple(sorted(word[:SHARED] for word in name.split()))
