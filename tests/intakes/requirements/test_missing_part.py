from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opus_pipelines.intakes.requirements.intention import (
    Precedent,
    encode_intention,
    missing_part,
    resolve_missing_part,
)


class Axes:
    name, dimension, max_tokens = "axes", 4, 256

    def encode(self, texts: list[str], progress: Any = None) -> Any:
        return np.array([np.eye(4, dtype=np.float32)["abcd".index(t[0])] for t in texts])


AXES = np.eye(4, dtype=np.float32)
NEAR = [Precedent("c1", 0.9, AXES[[1, 3]], ("paid claim",)), Precedent("c2", 0.5, AXES[[2]], ("letter",))]


@pytest.mark.parametrize(
    ("given", "part", "leads"),
    [
        ({"input": "a", "process": "b"}, "output", 3),
        ({"input": "a", "output": "c"}, "context", 3),
    ],
)
def test_the_missing_part_comes_from_the_nearest_successful_cases(
    given: dict[str, Any], part: str, leads: int, text_elements: Callable[..., Any]
) -> None:
    before = encode_intention(text_elements(given), None, Axes())
    after = resolve_missing_part(before, NEAR)
    assert (before.kind, missing_part(before), missing_part(after)) == ("incomplete", part, None)
    assert before.vector[leads] == 0
    assert after.vector[leads] > 0.1
    assert np.linalg.norm(after.vector) == pytest.approx(1)
    assert after.resolved == (part, "c1", "c2")
    assert sum(after.attention.values()) == pytest.approx(1)
    assert after.attention["c1"] > 100 * after.attention["c2"]


def test_resolved_outputs_say_that_history_told_them(text_elements: Callable[..., Any]) -> None:
    made = resolve_missing_part(
        encode_intention(text_elements({"input": "a", "process": "b"}), None, Axes()), NEAR
    ).decoded.outputs
    assert [(s.text, s.element_id, s.place) for s in made] == [
        ("paid claim", None, "resolved from history: c1, c2"),
        ("letter", None, "resolved from history: c1, c2"),
    ]


@pytest.mark.parametrize(
    ("given", "near"), [({"input": "a", "output": "c", "process": "b"}, NEAR), ({"input": "a", "process": "b"}, [])]
)
def test_nothing_is_put_in_where_nothing_is_missing_or_nothing_answers(
    given: dict[str, Any], near: list[Any], text_elements: Callable[..., Any]
) -> None:
    before = encode_intention(text_elements(given), None, Axes())
    assert resolve_missing_part(before, near) is before
