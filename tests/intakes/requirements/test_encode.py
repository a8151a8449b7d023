from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opus_pipelines.intakes.requirements.intention import encode_intention


class Axes:
    """Encodes a text as the axis of its first letter."""

    name, dimension, max_tokens = "axes", 4, 256

    def encode(self, texts: list[str], progress: Any = None) -> Any:
        return np.array([np.eye(4, dtype=np.float32)["abcd".index(t[0])] for t in texts])


def test_attention_shares_sum_to_one_and_follow_the_parts(text_elements: Callable[..., Any]) -> None:
    elements = text_elements({"input": "a", "output": "c", "process": "b\n\nd"})
    made = encode_intention(elements, "A claim", Axes())
    assert made.kind == "complete"
    assert made.goal == "A claim"
    assert np.linalg.norm(made.vector) == pytest.approx(1)
    assert sum(made.attention.values()) == pytest.approx(1)
    assert made.attention[elements[0].element_id] == pytest.approx(0.5 / 1.25)


def test_without_a_title_the_goal_is_the_first_input_passage(text_elements: Callable[..., Any]) -> None:
    assert encode_intention(text_elements({"input": "a b\n\nc", "process": "b"}), None, Axes()).goal == "a b"
