"""A backend of the LWM from another distribution: it loads, expects tasks, writes sequences and steps, and serves."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from opus_pipelines.core.errors import PluginError
from opus_pipelines.core.settings import Settings, parse
from opus_pipelines.generation.records import GenerationContext, Request
from opus_pipelines.generation.retrieve import expected_by_model
from opus_pipelines.generation.written_steps import load_writer, texts_to_write
from opus_pipelines.intakes.elements import Element
from opus_pipelines.lwm.interface import LargeWorkModel, LwmRequest, backend_of
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.retrieval.expected_tasks import expected_tasks
from opus_pipelines.wkg.graph import Task, WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG
from tests.distributions import Install
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, vector

CASES = plans(40)
MODULE = '''
import json

import numpy as np

from opus_pipelines.lwm.interface import ExpectedSequence, TaskSequence, Usage


class Likely:
    def composed(self, parts):
        return parts["input"].mean(0)

    def probabilities(self, intentions, tasks, rates):
        return np.tile(np.linspace(0.9, 0.1, len(tasks)), (len(intentions), 1))


class Writer:
    rates = dict.fromkeys(("similar case", "sentence", "clause", "listed"), (0.5, 0.5))

    def written(self, request, context, memory, encode):
        return ["written", request]


class Backend:
    """It inherits from nothing, as the page on extending shows."""

    name = "acme"
    is_loaded = False

    def configure(self, settings):
        self.k = settings.generation.k

    def open(self, lake):
        self.weights = json.loads((lake.root / "acme.json").read_text())

    @property
    def version(self):
        return f"acme-{self.weights['id']}"

    def generate(self, request):
        return [TaskSequence(0, tuple(self.weights["plan"]), 1.0, "lwm")][: self.k]

    def usage(self, request):
        return Usage(1, 2, 0.5)

    def serves(self, industry):
        return industry == "plans"

    def load(self):
        self.is_loaded = True

    def expected(self, request, memory):
        return [ExpectedSequence(tuple(self.weights["plan"]), 1.0)]

    def intention_encoder(self, industry):
        return Likely() if industry == "plans" else None

    def step_writer(self, industry):
        return Writer() if industry == "plans" else None


class Least:
    name = "acme"
    version = "acme-1"

    def generate(self, request):
        return []


class Wrong(Backend):
    def serves(self):
        return True
'''


Choose = Callable[[str], LargeWorkModel]


@pytest.fixture
def choose(tmp_path: Path, install: Install) -> Choose:
    """Returns what installs the distribution with one of its backends, and chooses it by the settings."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "acme.json").write_text('{"id": "w7", "plan": ["check_account", "send_invoice"]}')

    def chosen(name: str) -> LargeWorkModel:
        install("acme_lwm", f"[opus_pipelines.lwm_backends]\nacme = acme_lwm:{name}\n", MODULE)
        stated = {"generation": {"lwm_backend": "acme", "k": 1}, "paths": {"lake": tmp_path / "lake"}}
        return backend_of(parse(Settings, stated, "opus.toml"))

    return chosen


def test_it_loads_its_weights_from_the_lake_and_writes_sequences(choose: Choose) -> None:
    backend = choose("Backend")
    assert (backend.name, backend.version) == ("acme", "acme-w7")
    graph = WorkGraph.of([Task(tool, tool) for tool in TOOLS], [])
    request = LwmRequest(np.ones(2), graph, [SubWKG({TOOLS[0]: "terminal"}, ())], [])
    assert [one.tasks for one in backend.generate(request)] == [("check_account", "send_invoice")]
    usage = backend.usage(request)
    assert usage is not None
    assert usage.cost_usd == 0.5


@pytest.mark.parametrize(("industry", "tasks"), [("plans", ("check_account", "send_invoice")), ("other", None)])
def test_what_it_expects_is_usual_practice_in_the_industries_that_it_serves(
    choose: Choose, industry: str, tasks: tuple[str, ...] | None
) -> None:
    texts = tuple(asks_for(case) for case in CASES)
    known = IndustryMemory(memory(CASES), tuple(map(str, range(len(CASES)))), texts, is_chain=True)
    index, encoder = SimpleNamespace(memories={industry: known}), SimpleNamespace(encode=lambda own: map(vector, own))
    text = asks_for(TOOLS[:2])
    intake = SimpleNamespace(industry=industry, elements=[SimpleNamespace(role="input", text=text)])
    request = SimpleNamespace(intake=intake, input_vector=vector(text))
    context = GenerationContext(cast(Any, index), cast(Any, encoder), choose("Backend"), Settings(), cast(Any, 0))
    found = expected_by_model(cast(Request, request), context)
    assert (found.tasks if found else None) == tasks


def test_its_encoder_tells_which_tasks_an_intention_leads_to(choose: Choose) -> None:
    encoder = choose("Backend").intention_encoder("plans")
    assert encoder is not None
    index = SimpleNamespace(
        task_rates=lambda industry, client: dict.fromkeys(TOOLS, 0.5), task_vectors={t: vector(t) for t in TOOLS}
    )
    intention = SimpleNamespace(parts={"input": np.stack([vector(TOOLS[0])])}, requests=())
    of = SimpleNamespace(industry="plans", client=None)
    likely = expected_tasks(encoder, cast(Any, intention), cast(Any, index), cast(Any, of))
    assert [task for task, p in likely.items() if p > 0.5] == list(TOOLS[:4])


def test_its_writer_is_asked_for_the_steps_of_an_industry(choose: Choose) -> None:
    backend, loaded = choose("Backend"), list[str]()
    remembered = SimpleNamespace(texts=lambda request, context: [request, context], load=lambda: loaded.append("texts"))
    index = cast(Any, SimpleNamespace(text_memories={"plans": remembered}))
    elements = [cast(Element, SimpleNamespace(role="input", text="Water the plants."))]
    assert texts_to_write(elements, "plans", backend, index) == ["Water the plants.", ""]
    assert texts_to_write(elements, "other", backend, index) == []
    load_writer("plans", backend, index)
    assert loaded == ["texts"]
    writer = backend.step_writer("plans")
    assert writer is not None
    assert writer.written("Water the plants.", "", cast(Any, None), cast(Any, None)) == ["written", "Water the plants."]


def test_what_it_leaves_out_has_the_defaults(choose: Choose) -> None:
    backend = choose("Least")
    nothing = cast(Any, None)
    assert (backend.version, backend.serves("plans"), backend.expected(nothing, nothing)) == ("acme-1", False, [])
    assert (backend.usage(nothing), backend.intention_encoder("plans"), backend.step_writer("plans")) == (None,) * 3


def test_a_method_that_takes_something_else_is_named(choose: Choose) -> None:
    with pytest.raises(PluginError, match=r"acme_lwm.*serves"):
        choose("Wrong")
