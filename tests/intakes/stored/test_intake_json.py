"""An intake travels as JSON and is the same afterwards."""

import json
from datetime import UTC, datetime

from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.stored import intake_json, intake_of
from opus_pipelines.workflow.constraints import Constraints, StepDeadline

PAGE = Element(
    "e1", "input", "text", "a.pdf", "application/pdf", "Zwölf\n\ud800 Stühle", 3, "ab", "page 2", ((0, "page 1"),)
)
WHOLE = Intake(
    intake_id="k1",
    folder="order-1",
    title="Chairs",
    elements=[PAGE, Element("e2", "process", "other", "b.bin", None, None, 0, "cd", "it is no text")],
    industry="retail",
    client="Acme",
    contract="Retail",
    attributes={"urgent": "True"},
    received_at=datetime(2026, 1, 31, 9, 0, 0, 250, tzinfo=UTC),
    constraints=Constraints(
        max_cost_usd=0.1, before=(("A", "B"),), deadlines=(StepDeadline(step="Pay", within=10, unit="days"),)
    ),
    answers={"ship": "Ship goods"},
    gain_usd=1e-17,
    gain_basis="observed",
)


def test_what_is_written_is_read_again() -> None:
    assert intake_of(intake_json(WHOLE)) == WHOLE
    assert intake_of(intake_json(WHOLE)).constraints.model_fields_set == {"max_cost_usd", "before", "deadlines"}


def test_an_intake_that_states_nothing() -> None:
    least = Intake("k1", "order-1", None, [])
    assert intake_of(intake_json(least)) == least


def test_the_text_is_ascii_with_the_fields_by_name() -> None:
    text = intake_json(WHOLE)
    assert text.isascii()
    stated = json.loads(text)
    assert stated["received_at"] == "2026-01-31T09:00:00.000250+00:00"
    assert stated["gain_usd"] == 1e-17
    assert stated["elements"][0]["places"] == [[0, "page 1"]]
