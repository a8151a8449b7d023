import numpy as np
import pytest

from opus_pipelines.embedding.attention import attention, compose, passages, unit
from opus_pipelines.intention.elements import text_elements
from opus_pipelines.intention.encode import encode_intention


class Axes:
    """Encodes a text as the axis of its first letter."""

    name, dimension = "axes", 4

    def encode(self, texts, progress=None):
        return np.array([np.eye(4, dtype=np.float32)["abcd".index(t[0])] for t in texts])


def test_the_passage_that_answers_the_request_outweighs_the_others():
    request, context = unit(np.array([1.0, 0.2, 0, 0])), np.eye(4, dtype=np.float32)
    weights = attention(request, context)
    assert weights.sum() == pytest.approx(1)
    assert weights[0] > 0.99


def test_composition_by_hand():
    a, b, c = np.eye(4, dtype=np.float32)[:3]
    assert compose(a) == pytest.approx(a)
    assert compose(a, b[None, :]) == pytest.approx((a + b) / np.sqrt(2))
    assert compose(a, b[None, :], c[None, :]) == pytest.approx((0.5 * a + 0.5 * b + 0.25 * c) / 0.75, abs=1e-6)


def test_passages_are_paragraphs_cut_at_the_limit():
    assert passages("one two\n\n three four five ", 2) == ["one two", "three four", "five"]
    assert passages(None) == []


def test_attention_shares_sum_to_one_and_follow_the_parts():
    elements = text_elements({"input": "a", "output": "c", "process": "b\n\nd"})
    made = encode_intention(elements, "A claim", Axes())
    assert made.kind == "complete"
    assert made.goal == "A claim"
    assert np.linalg.norm(made.vector) == pytest.approx(1)
    assert sum(made.attention.values()) == pytest.approx(1)
    assert made.attention[elements[0].element_id] == pytest.approx(0.5 / 1.25)


def test_without_a_title_the_goal_is_the_first_input_passage():
    assert encode_intention(text_elements({"input": "a b\n\nc", "process": "b"}), None, Axes()).goal == "a b"
