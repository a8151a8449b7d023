"""The pointer model of the Large Work Model as a writer of outlines: a flow is a case, its trigger and steps are tasks.

The catalogue's triggers and steps stand in place of a snapshot's tasks, with their texts; the requirement is the
request. The model writes sequences, so flow logic and inputs are left out.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from opus_pipelines.core.errors import InputError
from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.clauses import LONGEST_REQUIREMENT
from opus_pipelines.flows.enterprise.composer import with_categories
from opus_pipelines.flows.enterprise.documents import ACTION, Component, FlowDocument, FlowDocumentError, Trigger
from opus_pipelines.flows.writers.platform_flows import Known
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.pointer.candidates import EncodedRequest, clauses_of
from opus_pipelines.lwm.pointer.learning import train_pointer
from opus_pipelines.lwm.pointer.memory import CaseMemory, IndustryGraph, sparse

WHEN = "when "


class PointerWriter:
    """Writes the likeliest sequence of trigger and steps for a requirement."""

    name = "pointer model, outline only"

    def __init__(self, catalogue: Catalogue, known: Known, encoder: TextEncoder) -> None:
        """Trains on known flows. Raises InputError where there are fewer than two."""
        if len(known) < 2:
            raise InputError("the pointer model needs at least two known flows to learn from")
        self._catalogue, self._encoder = catalogue, encoder
        self._memory = CaseMemory(*_cases(catalogue, known, encoder))
        self._model = train_pointer([(self._memory, [self._request(text) for text, _ in known])])

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the outline. Raises FlowDocumentError where the requirement is empty."""
        requirement = requirement[:LONGEST_REQUIREMENT]
        if not requirement.strip():
            raise FlowDocumentError("the requirement is empty; say when the flow starts and what it does")
        written = self._model.sequences(self._request(requirement), self._memory)[0]
        names = [self._memory.graph.tasks[task] for task in written.tasks]
        triggers = [Trigger(name.removeprefix(WHEN), (), requirement) for name in names if name.startswith(WHEN)]
        steps = [name for name in names if not name.startswith(WHEN)]
        components = tuple(Component(name, n, ACTION, None, (), requirement) for n, name in enumerate(steps, 1))
        return with_categories(FlowDocument(tuple(triggers[:1]), components), self._catalogue)

    def _request(self, text: str) -> EncodedRequest:
        clauses = [clause.text for clause in clauses_of(text)]
        vectors = np.asarray(self._encoder.encode([text, *clauses]), np.float32)
        return EncodedRequest.of(text, vectors[0], vectors[1:])


def _cases(
    catalogue: Catalogue, known: Known, encoder: TextEncoder
) -> tuple[IndustryGraph, list[str], np.ndarray, list[list[int]]]:
    """The catalogue as the tasks of one industry, and the known flows as its cases."""
    entries = {f"{WHEN}{name}": entry for name, entry in catalogue.triggers.items()}
    entries |= {**catalogue.actions, **catalogue.subflows}
    tasks = tuple(sorted(entries))
    place = {task: n for n, task in enumerate(tasks)}
    traces = [[place[task] for task in sequence(flow) if task in place] for _, flow in known]
    counts = Counter(pair for trace in traces for pair in pairwise(trace))
    places = [a for a, _ in counts], [b for _, b in counts]
    transitions = np.array(list(counts.values()), np.float64)
    titles = tuple(f"{entries[task].label}: {entries[task].about}" for task in tasks)
    vectors = np.asarray(encoder.encode(list(titles)), np.float32)
    gamma = sparse(places, 1 - np.exp(-transitions), len(tasks))
    graph = IndustryGraph(tasks, titles, vectors, gamma, sparse(places, transitions, len(tasks)))
    texts = [text for text, _ in known]
    return graph, texts, np.asarray(encoder.encode(texts), np.float32), traces


def sequence(flow: FlowDocument) -> Sequence[str]:
    """Returns trigger and steps of a flow in their order, each once, without flow logic."""
    names = [f"{WHEN}{flow.trigger.type}"] if flow.trigger else []
    return list(dict.fromkeys([*names, *(c.definition for c in flow.components if not c.is_logic)]))
