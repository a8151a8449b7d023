"""Steps that a new client's procedure asks for and history lacks: which sentences ask, and what is estimated."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.retrieval.unknown_steps import UnknownStep, unknown_steps
from opus_pipelines.wkg.graph import Edge, ExecutionMode, Task, WorkGraph

TASKS = (
    Task(
        "survey",
        "survey_at_home",
        "A surveyor visits the home.",
        industries=("claims",),
        execution_modes=(ExecutionMode("human", p=0.9, q=0.5, cost_usd_mean=60.0, basis="observed"),),
    ),
    Task(
        "price",
        "price_repairs",
        "Price each item of the repair.",
        industries=("claims",),
        execution_modes=(
            ExecutionMode("code", p=0.8, q=0.1, cost_usd_mean=0.1, basis="observed"),
            ExecutionMode("human", "", p=0.7, q=0.3, cost_usd_mean=20.0, basis="observed"),
        ),
    ),
)


INDEX: Any = SimpleNamespace(
    snapshot=SimpleNamespace(graph=SimpleNamespace(tasks={t.task_id: t for t in TASKS})),
    graph=WorkGraph.of(list(TASKS), [Edge("survey", "price", 9, 9, 0.5, 0.5, 1.0)]),
    passive=frozenset(),
    task_vectors={t.task_id: np.zeros(2, np.float32) for t in TASKS},
)
ENCODER: Any = SimpleNamespace(encode=lambda texts: np.zeros((len(texts), 2), np.float32))


def intake_of(procedure: str, wanted: str = "", request: str = "The car was hit.") -> Intake:
    texts = (("input", request), ("output", wanted), ("process", procedure))
    elements = [
        Element(role, role, "text", f"{role}.md", "text/plain", text, len(text), "", None)
        for role, text in texts
        if text
    ]
    return Intake("i", "i", None, elements, client="New", industry="claims")


def steps_of(procedure: str, **more: str) -> tuple[UnknownStep, ...]:
    return unknown_steps(intake_of(procedure, **more), INDEX, ENCODER)


@pytest.mark.parametrize(
    ("sentence", "titles"),
    [
        ("The vehicle must be inspected all the same, and liability must be set.", "Inspect vehicle; Set liability"),
        ("Have the vehicle inspected before the estimate: a bent tailgate is dear.", "Inspect vehicle"),
        ("An engineer inspects the vehicle: other damage is frequent.", "Inspect vehicle"),
        ("The stolen items must be valued first.", "Value stolen items"),
        ("Ask the police station for the report.", "Ask police station"),
        ("Glass is assessed from photographs; no engineer is sent.", ""),
        ("A ceiling that came down hides what is above it.", ""),
        ("Invoices without a receipt had to be corrected four times out of five.", ""),
        ("The vehicle must not be inspected.", ""),
        ("If the driver is a minor, the parents must be informed.", ""),
        ("Price differences above two per cent go to the buyer.", ""),
        ("The repair must be priced by item.", ""),
        ("A surveyor sees the home.", "See home"),
        ("The house at home must be measured.", "Measure house"),
        ("Read each receipt, ask the driver where one is missing, fix the tax.", "Read receipt; Fix tax"),
    ],
)  # fmt: skip
def test_a_sentence_that_obliges_orders_or_tells_who_does_it_asks_for_a_step(sentence: str, titles: str) -> None:
    assert "; ".join(step.task.title for step in steps_of(sentence)) == titles


def test_what_is_only_told_counts_where_the_client_wants_something_back_of_it() -> None:
    told = "Glass is assessed from photographs."
    assert [s.task.title for s in steps_of(told, wanted="the glass decision")] == ["Assess glass"]
    assert steps_of(told, wanted="the payment") == ()


def test_a_condition_that_the_request_states_holds() -> None:
    (step,) = steps_of("If the driver is a minor, the parents must be informed.", request="The driver is a minor.")
    assert step.task.title == "Inform parents"


def test_a_new_step_has_the_figures_of_people_with_wide_intervals_and_comes_before_what_its_sentence_names() -> None:
    (step,) = steps_of("The vehicle must be inspected before the repair is priced.")
    (mode,) = step.task.execution_modes
    assert (mode.actor_kind, mode.basis, mode.p_n, mode.p_lower, step.task.p_basis) == (
        "human",
        "estimated",
        0,
        None,
        "estimated",
    )
    assert (round(mode.p or 0, 3), mode.cost_usd_mean) == (0.8, 40.0)  # the mean of both: no word is like either
    assert [(rule.kind, rule.tasks) for rule in step.rules] == [
        ("must_contain", (step.task.task_id,)),
        ("before", (step.task.task_id, "price")),
    ]


def test_a_step_is_a_known_one_more_likely_where_what_comes_next_follows_that_one() -> None:
    index = SimpleNamespace(**vars(INDEX) | {"task_vectors": {"survey": np.array([1, 0]), "price": np.array([0, 0])}})
    encoder: Any = SimpleNamespace(encode=lambda texts: np.array([[0.6, 0.8]] * len(texts)))
    titles = lambda text: [s.task.title for s in unknown_steps(intake_of(text), index, encoder)]  # type: ignore[arg-type]
    assert titles("The home must be seen.") == ["See home"]
    assert titles("The home must be seen before the repair is priced.") == []


@pytest.mark.parametrize(("client", "is_new"), [("Other", True), ("New", False), (None, False)])
def test_only_a_client_of_whom_history_has_no_case_is_new(client: str | None, is_new: bool) -> None:
    index = SnapshotIndex(INDEX.snapshot)
    rows = {"claims": np.array([0]), "coding": np.array([], int)}
    index.__dict__["cases"] = SimpleNamespace(table=pa.table({"client": [client]}), rows_of=rows.get)
    assert index.is_new_client("New", "claims") is is_new
    assert not index.is_new_client("New", "coding"), "nobody has history of it"
    assert not index.is_new_client(None, "claims")
