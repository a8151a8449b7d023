"""Inputs by a language model: known flows can be written with the options alone, and nothing else can come out."""

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import pytest

from opus_pipelines.flows.enterprise import documents
from opus_pipelines.flows.enterprise.documents import FlowDocument, Input
from opus_pipelines.flows.enterprise.examples import KINDS, world_catalogue, world_examples
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.enterprise.values import EncodedQuery, parse_query, query_text
from opus_pipelines.flows.scores import flow_scores
from opus_pipelines.flows.writers.input_choice import InputOptions, InputWriter, SlotOptions, following, question
from opus_pipelines.lwm.language_models.prompts import Prompt

SLOTS = (SlotOptions("table", ("a", "b"), True), SlotOptions("values", ("x=1", "y=2"), False, 2))


def without_inputs(flow: FlowDocument) -> FlowDocument:
    triggers = tuple(replace(t, inputs=()) for t in flow.triggers)
    return replace(flow, triggers=triggers, components=tuple(replace(c, inputs=()) for c in flow.components))


def with_inputs(flow: FlowDocument, place: int | None, inputs: tuple[Input, ...]) -> FlowDocument:
    if place is None:
        return replace(flow, triggers=tuple(replace(t, inputs=inputs) for t in flow.triggers[:1]))
    components = list(flow.components)
    components[place] = replace(components[place], inputs=inputs)
    return replace(flow, components=tuple(components))


def right_answers(flow: FlowDocument, requirement: str) -> dict[str, dict[str, list[str]]]:
    """The values of a known flow for each question, as far as they are among the options."""
    answers = {}
    for place in (None, *range(len(flow.components))):
        step = flow.trigger if place is None else flow.components[place]
        if step is None:
            continue
        open_flow, texts = with_inputs(flow, place, ()), (requirement, step.annotation or requirement)
        options = InputOptions(world_catalogue(), open_flow, place, texts[::-1])
        given: dict[str, str] = {}
        while slots := options.slots(given):
            chosen = {slot.name: right_values(step.inputs, slot) for slot in slots}
            answers[question(open_flow, place, texts, slots).key] = chosen
            given |= {name: "^".join(values) for name, values in chosen.items()}
    return answers


def right_values(inputs: Sequence[Input], slot: SlotOptions) -> list[str]:
    value = next((given.value for given in inputs if given.name == slot.name), None)
    if not isinstance(value, str):
        return []
    values = [query_text(EncodedQuery((term,))) for term in parse_query(value).terms] if slot.most > 1 else [value]
    return [each for each in values if each in slot.options][: slot.most]


@pytest.mark.parametrize("kind", KINDS)
def test_the_options_hold_what_known_flows_need(kind: str) -> None:
    scores = []
    for example in [e for e in world_examples() if e.kind == kind][:30]:
        answers = right_answers(example.flow, example.text)
        writer = InputWriter(world_catalogue(), lambda prompt, _, known=answers: known.get(prompt.key, {}))
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
