"""The scores of a flow: the notes' vectors through flow documents, structure validation, bag of steps, HS and HT."""

import dataclasses

import pytest

from opus_pipelines.flows.enterprise.documents import FlowDocument, Trigger
from opus_pipelines.flows.enterprise.examples import world_catalogue
from opus_pipelines.flows.scores import flow_scores
from tests.flows.enterprise.flow_texts import flow, step

LOOK_UP = step("look_up_records", 1, table="incident")
EACH = step("FOREACH", 2, items="{{look_up_records.records}}")
UPDATE = step("update_record", 3, 2, record="{{foreach.item}}", values="state=6")
BARE = Trigger("record_update")
OUTLINE = FlowDocument((BARE,), (step("look_up_records", 1), step("FOREACH", 2), step("update_record", 3, 2)))


@pytest.mark.parametrize(
    ("own", "value"),
    [
        (OUTLINE, 1.0),
        (FlowDocument((BARE,), (step("look_up_records", 1), step("update_record", 3))), 0.8571),
        (FlowDocument((Trigger("daily"),), OUTLINE.components), 0.75),
        (FlowDocument((BARE,), (*OUTLINE.components[:2], step("create_record", 3, 2))), 0.75),
        (FlowDocument(), 0.0),
    ],
)
def test_flowsim_of_the_notes(own: FlowDocument, value: float) -> None:
    found = flow_scores(own, [OUTLINE], world_catalogue())
    assert found.flowsim == pytest.approx(value, abs=1e-4)
    assert found.flowsim_outline == pytest.approx(value, abs=1e-4)


def test_a_sound_flow_keeps_its_score_and_one_with_an_error_has_none() -> None:
    sound = flow(LOOK_UP, EACH, UPDATE)
    found = flow_scores(sound, [sound], world_catalogue())
    assert dataclasses.astuple(found) == (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0)
    wrong = flow(LOOK_UP, EACH, UPDATE, step("ELSE", 4))
    found = flow_scores(wrong, [sound], world_catalogue())
    assert (found.valid_flowsim, found.valid_flowsim_outline, found.structure_errors) == (0, 0, 1)
    assert found.flowsim > 0.9


def test_steps_and_tables_outside_the_catalogue_are_counted() -> None:
    strange = flow(step("teleport", 1), step("look_up_records", 2, table="spaceship"), LOOK_UP)
    found = flow_scores(strange, [flow(LOOK_UP, EACH, UPDATE)], world_catalogue())
    assert found.hallucinated_steps == 0.25
    assert found.hallucinated_tables == pytest.approx(1 / 3)
    assert (found.bag_of_steps, found.bag_of_steps_jaccard) == (pytest.approx(1 / 3), 0.2)
    empty = flow_scores(FlowDocument(), [FlowDocument()], world_catalogue())
    assert (empty.trigger_match, empty.hallucinated_steps, empty.bag_of_steps) == (None, None, 1.0)


def test_the_nearest_of_several_references_counts() -> None:
    own = flow(LOOK_UP)
    assert flow_scores(own, [flow(EACH), own, flow(UPDATE)], world_catalogue()).flowsim == 1.0
