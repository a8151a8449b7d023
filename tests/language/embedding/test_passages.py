import numpy as np
import pytest

from opus_pipelines.language.embedding.texts import attention, compose, passages, stretches, unit, words_of


def test_the_passage_that_answers_the_request_outweighs_the_others() -> None:
    request, context = unit(np.array([1.0, 0.2, 0, 0])), np.eye(4, dtype=np.float32)
    weights = attention(request, context)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] > 0.99


def test_composition_by_hand() -> None:
    a, b, c = np.eye(4, dtype=np.float32)[:3]
    assert compose(a) == pytest.approx(a)
    assert compose(a, b[None, :]) == pytest.approx((a + b) / np.sqrt(2))
    assert compose(a, b[None, :], c[None, :]) == pytest.approx((0.5 * a + 0.5 * b + 0.25 * c) / 0.75, abs=1e-6)


def test_passages_are_paragraphs_cut_at_the_limit() -> None:
    assert passages("one two\n\n three four five ", 2) == ["one two", "three four", "five"]
    assert passages(None, 9) == []


def test_writing_without_spaces_is_cut_by_its_characters() -> None:
    assert stretches("保険金" * 20 + " a b", 40) == ["保険金" * 13 + "保", "険金" + "保険金" * 6 + " a b"]
    assert stretches("a" * 32 + " b", 2) == ["a" * 32 + " b"]


def test_words_of_a_token_limit() -> None:
    assert (words_of(256), words_of(1)) == (179, 1)
