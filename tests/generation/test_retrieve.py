"""What a serving model expects of a request, as retrieval asks it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.records import GenerationContext, Request
from opus_pipelines.generation.retrieve import expected_by_model
from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.lwm.next_step import Written
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import Champion
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue, IndustryMemory
from opus_pipelines.wkg.graph import Task
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, vector

CASES = plans(60)
A, B, C, D = TOOLS[:4]
WRITTEN = {(A, C, B, D): 2.0, (D, C, A, B): 1.9, (C, D, A, B): 1.5}


class WritesAlwaysTheSame:
    """A model that writes the same sequences for every request."""

    reader = None

    def sequences(self, *_: object) -> list[Written]:
        total = sum(WRITTEN.values())
        return [Written(tuple(map(TOOLS.index, tools)), weight / total) for tools, weight in WRITTEN.items()]


class WritesTheLastTask:
    """A model that writes the last task of the memory alone."""

    reader = None

    def sequences(self, _: object, known: CaseMemory) -> list[Written]:
        return [Written((len(known.graph.tasks) - 1,), 1.0)]


class Encoder:
    """Encodes a text as the words of the fixtures."""

    def encode(self, texts: Any) -> list[Any]:
        return [vector(text) for text in texts]


def asked(industry: str | None, serves: str, model: object = WritesAlwaysTheSame(), *tools: str) -> Any:
    """Return what a model that serves one industry expects of a request; the contract declares `tools`."""
    backend = PointerBackend()
    backend.champion = Champion("m1", cast(Any, model), frozenset({serves}))
    texts = tuple(asks_for(case) for case in CASES)
    known = IndustryMemory(memory(CASES), tuple(map(str, range(len(CASES)))), texts, is_chain=True)
    graph = SimpleNamespace(tasks={tool: Task(tool, tool, industries=("plans",)) for tool in TOOLS})
    names = SimpleNamespace(tasks=lambda name: frozenset({name} & set(TOOLS)))
    index = cast(Any, SimpleNamespace(memories={"plans": known}, graph=graph, names=names, procedures=None))
    declared = Catalogue(tuple(DeclaredTask(tool, "catalogue.csv", n) for n, tool in enumerate(tools, 1)))
    catalogue = ContractCatalogue(index, "client", "contract", declared)
    text = asks_for([A, B])
    intake = SimpleNamespace(industry=industry, elements=[SimpleNamespace(role="input", text=text)])
    request = SimpleNamespace(intake=intake, input_vector=vector(text))
    terms, encoder = cast(Any, None), cast(Any, Encoder())
    context = GenerationContext(index, encoder, backend, Settings(), terms, catalogue=catalogue if tools else None)
    return expected_by_model(cast(Request, request), context)


def test_the_workflow_begins_with_the_step_that_most_sequences_begin_with() -> None:
    """Most sequences do C before A; but A begins more of them than C or D."""
    found = asked("plans", serves="plans")
    assert found.tasks == (A, C, D, B)
    assert found.support == pytest.approx(dict.fromkeys((A, B, C, D), 1.0))


@pytest.mark.parametrize("industry", [None, "other"])
def test_a_model_that_does_not_serve_the_industry_is_not_asked(industry: str | None) -> None:
    assert asked(industry, serves="plans") is None
    assert asked("plans", serves="other") is None


def test_a_tool_that_only_the_catalogue_of_the_contract_has_can_be_expected() -> None:
    parcel = make_id("t", "declared", "client", "contract", "send parcel")
    assert asked("plans", "plans", WritesTheLastTask(), "send_invoice", "send_parcel").tasks == (parcel,)
    assert asked("plans", "plans", WritesTheLastTask(), "send_invoice").tasks == (TOOLS[-1],), "it is a known task"
    assert asked("plans", "plans", WritesTheLastTask()).tasks == (TOOLS[-1],)
