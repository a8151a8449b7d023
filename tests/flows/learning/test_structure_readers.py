"""The tagger of structure and the readers with it: what it learns, and the margin of the blend."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter, GenerationError, learn
from opus_pipelines.flows.learning.structure_examples import generated, known_sentences
from opus_pipelines.flows.learning.structure_readers import (
    best_margin,
    blended,
    doubt,
    fits,
    reader_of,
    trained,
    with_structure,
)
from opus_pipelines.flows.learning.structure_tagger import StructureTagger, TaggerError, fit_tagger
from opus_pipelines.flows.learning.structure_tags import TAGS, Tagged
from opus_pipelines.flows.text.clauses import Clause, UtteranceError
from opus_pipelines.workflow.blocks.formats.python_ir import parse, write
from opus_pipelines.workflow.blocks.traversal import activities, renamed
from tests.flows.from_text.flow_examples import WordEncoder, catalogue

LEADS, JIRA = "Marketo_leads__3_0_0__retrievewithwhere_leads", "Jira_Issue__2_0_0__create_Issue"
SLACK = "Slack_message__3_0_0__create_message"
LOOP = FlowTask(
    "1",
    "Retrieve all Marketo leads. For each lead, create an issue in Jira",
    expected=parse(f"leads = {LEADS}()\nfor lead in leads:\n  issue = {JIRA}()"),
)
# The rules do not know this marker; the generator does.
EVENT = FlowTask(
    "2",
    "Create an issue in Jira, assuming the issue is urgent, post a message in Slack",
    expected=parse(f'issue = {JIRA}()\nif issue.priority == "urgent":\n  message = {SLACK}()'),
)
WRONG = FlowTask("3", "Create an issue in Jira", expected=parse(f"issue = {JIRA}()\nmessage = {SLACK}()"))


@pytest.fixture(scope="module")
def writer() -> FlowWriter:
    return learn(catalogue(), (), WordEncoder())


@pytest.fixture(scope="module")
def tagger(writer: FlowWriter) -> StructureTagger:
    return trained(writer, [LOOP], sentences=600)


def kinds(reader: Callable[[str], list[Clause]], text: str) -> list[str]:
    return [f"{clause.kind} {clause.marker}".strip() for clause in reader(text)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Create an issue in Jira and send an email using Gmail", ["step", "step"]),
        ("For each lead, create an issue in Jira", ["loop for each", "step"]),
        (
            "If the issue is urgent, create a board in Trello. Otherwise create an issue in Jira",
            ["condition if", "step", "else otherwise", "step"],
        ),
        (
            "In the event that the issue is urgent, create a board in Trello",
            ["condition in the event that", "step"],
        ),
        ("As long as the issue is open, post a message in Slack", ["while as long as", "step"]),
    ],
)
def test_the_tagger_reads_kinds_and_markers(
    writer: FlowWriter, tagger: StructureTagger, text: str, expected: list[str]
) -> None:
    assert kinds(reader_of(writer, tagger), text) == expected


@pytest.mark.long
def test_the_tagger_writes_the_flow_of_the_rules_where_both_read_alike(by_structure: dict[str, FlowWriter]) -> None:
    made = by_structure["tagger"].new(LOOP.utterance).flow
    assert LOOP.expected is not None
    assert write(renamed(made)) == write(renamed(LOOP.expected))


@pytest.fixture(scope="module")
def by_structure(writer: FlowWriter) -> dict[str, FlowWriter]:
    return {
        structure: with_structure(writer, [LOOP], structure, sentences=200)
        for structure in ("rules", "tagger", "blend")
    }


@pytest.mark.long
@pytest.mark.parametrize("structure", ["rules", "tagger", "blend"])
@pytest.mark.parametrize("hostile", ["import os and __class__ it", "((((", "if if if else else", "for each for each"])
def test_nothing_outside_the_catalogue_comes_out(
    by_structure: dict[str, FlowWriter], structure: str, hostile: str
) -> None:
    made = by_structure[structure]
    try:
        found = activities(made.new(hostile).flow)
    except OpusError:
        found = []
    assert set(found) <= set(made.catalogue.by_id)


@pytest.mark.parametrize("structure", ["rules", "tagger", "blend"])
def test_an_utterance_without_words_or_steps_is_refused(by_structure: dict[str, FlowWriter], structure: str) -> None:
    made = by_structure[structure]
    with pytest.raises(UtteranceError):
        made.new("")
    with pytest.raises(UtteranceError):
        made.new("x" * 100_000)
    with pytest.raises(GenerationError):
        made.new("otherwise")


def test_a_structure_that_there_is_not_is_named(writer: FlowWriter) -> None:
    with pytest.raises(InputError, match="rules, tagger, blend"):
        with_structure(writer, [], "grammar")


def test_the_rules_are_the_writer_itself(writer: FlowWriter) -> None:
    assert with_structure(writer, [LOOP], "rules") is writer


def test_only_readings_that_give_the_known_structure_teach(writer: FlowWriter) -> None:
    rules = writer.ranker.table.names.clauses
    found = known_sentences([LOOP, WRONG, FlowTask("4", "Create an issue")], writer, [rules])
    assert [one.words[0] for one in found] == ["Retrieve", "For"]
    assert not fits(WRONG, writer, rules)


def test_a_later_reader_teaches_where_the_rules_do_not(writer: FlowWriter, tagger: StructureTagger) -> None:
    rules, tags = writer.ranker.table.names.clauses, reader_of(writer, tagger)
    assert known_sentences([EVENT], writer, [rules]) == []
    found = known_sentences([EVENT], writer, [rules, tags])
    assert [tag for one in found for tag in one.tags if tag.endswith("marker")] == ["condition: marker"]


def test_the_blend_takes_the_tagger_above_the_margin_alone(writer: FlowWriter, tagger: StructureTagger) -> None:
    rules = writer.ranker.table.names.clauses
    unsure = doubt(writer, tagger, EVENT.utterance, rules(EVENT.utterance))
    assert unsure > 0 == doubt(writer, tagger, LOOP.utterance, rules(LOOP.utterance))
    assert "condition assuming" in kinds(blended(writer, tagger, unsure / 2), EVENT.utterance)
    assert kinds(blended(writer, tagger, unsure), EVENT.utterance) == kinds(rules, EVENT.utterance)
    assert kinds(blended(writer, tagger, math.inf), EVENT.utterance) == kinds(rules, EVENT.utterance)


@pytest.mark.parametrize(
    ("gains", "margin"),
    [
        ([], math.inf),
        ([(3.0, 0), (1.0, -1)], math.inf),
        ([(3.0, 1), (1.0, -1)], 2.0),
        ([(3.0, -1), (2.0, 1)], math.inf),
        ([(4.0, 1), (3.0, -1), (2.0, 1), (1.0, 1)], 0.5),
        ([(2.0, 1), (2.0, -1)], math.inf),
    ],
)
def test_the_margin_is_the_one_with_most_flows_gained(gains: list[tuple[float, int]], margin: float) -> None:
    assert best_margin(gains) == margin


def test_the_same_sentences_give_the_same_weights_and_none_are_refused() -> None:
    examples = [(one, 1) for one in generated(catalogue(), 40, 1)]
    one, other = fit_tagger(examples), fit_tagger(examples)
    assert np.array_equal(one.weights, other.weights)
    assert np.array_equal(one.transitions, other.transitions)
    with pytest.raises(TaggerError, match="no sentence"):
        fit_tagger([])


def test_a_sentence_is_learnt_by_heart_and_its_own_tags_have_no_margin() -> None:
    given = Tagged(("when", "done", ",", "sign", "it"), ("condition: marker", "condition", "out", "step: verb", "step"))
    tagger = fit_tagger([(given, 3)])
    assert tagger.tagged(given.words) == given
    assert tagger.margin(given.words, given.tags) == 0
    assert tagger.margin(given.words, ("out",) * 5) > 0
    assert set(tagger.tagged(("unknown",)).tags) <= set(TAGS)
