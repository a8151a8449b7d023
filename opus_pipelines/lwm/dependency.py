"""Which of two tasks waits for the other, by the orders in which history did them: the dependency measure of process
mining.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

Pair = tuple[str, str]
DEPENDENT = 0.8  # of the measure; ten times one way and once the other is 0.75


def dependency(forward: float, backward: float) -> float:
    """(|a>b| - |b>a|) / (|a>b| + |b>a| + 1) of the heuristics miner (Weijters, van der Aalst, Alves de Medeiros,
    2006), in ]-1, 1[.
    """
    return (forward - backward) / (forward + backward + 1)


def independent(forward: float, backward: float, dependent: float = DEPENDENT) -> bool:
    """Whether two tasks were seen in both orders, and neither order so often that the other looks like an exception.

    This project's own rule: tasks seen in one order only, or never together, stay in the order that is proposed.
    """
    return forward > 0 and backward > 0 and abs(dependency(forward, backward)) < dependent


def precedence_counts(sequences: Iterable[Sequence[str]]) -> Counter[Pair]:
    """How many of the sequences did a before b (not only directly before it), each task at its first occurrence."""
    found: Counter[Pair] = Counter()
    for tasks, n in Counter(tuple(tasks) for tasks in sequences).items():
        for pair in combinations(dict.fromkeys(tasks), 2):
            found[pair] += n
    return found


def order_counts(pair: Pair, seen: Mapping[Pair, float], elsewhere: Callable[[Pair], float]) -> tuple[float, float]:
    """How often a pair was done forward and backward: by `seen`, or where it knows neither order by `elsewhere` (the
    WKG's transitions).
    """
    back = pair[1], pair[0]
    found = seen.get(pair, 0.0), seen.get(back, 0.0)
    return found if any(found) else (elsewhere(pair), elsewhere(back))
