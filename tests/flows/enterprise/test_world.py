"""The invented enterprise: its size, its split, and that every flow of it is sound and in its words."""

import pytest

from benchmarks.invented_requirements import COUNT, SEED, generated, toml_of
from opus_pipelines.flows.enterprise import documents
from opus_pipelines.flows.enterprise.documents import FlowDocumentError
from opus_pipelines.flows.enterprise.examples import CATALOGUE_FILE, KINDS, world_catalogue, world_examples
from opus_pipelines.flows.enterprise.validation import structure_errors


def test_the_examples_are_split_by_hash_and_the_generated_ones_are_what_the_generator_writes() -> None:
    found = world_examples()
    counts = {
        (kind, part): sum(e.kind == kind and e.part == part for e in found)
        for kind in KINDS
        for part in ("tune", "held out")
    }
    assert list(counts.values()) == [150, 150, 15, 25, 31, 29]
    assert len({e.text for e in found}) == 400
    assert toml_of(generated(world_catalogue(), COUNT, SEED)) == (CATALOGUE_FILE.parent / "generated.toml").read_text()
    assert generated(world_catalogue(), 20, SEED + 1) != generated(world_catalogue(), 20, SEED)


def test_every_flow_is_sound_and_every_annotation_is_a_span_of_its_requirement() -> None:
    for example in world_examples():
        assert structure_errors(example.flow, world_catalogue()) == [], example.id
        spans = [t.annotation for t in example.flow.triggers] + [c.annotation for c in example.flow.components]
        assert all(span and span in example.text for span in spans), example.id


def test_a_script_is_read_and_written() -> None:
    script = "when daily time=06:00\nFOREACH items={{a.b}}\n  log message=x = y | level=info\nonboard\n"
    flow = documents.parse_script(script, subflows=["onboard"])
    assert [(c.name, c.category, c.block) for c in flow.components] == [
        ("FOREACH", "flowlogic", None),
        ("log", "action", 1),
        ("onboard", "subflow", None),
    ]
    assert flow.components[1].input("message") == "x = y"
    assert documents.script_of(flow) == script
    assert documents.marked("[when a], [2|b], [1,3|c]") == ("when a, b, c", ["when a", "c", "b", "c"])


@pytest.mark.parametrize("script", ["", "log message=x", "when daily\n    log message=x", "when daily\nlog message"])
def test_a_script_that_is_not_well_formed_is_an_error(script: str) -> None:
    with pytest.raises(FlowDocumentError, match=r"line \d"):
        documents.parse_script(script)
    with pytest.raises(FlowDocumentError):
        documents.parse_script("when daily\nlog message=x", ["only one"])
