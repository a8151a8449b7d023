"""The cases of an industry as the pointer model reads them: requests with a text, and their tasks in order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.intakes.elements import Element
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.pointer.clauses import EncodedRequest, clauses_of, texts_of
from opus_pipelines.lwm.pointer.memory import CaseMemory, IndustryGraph, block, sparse
from opus_pipelines.lwm.retrieval.consensus import Trace
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex

_MOST_CASES = 3_000  # the latest ones; the kernel regression costs the third power of their number
LEAST_CASES = 50
CHAIN = 0.98  # share of steps that directly follow the step before, from which histories are chains
_LINKED = 0.5  # share of the cases with two tasks that link them, from which a sequence links them


@dataclass(frozen=True)
class IndustryMemory:
    """The memory of one industry, and what it was made of, case by case.

    Attributes:
        memory: the cases as the pointer model reads them.
        ids: implementation ids.
        texts: requests.
        is_chain: whether nearly every step directly follows the step before.
    """

    memory: CaseMemory
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    is_chain: bool

    def without(self, hidden: Sequence[int]) -> "IndustryMemory":
        """Return the memory of the other cases; the transitions of the hidden ones are taken out of the edges."""
        gone = set(hidden)
        kept = [n for n in range(len(self.ids)) if n not in gone]
        return IndustryMemory(
            self.memory.without(gone),
            tuple(self.ids[n] for n in kept),
            tuple(self.texts[n] for n in kept),
            self.is_chain,
        )

    def with_declared(self, tasks: Sequence[str], titles: Sequence[str], vectors: np.ndarray) -> "IndustryMemory":
        """Return the memory with further tasks that no case did, see `CaseMemory.with_declared`."""
        return replace(self, memory=self.memory.with_declared(tasks, titles, vectors))

    def trace(self, tasks: Sequence[str]) -> Trace:
        """Return a written sequence as a trace; where history branches, links are those that most cases have."""
        if self.is_chain:
            return Trace.of(tasks)
        place = {task: n for n, task in enumerate(self.memory.graph.tasks)}
        numbers = [place[task] for task in tasks]
        links, ahead = block(self.memory.graph.transitions, numbers), block(self.memory.before, numbers)
        predecessors: list[list[int] | None] = []
        for n in range(len(numbers)):
            rates = [links[m, n] / max(1.0, ahead[m, n] + ahead[n, m]) for m in range(n)]
            linked = [m for m, rate in enumerate(rates) if rate >= _LINKED]
            predecessors.append(linked or ([int(np.argmax(rates))] if any(rates) else None))
        return Trace.of(tasks, predecessors)


def memory_of(index: SnapshotIndex, industry: str) -> IndustryMemory | None:
    """Return the memory of an industry's cases, made once for each index; None where there is none."""
    if industry not in index.memories:
        index.memories[industry] = industry_memory(index, industry)
    return index.memories[industry]


def industry_memory(index: SnapshotIndex, industry: str) -> IndustryMemory | None:
    """Return the memory of an industry's cases with a text; None where they are fewer than `LEAST_CASES`.

    Cases that failed, and cases in which refusing was right, teach nothing here.
    """
    cases, requests = index.cases.table, index.snapshot.requests
    vectors = index.case_vectors
    rows = index.cases.rows_of(industry)
    failed = pc.equal(cases["success"], False).fill_null(False).to_numpy()
    ids = cases["implementation_id"].to_pylist()
    rows = np.array([r for r in rows.tolist() if ids[r] in requests and ids[r] in vectors and not failed[r]], np.int64)
    rows = latest(cases, rows, _MOST_CASES)
    taken = cases.select(["tasks", "task_predecessors"]).take(pa.array(rows))
    traces = [first_occurrences(tasks or ()) for tasks in taken["tasks"].to_pylist()]
    chosen = [n for n, trace in enumerate(traces) if trace]
    if len(chosen) < LEAST_CASES:
        return None
    graph = industry_graph(index, industry, {task for n in chosen for task in traces[n]})
    place = {task: n for n, task in enumerate(graph.tasks)}
    own = [ids[rows[n]] for n in chosen]
    memory = CaseMemory(
        graph,
        [requests[i] for i in own],
        np.stack([vectors[i] for i in own]),
        [[place[task] for task in traces[n]] for n in chosen],
    )
    predecessors = taken["task_predecessors"].to_pylist()
    is_chain = _is_chain([predecessors[n] for n in chosen])
    return IndustryMemory(memory, tuple(own), tuple(requests[i] for i in own), is_chain)


def industry_graph(index: SnapshotIndex, industry: str, done: set[str]) -> IndustryGraph:
    """Return the tasks of an industry, and those in `done`, with their edges of the Work Knowledge Graph."""
    graph, vectors = index.graph, index.task_vectors
    tasks = sorted(t for t, task in graph.tasks.items() if t in vectors and (industry in task.industries or t in done))
    place = {task: n for n, task in enumerate(tasks)}
    edges = [edge for edge in graph.edges.values() if edge.src in place and edge.dst in place]
    places = [place[edge.src] for edge in edges], [place[edge.dst] for edge in edges]
    gamma = sparse(places, [edge.gamma for edge in edges], len(tasks))
    transitions = sparse(places, [edge.transitions for edge in edges], len(tasks))
    titles = tuple(graph.tasks[task].title for task in tasks)
    return IndustryGraph(tuple(tasks), titles, np.stack([vectors[task] for task in tasks]), gamma, transitions)


def encoded_requests(texts: Sequence[str], vectors: np.ndarray, encoder: TextEncoder) -> list[EncodedRequest]:
    """Return requests with the vectors of their clauses; `vectors` [n, d] are those of the whole texts."""
    distinct = texts_of(texts)
    of_clause = dict(zip(distinct, encoder.encode(distinct), strict=True))
    return [
        EncodedRequest.of(text, vector, np.stack([of_clause[clause.text] for clause in clauses_of(text)]))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def request_of(elements: Sequence[Element]) -> str:
    """Return the client input of an intake as one text."""
    return "\n".join(element.text for element in elements if element.role == "input" and element.text)


def _is_chain(predecessors: Sequence[Sequence[Sequence[int] | None] | None]) -> bool:
    stated = [
        places is None or list(places) == ([n - 1] if n else [])
        for case in predecessors
        for n, places in enumerate(case or ())
    ]
    return not stated or sum(stated) / len(stated) >= CHAIN
