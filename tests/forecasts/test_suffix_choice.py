import random

import numpy as np
import pytest

from opus_pipelines.forecasts.forecaster import SuffixTable, medoid


def restricted_distance(x: tuple[int, ...], y: tuple[int, ...]) -> int:
    table = [[max(i, j) if 0 in (i, j) else 0 for j in range(len(y) + 1)] for i in range(len(x) + 1)]
    for i in range(1, len(x) + 1):
        for j in range(1, len(y) + 1):
            changed = table[i - 1][j - 1] + (x[i - 1] != y[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, changed)
            if i > 1 and j > 1 and x[i - 1] == y[j - 2] and x[i - 2] == y[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@pytest.mark.parametrize(
    ("left", "right", "similarity"),
    [
        ((1, 2, 3), (1, 2, 3), 1.0),
        ((1, 2), (2, 1), 0.5),  # one swap
        ((3, 1), (1, 2, 3), 0.0),  # restricted: what was swapped is not edited again
        ((1,), (2, 3, 4, 1), 0.25),
    ],
)
def test_similarity(left: tuple[int, ...], right: tuple[int, ...], similarity: float) -> None:
    assert SuffixTable([left, right]).similarity(np.array([0]), np.array([1]))[0] == pytest.approx(similarity)


def test_many_pairs_at_once_agree_with_the_table_of_distances() -> None:
    draw = random.Random(3)
    suffixes = [tuple(draw.randint(1, 4) for _ in range(draw.randint(1, 40))) for _ in range(30)]
    left, right = (np.array([draw.randrange(30) for _ in range(200)]) for _ in range(2))

    found = SuffixTable(suffixes).similarity(left, right)

    expected = [
        1 - restricted_distance(suffixes[a], suffixes[b]) / max(len(suffixes[a]), len(suffixes[b]))
        for a, b in zip(left, right, strict=True)
    ]
    assert found == pytest.approx(expected)


def test_the_medoid_may_be_less_frequent_than_the_mode() -> None:
    suffixes = SuffixTable([(9, 9, 9), (1, 2, 3), (1, 2, 4), (1, 2, 5)])
    similarity = suffixes.similarity(np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)).reshape(4, 4)

    assert medoid(np.array([0.3, 0.25, 0.25, 0.2]), similarity) == 1
