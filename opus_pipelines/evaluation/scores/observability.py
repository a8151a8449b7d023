"""Observability Ob of EVAL A3, 0 best: how little of what a task does leaves a trace.

The papers do not say how it is measured; this rule, `trace`, is this project's own: 1 less the mean of four traces, each in [0, 1].
Does it leave named data (a review leaves its finding)? How often did history record whether it was right? Did history record its cost
and its time? Is it looked at in this workflow: a review of it counts 1, any other task after it (the next ones, and those that take what
it leaves) as much as it mends of what is wrong before it, and together they miss what all of them miss.
"""

import math

from opus_pipelines.evaluation.scores.facts import Facts, Surroundings


def trace(facts: Facts, node: str, around: Surroundings) -> float | None:
    """The rule; always known: what nobody recorded left no trace."""
    leaves = 1.0 if facts.outputs or facts.is_review else 0.0
    return max(0.0, 1 - (leaves + facts.outcomes + facts.figures + looked_at(facts, node, around)) / 4)


def looked_at(facts: Facts, node: str, around: Surroundings) -> float:
    """The chance that something wrong in it is seen by what comes after it."""
    watchers = around.children[node]
    for name in facts.outputs:
        watchers |= around.takers.get(name, 0) & around.below[node]
    found = [around.facts[other] for other in around.each(watchers)]
    if any(other.is_review for other in found):
        return 1.0
    return 1 - math.prod(sorted(1 - other.mends for other in found))
