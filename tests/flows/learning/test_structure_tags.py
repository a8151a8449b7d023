"""Tags of words and clauses: literal tags, the way back, and the grammar that every generated sentence keeps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.flows.learning.structure_examples import generated, structure_of
from opus_pipelines.flows.learning.structure_tags import TAGS, Tagged, clauses_from, may_follow, tags_of
from opus_pipelines.flows.text.clauses import Clause, clauses_of, sentences_of
from opus_pipelines.workflow.blocks.formats.python_ir import parse
from tests.flows.from_text.flow_examples import catalogue

SHORT = {
    "out": "-",
    "step: verb": "V",
    "step: shared verb": "S",
    "step": "s",
    "step: fronted": "F",
    "condition: marker": "C",
    "condition": "c",
    "alternative: marker": "A",
    "alternative": "a",
    "loop: marker": "L",
    "loop": "l",
    "while: marker": "W",
    "while": "w",
    "else: marker": "E",
}
READ = [
    ("Create a ticket and a task", "Vss-Ss"),
    ("If it is open, close it, otherwise delete it", "Cccc-Vs-EVs"),
    ("For each lead, create an issue", "LLl-Vss"),
    ("Create an issue for each lead", "VssLLl"),
    ("In slack, search for it", "FF-Vss"),
    ("Else if it is closed, archive it", "AAaaa-Vs"),
    ("While it is open, send a mail", "Wwww-Vss"),
]


def tags(text: str) -> list[Tagged | None]:
    clauses = clauses_of(text)
    return [
        tags_of(words, [clause for clause in clauses if clause.sentence == number])
        for number, words in enumerate(sentences_of(text))
    ]


@pytest.mark.long
@pytest.mark.parametrize(("text", "shown"), READ)
def test_the_tags_of_what_the_rules_read(text: str, shown: str) -> None:
    found = tags(text)
    assert [one and "".join(SHORT[tag] for tag in one.tags) for one in found] == [shown]


@pytest.mark.parametrize(("text", "_"), READ)
def test_the_clauses_of_these_tags_are_those_of_the_rules(text: str, _: str) -> None:
    assert clauses_from([one for one in tags(text) if one is not None]) == clauses_of(text)


def test_clauses_with_other_words_than_the_sentence_have_no_tags() -> None:
    assert tags_of(["create", "a", "ticket"], [Clause("step", ("create", "an", "issue"), "create")]) is None


def test_a_noun_phrase_without_a_verb_before_it_is_a_step_by_its_first_word() -> None:
    found = clauses_from([Tagged(("the", "ticket"), ("step: shared verb", "step"))])
    assert [(clause.verb, clause.shares_verb) for clause in found] == [("the", False)]


def test_words_without_a_clause_make_none() -> None:
    assert clauses_from([Tagged(("and", "then"), ("out", "out"))]) == []


def test_every_tag_has_a_short_form_here() -> None:
    assert set(SHORT) == set(TAGS)


@given(st.integers(0, 10_000))
def test_generated_sentences_keep_the_grammar_and_give_clauses(seed: int) -> None:
    for sentence in generated(catalogue(), 3, seed):
        assert may_follow(None, sentence.tags[0])
        assert all(may_follow(one, other) for one, other in pairwise(sentence.tags))
        starts = [tag for tag in sentence.tags if tag in ("step: verb", "step: shared verb")]
        made = clauses_from([sentence])
        assert sum(clause.kind == "step" for clause in made) == len(starts) >= 1
        assert all(clause.sentence == 0 for clause in made)


def test_the_same_seed_generates_the_same_sentences() -> None:
    assert generated(catalogue(), 20, 5) == generated(catalogue(), 20, 5) != generated(catalogue(), 20, 6)


def test_the_structure_of_a_flow() -> None:
    flow = parse(
        "a = get()\nfor b in a:\n  if b.x:\n    c = send()\n  elif b.y:\n    d = send()\n  else:\n"
        '    e = user_task("sign it")\nwhile a.open:\n  f = send()'
    )
    assert structure_of(flow) == [
        "0 Call",
        "0 For",
        "1 If",
        "2 Call",
        "1 elif",
        "2 Call",
        "1 else",
        "2 UserTask",
        "0 While",
        "1 Call",
    ]
