"""Steps in free words: texts that may be steps, features without the own case, training, and writers in the lake."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.next_step import TrainingError
from opus_pipelines.lwm.pointer.model import WEIGHTS
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.lwm.step_writing.memory import (
    CLAUSE,
    LISTED,
    SENTENCE,
    SIMILAR,
    TEXT_FEATURES,
    TextCase,
    TextMemory,
    clauses,
    exchanges_of,
    of_request,
    rewritten,
    sentences,
)
from opus_pipelines.lwm.step_writing.model import (
    WRITER_WIDTH,
    WRITERS,
    StepWriter,
    text_examples,
    text_features,
    train_step_writer,
)
from tests.lwm.step_writing.household import WORDS, encode, household

pytestmark = pytest.mark.long

CASES = household(60)


@pytest.fixture(scope="module")
def memory() -> TextMemory:
    return TextMemory.measured(CASES, encode)


@pytest.fixture(scope="module")
def writer(memory: TextMemory) -> StepWriter:
    return train_step_writer([memory], encode)


@pytest.mark.parametrize(
    ("old", "new", "step", "expected"),
    [
        (
            "put an apple in the fridge",
            "put a potato in the fridge",
            "take apple from fridge",
            "take potato from fridge",
        ),
        ("put apple in fridge", "put fridge in sofa", "take apple from fridge", "take fridge from sofa"),
        ("put apple in fridge", "put apple in fridge", "take apple", "take apple"),
        ("heat some apple", "count all users of the bank", "heat apple", "heat apple"),
        ("put apple in fridge", "put pear in fridge", "take pineapple", "take pineapple"),
    ],
    ids=["one word differs", "what is put in stays", "equal", "nothing in common", "a part of a word"],
)
def test_a_step_is_rewritten_by_what_two_requests_differ_in(old: str, new: str, step: str, expected: str) -> None:
    assert rewritten(step, exchanges_of(old, new)) == expected


def test_a_request_is_cut_into_sentences_and_clauses() -> None:
    text = "Scan the host now. Then encrypt my data, and send it!"
    assert sentences(text) == ["Scan the host now.", "Then encrypt my data, and send it!"]
    assert clauses(text) == ["Scan the host now", "Then encrypt my data", "and send it!"]
    assert (sentences(""), clauses("")) == (["-"], [])


def test_every_candidate_has_an_origin() -> None:
    found = of_request("Scan the host now, please do it", "- wash the cup well\n- dry the cup well\n- dry the cup well")
    assert [(text.origin, text.place, text.number) for text in found] == [
        (SENTENCE, 0, 1),
        (CLAUSE, 0, 2),
        (CLAUSE, 1, 2),
        (LISTED, 0, 2),
        (LISTED, 1, 2),
    ]


def test_the_vectors_of_all_texts_that_are_needed_are_named_before(memory: TextMemory) -> None:
    request, asked = "please put the mug in the drawer", set[str]()

    def spy(texts: Sequence[str]) -> np.ndarray:
        asked.update(texts)
        return encode(texts)

    memory.candidates(request, "- put the mug away", spy)
    assert asked == set(memory.texts(request, "- put the mug away"))


def test_a_hidden_case_is_no_similar_case() -> None:
    odd = TextCase("water every plant of the garden", "", ("open the tap",), True)
    memory = TextMemory.measured([*CASES, odd], encode)
    assert "open the tap" in [text.text for text in memory.candidates(odd.request, "", encode).texts]
    hidden = memory.candidates(odd.request, "", encode, len(CASES))
    assert "open the tap" not in [text.text for text in hidden.texts]
    assert memory.nearest(odd.request) is odd
    assert memory.nearest(odd.request, len(CASES)) is not odd


def test_features_have_their_width_and_the_end_comes_last(memory: TextMemory) -> None:
    candidates = memory.candidates("please put the mug in the sofa", "", encode)
    assert candidates.features.shape == (len(candidates.texts), TEXT_FEATURES)
    for done in ([], [0], [0, 1]):
        rows = text_features(candidates, done)
        assert rows.shape == (len(candidates.texts) + 1, WRITER_WIDTH)
        assert rows[:, -1].tolist() == [0.0] * len(candidates.texts) + [1.0]


def test_a_step_that_no_candidate_is_like_teaches_nothing() -> None:
    strange = TextCase("please put the mug in the sofa", "", ("candle towel book", "put mug in sofa"), True)
    found = text_examples(TextMemory.measured([strange, *CASES], encode), 0, encode)
    assert len(found) == 2, "the known step, and the end"
    assert found[-1][1] == len(found[-1][0]) - 1


def test_it_writes_steps_for_things_and_places_that_never_met(memory: TextMemory, writer: StepWriter) -> None:
    asked = [case for case in household(200, seed=1) if case.request not in {known.request for known in CASES}]
    assert len(asked) > 20
    written = [writer.written(case.request, "", memory, encode) for case in asked]
    right = [
        tuple(step.text.text for step in found.steps) == case.steps for found, case in zip(written, asked, strict=True)
    ]
    assert np.mean(right) > 0.8
    assert all(found.is_chain for found in written)
    assert all(0 < step.probability <= 1 for found in written for step in found.steps)
    assert {step.text.origin for found in written for step in found.steps} == {SIMILAR}


def test_independent_steps_stay_independent(writer: StepWriter) -> None:
    cases = [TextCase(case.request, "", case.steps, False) for case in CASES]
    assert not writer.written(cases[0].request, "", TextMemory.measured(cases, encode), encode).is_chain


def test_cases_without_a_step_like_a_candidate_cannot_be_learnt_from() -> None:
    cases = [TextCase("water plants daily", "", (WORDS[n],), True) for n in range(3)]
    with pytest.raises(TrainingError):
        train_step_writer([TextMemory.measured(cases, encode)], encode)


def test_a_promoted_writer_serves_the_industries_of_its_card(
    writer: StepWriter, memory: TextMemory, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    name = WRITERS.keep(lake, writer, {"industries": {"home": {"cases": 60, "rates": memory.rates}}})
    assert WRITERS.open(lake).champion is None
    WRITERS.store(lake).promote(name)
    backend = PointerBackend()
    backend.open(lake)
    assert backend.writer is not None
    assert set(backend.writer.rates) == {"home"}
    assert (backend.name, name in backend.version) == ("pointer", True)
    own, again = (w.written(CASES[0].request, "", memory, encode) for w in (writer, backend.writer.writer))
    assert own == again


@pytest.mark.parametrize("damage", [b"", b"no tensors at all"])
def test_a_damaged_writer_does_not_serve(writer: StepWriter, tmp_path: Path, damage: bytes) -> None:
    lake = Lake(tmp_path)
    name = WRITERS.keep(lake, writer, {"industries": {}})
    WRITERS.store(lake).promote(name)
    (WRITERS.store(lake).folder / name / WEIGHTS).write_bytes(damage)
    assert WRITERS.open(lake).champion is None
    assert WRITERS.open(lake).stored[0].problem is not None


@pytest.mark.parametrize("industries", [None, [], {"home": 1}, {"home": {}}, {"home": {"rates": 3}}])
def test_a_card_without_rates_is_refused_and_not_a_crash(
    writer: StepWriter, industries: object, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    WRITERS.store(lake).promote(WRITERS.keep(lake, writer, {"industries": industries}))
    backend = PointerBackend()
    backend.open(lake)
    assert backend.writer is None
    assert WRITERS.open(lake).stored[0].problem is not None
