"""The best options along a chain, exactly: backward over upper envelopes of straight lines.

Success s before a step becomes q + (p - q)·s behind it, and the step costs c. So what the rest of a chain is worth is, for fixed
options, a straight line in s, and for the best options the maximum of such lines: convex, with few pieces that matter.
"""

from collections.abc import Sequence
from typing import NamedTuple

Option = tuple[float, float, float]  # p, q, cost in dollars


class _Line(NamedTuple):
    slope: float
    height: float  # at s = 0
    option: int
    rest: "_Line | None"


def best_on_chain(steps: Sequence[Sequence[Option]], prior: float, gain_usd: float) -> list[int]:
    """The number of the option taken at each step, so that gain · (success at the end) - costs is the most; ties go to earlier options."""
    lines = [_Line(gain_usd, 0.0, 0, None)]
    for options in reversed(steps):
        lines = _envelope([
            _Line(line.slope * (p - q), line.height + line.slope * q - cost, number, line)
            for number, (p, q, cost) in enumerate(options) for line in lines
        ])
    best = max(lines, key=lambda line: line.height + line.slope * prior)
    taken: list[int] = []
    for _ in steps:
        taken.append(best.option)
        assert best.rest is not None
        best = best.rest
    return taken


def _envelope(lines: Sequence[_Line]) -> list[_Line]:
    """The lines that are the highest somewhere in [0, 1], from left to right; of equal ones the first."""
    kept: list[_Line] = []
    start: list[float] = []
    for line in sorted(lines, key=lambda x: (x.slope, x.height)):
        while kept:
            top = kept[-1]
            if line.slope == top.slope:
                cross = float("-inf") if line.height > top.height else float("inf")
            else:
                cross = (top.height - line.height) / (line.slope - top.slope)
            if cross > start[-1]:
                break
            kept.pop()
            start.pop()
        else:
            cross = 0.0
        if cross < 1.0 or not kept:
            kept.append(line)
            start.append(max(0.0, cross))
    return kept
