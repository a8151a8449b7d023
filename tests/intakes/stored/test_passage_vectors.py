from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opus_pipelines.intakes.stored import StoredVectors, write_vectors


class Counting:
    """An encoder that says what it was asked."""

    name, max_tokens, dimension = "counting", 16, 2

    def __init__(self) -> None:
        self.asked = []

    def encode(self, texts: list[str], progress: Any = None) -> Any:
        self.asked += texts
        return np.full((len(texts), 2), 9.0, np.float32)


def test_what_was_written_is_looked_up_in_any_order_and_the_rest_is_encoded_and_counted(tmp_path: Path) -> None:
    write_vectors(tmp_path, ["one", "two", "three"], np.array([[1, 1], [2, 2], [3, 3]], np.float32))
    other = Counting()
    encoder = StoredVectors(tmp_path, other)
    assert encoder.encode(["three", "four", "one", "three"]).tolist() == [[3, 3], [9, 9], [1, 1], [3, 3]]
    assert (other.asked, encoder.missed) == (["four"], 1)
    assert (encoder.name, encoder.max_tokens, encoder.dimension) == ("counting", 16, 2)


@pytest.mark.parametrize("texts", [[], ["four"]])
def test_nothing_written(tmp_path: Path, texts: list[Any]) -> None:
    write_vectors(tmp_path, [], np.zeros((0, 2), np.float32))
    assert StoredVectors(tmp_path, Counting()).encode(texts).shape == (len(texts), 2)
