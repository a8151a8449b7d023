"""Information Hygiene Ih of EVAL A3, 0 best: how much of what a task emits should not be emitted.

The papers do not say how it is measured; this rule, `signals`, is this project's own: the mean over the data that a task leaves of the
worst of three faults. Irrelevant: nobody after it in the workflow takes it, and it does not go to the client (1); only k parts of it are
taken, not the whole (1 / (k + 1): it holds at least one thing more). Redundant: m tasks of the workflow emit it (1 - 1/m). Private: its
name says that it holds telephone or account numbers (1).
"""

import math

from opus_pipelines.evaluation.scores.facts import Facts, Surroundings


def signals(facts: Facts, node: str, around: Surroundings) -> float | None:
    """The rule; None where it is not known what the task leaves, or where no task says what it takes."""
    if not facts.outputs or not (around.takers or node in around.delivers):
        return None
    return math.fsum(_fault(name, facts, node, around) for name in facts.outputs) / len(facts.outputs)


def _fault(name: str, facts: Facts, node: str, around: Surroundings) -> float:
    if name in facts.private:
        return 1.0
    redundant = 1 - 1 / around.makers[name].bit_count()
    return max(redundant, 0.0 if node in around.delivers else _irrelevant(name, node, around))


def _irrelevant(name: str, node: str, around: Surroundings) -> float:
    below = around.below[node]
    if around.takers.get(name, 0) & below:
        return 0.0
    parts = sum(1 for other, takers in around.takers.items() if takers & below and is_part(other, name))
    return 1 / (parts + 1)


def is_part(name: str, whole: str) -> bool:
    """Whether a name is the whole's name and more: `invoice total`, which may have been written `invoice.total`, of `invoice`."""
    return name.startswith(f"{whole} ")
