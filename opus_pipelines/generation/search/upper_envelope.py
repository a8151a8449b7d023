"""Finds the best options along a chain exactly, backward over upper envelopes of straight lines.

Success s before a step becomes q + (p - q)·s behind it, and the step costs c. For fixed options the worth of the rest
of a chain is therefore a straight line in s. For the best options it is the maximum of such lines: a convex function
with few relevant pieces.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

ChainOption = tuple[float, float, float]  # p, q, cost in dollars
L = TypeVar("L", bound="tuple[Any, ...]")  # slope, height at 0, and what the line represents


class _Line(NamedTuple):
    slope: float
    height: float  # at s = 0
    option: int
    rest: "_Line | None"


def best_on_chain(steps: Sequence[Sequence[ChainOption]], prior: float, gain_usd: float) -> list[int]:
    """Returns the option number at each step that maximises gain · (success at the end) - costs.

    Ties go to earlier options.
    """
    lines = [_Line(gain_usd, 0.0, 0, None)]
    for options in reversed(steps):
        lines = upper_envelope(
            [
                _Line(line.slope * (p - q), line.height + line.slope * q - cost, number, line)
                for number, (p, q, cost) in enumerate(options)
                for line in lines
            ]
        )
    best = max(lines, key=lambda line: line.height + line.slope * prior)
    taken: list[int] = []
    for _ in steps:
        taken.append(best.option)
        assert best.rest is not None
        best = best.rest
    return taken


def upper_envelope(lines: Sequence[L], end: float = 1.0) -> list[L]:
    """Returns the lines that are highest somewhere in [0, end], from left to right; of equal lines the first."""
    if len(lines) == 1:
        return list(lines)
    kept: list[L] = []
    start: list[float] = []
    for line in sorted(lines, key=_steepness):
        slope, height = line[0], line[1]
        while kept:
            top = kept[-1]
            higher = height > top[1]
            cross = (
                (top[1] - height) / (slope - top[0]) if slope != top[0] else float("-inf") if higher else float("inf")
            )
            if cross > start[-1]:
                break
            kept.pop()
            start.pop()
        else:
            cross = 0.0
        if cross < end or not kept:
            kept.append(line)
            start.append(max(0.0, cross))
    return kept


def _steepness(line: "tuple[Any, ...]") -> tuple[float, float]:
    return line[0], line[1]
