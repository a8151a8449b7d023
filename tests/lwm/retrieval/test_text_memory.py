"""Which histories have no fixed catalogue of tasks."""

from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.lwm.retrieval.case_memory import RememberedVectors, is_open


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([["take the apple out", "heat it for long"], ["take the mug away", "wash it with soap"]], True),
        ([["take the apple out", "heat it"], ["take the apple out", "heat it"]], False),
        ([["a1"], ["b2"], ["c3"]], False),
        ([["take the apple out"]], False),
        ([], False),
    ],
    ids=["own texts", "one catalogue", "codes", "one case", "no case"],
)
def test_steps_that_one_case_alone_has_are_free_words(cases: list[list[str]], expected: bool) -> None:
    assert is_open(cases) is expected


class Counting:
    """An encoder that counts the texts which it is asked for."""

    name, max_tokens, dimension, asked = "counting", 16, 2, 0

    def encode(self, texts: Sequence[str], progress: object = None) -> np.ndarray:
        self.asked += len(texts)
        return np.array([[len(text), 1.0] for text in texts], np.float32)


def test_a_text_is_encoded_once() -> None:
    encoder = Counting()
    encode = RememberedVectors(encoder)
    assert encode(["a", "bb", "a"])[:, 0].tolist() == [1, 2, 1]
    assert encode(["bb"])[:, 0].tolist() == [2]
    assert encoder.asked == 2
    assert encode([]).shape == (0, 2)
