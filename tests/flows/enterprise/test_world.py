"""The invented enterprise: its size, its split, and that every flow of it is sound and in its words."""

import pytest

from opus_pipelines.flows.enterprise.documents import FlowDocumentError
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.enterprise.world import flow_script
from opus_pipelines.flows.enterprise.world.examples import COUNT, KINDS, SEED, examples, world_catalogue
from opus_pipelines.flows.enterprise.world.generator import generated


def test_the_examples_are_split_by_hash_and_the_generator_is_seeded() -> None:
    found = examples()
    counts = {
        (kind, part): sum(e.kind == kind and e.part == part for e in found)
        for kind in KINDS
        for part in ("tune", "held out")
    }
    assert list(counts.values()) == [150, 150, 15, 25, 31, 29]
    assert len({e.text for e in found}) == 400
    assert generated(world_catalogue(), COUNT, SEED) == generated(world_catalogue(), COUNT, SEED)
    assert generated(world_catalogue(), 20, SEED + 1) != generated(world_catalogue(), 20, SEED)


def test_every_flow_is_sound_and_every_annotation_is_a_span_of_its_requirement() -> None:
    for example in examples():
        assert structure_errors(example.flow, world_catalogue()) == [], example.id
        spans = [t.annotation for t in example.flow.triggers] + [c.annotation for c in example.flow.components]
        assert all(span and span in example.text for span in spans), example.id


def test_a_script_is_read_and_written() -> None:
    script = "when daily time=06:00\nFOREACH items={{a.b}}\n  log message=x = y | level=info\nonboard\n"
    flow = flow_script.parse(script, subflows=["onboard"])
    assert [(c.name, c.category, c.block) for c in flow.components] == [
        ("FOREACH", "flowlogic", None),
        ("log", "action", 1),
        ("onboard", "subflow", None),
    ]
    assert flow.components[1].input("message") == "x = y"
    assert flow_script.write(flow) == script
    assert flow_script.marked("[when a], [2|b], [1,3|c]") == ("when a, b, c", ["when a", "c", "b", "c"])


@pytest.mark.parametrize("script", ["", "log message=x", "when daily\n    log message=x", "when daily\nlog message"])
def test_a_script_that_is_not_well_formed_is_an_error(script: str) -> None:
    with pytest.raises(FlowDocumentError, match=r"line \d"):
        flow_script.parse(script)
    with pytest.raises(FlowDocumentError):
        flow_script.parse("when daily\nlog message=x", ["only one"])
