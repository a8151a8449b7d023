"""Where vertices stand from top to bottom: near the mean of their neighbours, in their order, never overlapping.

Each layer's best places, given its neighbours', are an isotonic regression: solved exactly by pooling adjacent violators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from opus_pipelines.reports.graphs.order import Layered

ROUNDS = 24
GAP = 16.0           # between two boxes of a layer
DUMMY_GAP = 9.0      # beside a passing edge


@dataclass(frozen=True)
class Extent:
    """How far a vertex reaches above and below its place."""

    above: float
    below: float


def places(made: Layered, extents: Mapping[str, Extent]) -> dict[str, float]:
    """The y of every vertex; the least top edge is 0."""
    y: dict[str, float] = {}
    offsets = [_offsets(layer, extents, made.dummies) for layer in made.layers]
    for layer, offset in zip(made.layers, offsets, strict=True):
        middle = offset[-1] / 2 if offset else 0.0
        y |= {vertex: o - middle for vertex, o in zip(layer, offset, strict=True)}
    for turn in range(ROUNDS):
        last = turn >= ROUNDS - 4
        order = range(len(made.layers)) if turn % 2 == 0 else range(len(made.layers) - 1, -1, -1)
        for i in order:
            near = {v: [*made.left[v], *made.right[v]] if last else (made.left if turn % 2 == 0 else made.right)[v] for v in made.layers[i]}
            _place(made.layers[i], offsets[i], near, made.dummies, y)
    top = min((y[v] - extents[v].above for v in y), default=0.0)
    return {v: value - top for v, value in y.items()}


def isotonic(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing numbers nearest to `wanted` in weighted squares."""
    blocks: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(wanted, weights, strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value2, weight2, length2 = blocks.pop()
            value1, weight1, length1 = blocks[-1]
            total = weight1 + weight2
            blocks[-1] = [(value1 * weight1 + value2 * weight2) / total, total, length1 + length2]
    return [mean for mean, _, length in blocks for _ in range(int(length))]


def _offsets(layer: Sequence[str], extents: Mapping[str, Extent], dummies: set[str]) -> list[float]:
    """The least distance of each vertex from the first one of its layer."""
    made = [0.0] if layer else []
    for a, b in pairwise(layer):
        gap = DUMMY_GAP if a in dummies or b in dummies else GAP
        made.append(made[-1] + extents[a].below + gap + extents[b].above)
    return made


def _place(
    layer: Sequence[str], offsets: Sequence[float], near: Mapping[str, Sequence[str]], dummies: set[str], y: dict[str, float]
) -> None:
    wanted, weights = [], []
    for vertex, offset in zip(layer, offsets, strict=True):
        pulls = [(_pull(vertex in dummies, n in dummies), y[n]) for n in near[vertex]]
        weight = sum(w for w, _ in pulls)
        wanted.append((sum(w * at for w, at in pulls) / weight if weight else y[vertex]) - offset)
        weights.append(weight or 0.05)
    for vertex, offset, value in zip(layer, offsets, isotonic(wanted, weights), strict=True):
        y[vertex] = value + offset


def _pull(dummy: bool, other: bool) -> float:
    """Long edges pull harder, so that they run straight."""
    return 8.0 if dummy and other else 2.0 if dummy or other else 1.0
