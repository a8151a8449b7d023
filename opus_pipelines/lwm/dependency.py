"""Precedence between two tasks, from the orders in which history did them: the dependency measure of process mining."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

Pair = tuple[str, str]
_KEPT = 1_024  # sequences whose pairs are kept, some kB each
DEPENDENT = 0.8  # least value of the measure of dependent tasks; ten times forward and once backward is 0.75


def dependency(forward: float, backward: float) -> float:
    """Return the dependency measure (|a>b| - |b>a|) / (|a>b| + |b>a| + 1), which lies in ]-1, 1[.

    It is that of the heuristics miner (Weijters, van der Aalst, Alves de Medeiros, 2006). `forward` and `backward`
    are the counts |a>b| and |b>a|.
    """
    return (forward - backward) / (forward + backward + 1)


def independent(forward: float, backward: float, dependent: float = DEPENDENT) -> bool:
    """Return whether two tasks were seen in both orders, and neither order is an exception.

    This is the project's own rule: tasks that were seen in one order only, or never together, stay in the order
    that is proposed.
    """
    return forward > 0 and backward > 0 and abs(dependency(forward, backward)) < dependent


def precedence_counts(sequences: Iterable[Sequence[str]]) -> Counter[Pair]:
    """Count the sequences that did a before b, directly or not, with each task at its first occurrence."""
    counts: Counter[Pair] = Counter()
    for tasks, n in Counter(tuple(tasks) for tasks in sequences).items():
        for pair in _pairs(tasks):
            counts[pair] += n
    return counts


@lru_cache(_KEPT)
def _pairs(tasks: tuple[str, ...]) -> tuple[Pair, ...]:
    return tuple(combinations(dict.fromkeys(tasks), 2))


def order_counts(pair: Pair, seen: Mapping[Pair, float], elsewhere: Callable[[Pair], float]) -> tuple[float, float]:
    """Return how often a pair was done forward and backward.

    The counts come from `seen`; where it has neither order, they come from `elsewhere` (the transitions of the
    WKG).
    """
    reverse = pair[1], pair[0]
    counts = seen.get(pair, 0.0), seen.get(reverse, 0.0)
    return counts if any(counts) else (elsewhere(pair), elsewhere(reverse))
