"""The lookups of generation in one snapshot, which all intakes of a run share."""

import copy
import difflib
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.intakes.procedures.models import ProcedureIndex
from opus_pipelines.language.embedding.index import VectorIndex
from opus_pipelines.lwm.fine_tuning.encoder_training import OWN_CASES
from opus_pipelines.lwm.retrieval.routing import CaseRetriever
from opus_pipelines.lwm.retrieval.similar_cases import IndustryCases
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.wkg.estimates.times import StepTimes
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.evaluation.calendar import Calendar
from opus_pipelines.workflow.evaluation.calendar_settings import CalendarSettings

if TYPE_CHECKING:
    from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
    from opus_pipelines.lwm.retrieval.intentions import Likeness
    from opus_pipelines.lwm.step_writing.memory import TextMemory


def drawn_rates(rates: "Mapping[str, float]", counts: "Mapping[str, int]", cases: int) -> dict[str, float]:
    """Returns the shares of tasks in `cases` cases with these `counts`, drawn towards the shares `rates` of all."""
    return {task: (counts.get(task, 0) + OWN_CASES * rate) / (cases + OWN_CASES) for task, rate in rates.items()}


class SnapshotIndex:
    """The lookups that generation makes in a snapshot; each is loaded when it is first used."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.client: str | None = None  # whose results this is for; None: nobody's in particular
        self._industry_cases: dict[str | None, IndustryCases] = {}
        self._task_rates: dict[tuple[str, str | None], dict[str, float]] = {}
        self.memories: dict[str, IndustryMemory | None] = {}  # filled by `case_memory.memory_of`
        self.likeness: Likeness | None = None  # filled by `intentions.likeness_of`
        self.counts: dict[str | None, object] = {}  # filled by `lwm.stitching.counts_of`
        self.text_memories: dict[str, TextMemory | None] = {}  # filled by `case_memory.text_memory`

    def load(self) -> None:
        """Load everything now, so that forked processes share it."""
        lookups = self.graph, self.index, self.cases, self.names, self.task_vectors
        for part in (*lookups, self.step_times, self.raw_keys, self.industries, self._variants, self._needs):
            assert part is not None
        self.procedures.load()

    def seen_by(self, client: str | None) -> "SnapshotIndex":
        """Returns these lookups as a result for a client may show them (`WorkGraph.seen_by`); the rest is shared."""
        graph = self.graph.seen_by(client)
        if graph is self.graph:
            return self
        seen = copy.copy(self)
        seen.client, seen.graph = client, graph
        seen.__dict__.pop("raw_keys", None)  # those of all clients
        return seen

    @cached_property
    def graph(self) -> WorkGraph:
        """Return the WKG: tasks with their execution modes, and edges."""
        return self.snapshot.graph

    @property
    def index(self) -> VectorIndex:
        """Return the search index of the tasks by vector."""
        return self.snapshot.index

    @cached_property
    def cases(self) -> CaseRetriever:
        """Return the cases, which can be searched by vector."""
        snapshot = self.snapshot
        return CaseRetriever(
            snapshot.cases,
            snapshot.implementation_vectors,
            self.passive,
            snapshot.by_activities,
            snapshot.case_index,
        )

    @cached_property
    def passive(self) -> frozenset[str]:
        """Return the tasks that are events or outcomes; no workflow has them as steps."""
        return frozenset(t for t, task in self.graph.tasks.items() if task.activity_kind != "step")

    def cases_of(self, industry: str | None) -> IndustryCases:
        """Return the cases of an industry (None: of all) for a search by text and attributes."""
        if industry not in self._industry_cases:
            rows = self.cases.rows_of(industry)
            titles = {t: task.title for t, task in self.graph.tasks.items() if t not in self.passive}
            self._industry_cases[industry] = IndustryCases(self.cases.table, self.cases.search, rows, titles)
        return self._industry_cases[industry]

    def load_similar(self, industry: str | None) -> None:
        """Fit the similarity of the industry's cases now, where the outcomes of most of its cases tell nothing.

        A forest takes seconds to fit; forked processes share it.
        """
        rows = self.cases.rows_of(industry)
        cases = self.cases.table.select(["success", "source"]).take(pa.array(rows))
        tells_nothing = pc.or_(
            pc.is_null(cases["success"]),
            pc.is_in(cases["source"], pa.array(sorted(self.snapshot.by_activities), pa.string())),
        )
        if len(rows) and pc.sum(tells_nothing).as_py() > len(rows) / 2:
            self.cases_of(industry).load()

    @cached_property
    def procedures(self) -> ProcedureIndex:
        """Return the procedures of history, with the models that are fitted to them."""
        snapshot = self.snapshot
        return ProcedureIndex(
            snapshot.procedures, snapshot.procedure_vectors, snapshot.cases, self.graph, self.names.tasks
        )

    @cached_property
    def names(self) -> TaskNames:
        """Return the tasks by name."""
        return TaskNames(self.graph, self.snapshot.aliases.to_pylist())

    @cached_property
    def task_vectors(self) -> "dict[str, np.ndarray]":
        """Return the unit vector [d] of the text of every task."""
        table = self.snapshot.embeddings
        column = table["vector"].combine_chunks()
        rows = column.flatten().to_numpy().reshape(len(column), -1).astype("float32") if len(column) else []
        return dict(zip(table["task_id"].to_pylist(), rows, strict=True))

    @cached_property
    def step_times(self) -> StepTimes:
        """Return the waiting and working times of history."""
        snapshot = self.snapshot
        if self.passive:  # the plans leave events out: what is waited for lies between two work steps
            return StepTimes.of_cases(snapshot.cases, None, self.passive)
        return StepTimes.of(snapshot.waits, snapshot.execution_modes, snapshot.cases)

    def step_times_on(self, calendar: CalendarSettings | None) -> StepTimes:
        """Return the same times, with those of people in the working time of a contract's calendar."""
        if calendar is None:
            return self.step_times
        if calendar not in self._by_calendar:
            self._by_calendar[calendar] = StepTimes.of_cases(self.snapshot.cases, Calendar.of(calendar), self.passive)
        return self._by_calendar[calendar]

    @cached_property
    def _by_calendar(self) -> dict[CalendarSettings, StepTimes]:
        return {}

    @cached_property
    def raw_keys(self) -> dict[str, list[str]]:
        """Return the raw keys of every task over all sources, without those that another client is in, sorted."""
        hidden = set[str]()
        if self.client is not None:
            owners = self.snapshot.cases.select(["source", "client"]).group_by(["source", "client"]).aggregate([])
            hidden = {row["source"] for row in owners.to_pylist() if row["client"] not in (None, self.client)}
        keys_of: dict[str, set[str]] = defaultdict(set)
        for row in self.snapshot.aliases.select(["task_id", "task_key", "source"]).to_pylist():
            if row["source"] not in hidden:
                keys_of[row["task_id"]].add(row["task_key"])
        return {task: sorted(keys) for task, keys in keys_of.items()}

    def task_rates(self, industry: str, client: str | None = None) -> dict[str, float]:
        """Return, for each work step of the industry, the smoothed share in ]0, 1[ of its cases that did it.

        Cases that failed, or in which refusing was right, do not count. With a client that has cases of the industry
        the shares are those of its own cases, drawn towards those of all; `OWN_CASES` of them weigh as much as these.
        The steps are in the order of their ids.
        """
        if (industry, client) not in self._task_rates:
            rows = self.cases.table.take(pa.array(self.cases.rows_of(industry)))
            rows = rows.filter(pc.fill_null(rows["success"], True))
            if client is not None:
                rows = rows.filter(pc.fill_null(pc.equal(rows["client"], client), False))
            counts = Counter(task for trace in rows["tasks"].to_pylist() for task in set(trace or ()))
            if client is None:
                own = sorted(t for t, task in self.graph.tasks.items() if industry in task.industries)
                steps = [t for t in own if t not in self.passive and t in self.task_vectors]
                rates = {t: (counts[t] + 0.5) / (rows.num_rows + 1) for t in steps}
            else:
                rates = drawn_rates(self.task_rates(industry), counts, rows.num_rows)
            self._task_rates[industry, client] = rates
        return self._task_rates[industry, client]

    @cached_property
    def industries(self) -> list[str]:
        """Return the industries that have tasks, sorted."""
        return sorted(self.graph.industries)

    @cached_property
    def _variants(self) -> frozenset[tuple[str, ...]]:
        return frozenset(tuple(tasks or ()) for tasks in self.snapshot.variants["tasks"].to_pylist())

    @cached_property
    def _needs(self) -> dict[str | None, list[dict[str, Any]]]:
        rows: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
        for row in self.snapshot.needs.to_pylist():
            rows[row["industry"]].append(row)
        return rows

    def critical_task_rows(self, industry: str | None) -> list[dict[str, Any]]:
        """Return the rows of wkg/needs of an industry."""
        return self._needs.get(industry, [])

    def is_new_client(self, client: str | None, industry: str | None) -> bool:
        """Return whether history has cases of the industry, and all of them are of other clients."""
        if client is None or industry is None:
            return False
        clients = self.cases.table["client"].take(pa.array(self.cases.rows_of(industry)))
        return len(clients) > 0 and not pc.any(pc.fill_null(pc.equal(clients, client), True)).as_py()

    def is_known_variant(self, tasks: tuple[str, ...]) -> bool:
        """Return whether a case of history followed exactly this sequence."""
        return tasks in self._variants

    def unknown_industry_reason(self, industry: str | None) -> str | None:
        """Return why an intake of this industry cannot be answered, None where it can."""
        if industry is None or industry in self.industries:
            return None
        near = difflib.get_close_matches(industry, self.industries, n=3, cutoff=0.0)
        return f"no history of industry {industry!r}; the nearest by name: {', '.join(near) or 'none'}"
