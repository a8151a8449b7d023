"""Inputs by a language model: known flows can be written with the options alone, and nothing else can come out."""

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import pytest

from opus_pipelines.flows.enterprise import documents
from opus_pipelines.flows.enterprise.documents import FlowDocument
from opus_pipelines.flows.enterprise.examples import KINDS, world_catalogue, world_examples
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.scores import flow_scores
from opus_pipelines.flows.writers.input_choice import InputWriter, SlotOptions, following, lines_of, taught
from opus_pipelines.lwm.language_models.prompts import Prompt

SLOTS = (SlotOptions("table", ("a", "b"), True), SlotOptions("values", ("x=1", "y=2"), False, 2))


def without_inputs(flow: FlowDocument) -> FlowDocument:
    triggers = tuple(replace(t, inputs=()) for t in flow.triggers)
    return replace(flow, triggers=triggers, components=tuple(replace(c, inputs=()) for c in flow.components))


def read(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition("=")
        found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_options_hold_what_known_flows_need(kind: str) -> None:
    scores = []
    for example in [e for e in world_examples() if e.kind == kind][:30]:
        answers = {prompt.key: lines for prompt, lines in taught(world_catalogue(), example.flow, example.text)}
        writer = InputWriter(world_catalogue(), lambda prompt, _, known=answers: read(known.get(prompt.key, ())))
        made = writer.populate(without_inputs(example.flow), example.text)
        assert writer.repaired == 0
        scores.append(flow_scores(made, [example.flow], world_catalogue()).flowsim)
    assert fmean(scores) >= 0.93  # what follows an input that has no option is asked otherwise, too


def test_any_choice_among_the_options_is_sound() -> None:
    draw = random.Random(5)

    def fill(_: Prompt, slots: Sequence[SlotOptions]) -> dict[str, list[str]]:
        return {s.name: draw.sample(s.options, min(s.most, len(s.options))) for s in slots}

    writer = InputWriter(world_catalogue(), fill)
    filled = 0
    for example in world_examples()[::10]:
        made = writer.populate(without_inputs(example.flow), example.text)
        filled += sum(len(c.inputs) for c in made.components)
        codes = {e.code for e in structure_errors(made, world_catalogue())}
        assert codes <= {"missing_input", "foreach_not_list"}
    assert filled > 100
    assert writer.repaired < 0.05 * filled


def test_answers_outside_the_options_are_left_out_and_counted() -> None:
    flow = documents.parse_script("when daily\nlog")
    writer = InputWriter(world_catalogue(), lambda *_: {"time": ["drop"], "message": ["-"], "level": ["<script>", "-"]})
    made = writer.populate(flow, 'Every day at 06:00, log "x".')
    assert made == flow
    assert writer.repaired >= 2


def test_the_lines_of_inputs_follow_their_order() -> None:
    assert following(SLOTS, ()) == (("table=a", "table=b"), False)
    assert following(SLOTS, ("table=a",)) == (("values=-", "values=x=1", "values=y=2"), False)
    assert following(SLOTS, ("table=a", "values=x=1")) == (("values=y=2",), True)
    assert following(SLOTS, ("table=a", "values=-")) == ((), True)
    assert lines_of(SLOTS, {"table": ["b"], "values": ["x=1", "y=2"]}) == ("table=b", "values=x=1", "values=y=2")
    assert lines_of(SLOTS, {"table": ["b"]}) == ("table=b", "values=-")
