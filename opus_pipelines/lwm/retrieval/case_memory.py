"""The cases of an industry as the models read them: requests with a text and their tasks in order, or their texts.

A contract's catalogue adds the tools that no case did. Where history has no fixed catalogue, most steps are texts of
one case, and the cases are remembered as texts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.intakes.catalogues.entries import NO_CATALOGUE, Catalogue
from opus_pipelines.intakes.catalogues.reading import Candidates
from opus_pipelines.intakes.catalogues.resolution import Owner, Resolved, ResolvedCatalogue, resolve
from opus_pipelines.intakes.elements import Element
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.history_backend import first_occurrences
from opus_pipelines.lwm.pointer.candidates import EncodedRequest, clauses_of, texts_of
from opus_pipelines.lwm.pointer.memory import CaseMemory, IndustryGraph, block, sparse
from opus_pipelines.lwm.retrieval.consensus import Trace
from opus_pipelines.lwm.retrieval.requested_steps import History
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.step_writing.memory import TextCase, TextMemory
from opus_pipelines.wkg.rebuild.vectors import task_text

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
    rows, has_vector = index.cases.rows_of(industry), index.cases.search.has_vector
    failed = pc.equal(cases["success"], False).fill_null(False).to_numpy()
    ids = cases["implementation_id"].to_pylist()
    rows = np.array([r for r in rows.tolist() if ids[r] in requests and has_vector[r] and not failed[r]], np.int64)
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
        index.cases.vectors_of(rows[chosen]),
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


_MOST_TEXT_CASES = 2_000  # the latest ones
OPEN = 0.5  # share of the names of steps that one case alone has, from which an industry has no fixed catalogue
_LEAST_NAME_WORDS = 2.5  # mean number of words of these names; shorter ones are codes
MOST_VECTORS = 60_000  # vectors that are remembered; beyond them all are forgotten


class RememberedVectors:
    """Encodes texts; the vector of a text that was asked for before is remembered."""

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors [n, d] of n texts."""
        if not texts:
            return np.zeros((0, self.encoder.dimension), np.float32)
        if len(self._known) > MOST_VECTORS:
            self._known.clear()
        unknown = sorted({text for text in texts if text not in self._known})
        if unknown:
            self._known.update(zip(unknown, self.encoder.encode(unknown), strict=True))
        return np.stack([self._known[text] for text in texts])


def text_cases(index: SnapshotIndex, industry: str) -> list[TextCase]:
    """Return the cases of an industry with a request, as texts; none where its history has a fixed catalogue.

    Cases that failed teach nothing.
    """
    table, requests = index.cases.table, index.snapshot.requests
    ids = table["implementation_id"].to_pylist()
    failed = pc.equal(table["success"], False).fill_null(False).to_numpy()
    rows = [row for row in index.cases.rows_of(industry).tolist() if ids[row] in requests and not failed[row]]
    rows = latest(table, np.array(rows, np.int64), _MOST_TEXT_CASES).tolist()
    taken = table.select(["task_keys", "task_predecessors"]).take(pa.array(rows, pa.int64()))
    names = [list(dict.fromkeys(keys or ())) for keys in taken["task_keys"].to_pylist()]
    if not is_open(names):
        return []
    contexts = index.snapshot.contexts
    return [
        TextCase(requests[ids[row]], contexts.get(ids[row], ""), tuple(steps), _follow_each_other(predecessors))
        for row, steps, predecessors in zip(rows, names, taken["task_predecessors"].to_pylist(), strict=True)
        if steps
    ]


def is_open(cases: Sequence[Sequence[str]]) -> bool:
    """Return whether the steps of these cases, each a list of distinct names, come from no fixed catalogue."""
    times = Counter(name for names in cases for name in names)
    if len(cases) < 2 or not times:
        return False
    words = sum(len(name.split()) for name in times) / len(times)
    return words >= _LEAST_NAME_WORDS and sum(n == 1 for n in times.values()) >= OPEN * len(times)


def text_memory(index: SnapshotIndex, industry: str, rates: Mapping[str, Sequence[float]]) -> TextMemory | None:
    """Return the text memory of an industry, made once for each index; None where it has a fixed catalogue.

    `rates`: those of `TextMemory` as training computed them.
    """
    if industry not in index.text_memories:
        cases = text_cases(index, industry)
        index.text_memories[industry] = TextMemory(cases, rates) if cases else None
    return index.text_memories[industry]


def _follow_each_other(predecessors: Sequence[Sequence[int] | None] | None) -> bool:
    return all(places is None or list(places) == ([n - 1] if n else []) for n, places in enumerate(predecessors or ()))


@dataclass(frozen=True)
class ContractCatalogue:
    """The catalogue of one contract; what is known of it is computed once for each industry."""

    index: SnapshotIndex
    client: str = ""
    contract: str = ""
    catalogue: Catalogue = NO_CATALOGUE
    _memories: dict[tuple[str, ...], IndustryMemory] = field(default_factory=dict, repr=False, compare=False)
    _resolved: dict[str | None, ResolvedCatalogue] = field(default_factory=dict, repr=False, compare=False)

    def history(self, industry: str | None) -> History:
        """Return what reading the procedure of an intake of the industry needs."""
        if not self.catalogue:
            return History(self.index.procedures)
        return History(self.index.procedures, self.resolved(industry), self._candidates)

    def declared(self, elements: Sequence[Element], industry: str) -> tuple[Resolved, ...]:
        """Return the tools that come into question for an intake and that history of the industry lacks."""
        known = self.resolved(industry).by_name
        tools = (known[tool.plain] for tool in self.history(industry).tools(elements))
        return tuple(tool for tool in tools if not tool.is_known)

    def texts_to_encode(self, elements: Sequence[Element], industry: str) -> list[str]:
        """Return the texts of these tools that are embedded: the same as of a task of history."""
        declared = self.declared(elements, industry)
        return [task_text(one.title, one.tool.description, [industry], None) for one in declared]

    def memory(self, elements: Sequence[Element], industry: str, encoder: TextEncoder) -> IndustryMemory | None:
        """Return the memory of an industry's cases with the tools that no case did; None where there is no memory.

        That of the last tools is kept: a catalogue that is taken whole has the same ones for every intake.
        """
        memory, declared = memory_of(self.index, industry), self.declared(elements, industry)
        if memory is None or not declared:
            return memory
        tasks = tuple(tool.task_id for tool in declared)
        key = (industry, *tasks)
        if key not in self._memories:
            vectors = encoder.encode(self.texts_to_encode(elements, industry))
            self._memories.clear()
            self._memories[key] = memory.with_declared(tasks, [tool.title for tool in declared], vectors)
        return self._memories[key]

    def resolved(self, industry: str | None) -> ResolvedCatalogue:
        """Return what each tool is for an intake of the industry."""
        if industry not in self._resolved:
            owner = Owner(self.client, self.contract, industry)
            self._resolved[industry] = resolve(self.catalogue, owner, self.index.graph, self.index.names.tasks)
        return self._resolved[industry]

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(self.catalogue)
