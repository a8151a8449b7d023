"""Where tasks stand among others: what comes before and after them, as evidence that two names are one task."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

ENDS = ("before", "after")
BOUNDARY, THEMSELVES = -1, -2  # where a case begins or ends; either of the two tasks that are compared


class Places:
    """Neighbours of every name, by number. `twins` gives the number by which a name counts as a neighbour: names of two sources have one
    place only as far as what surrounds them is one."""

    def __init__(
        self, rows: Iterable[tuple[str, dict]], number: Mapping[tuple[str, str | None, str], int], twins: Sequence[int]
    ) -> None:
        self._twins = twins
        self._near: dict[str, list[Counter[int]]] = {end: [Counter() for _ in twins] for end in ENDS}
        for source, row in rows:
            before, after = (BOUNDARY if row[end] is None else number[source, row["industry"], row[end]] for end in ENDS)
            if after != BOUNDARY:
                self._near["before"][after][self._twin(before)] += row["count"]
            if before != BOUNDARY:
                self._near["after"][before][self._twin(after)] += row["count"]

    def alike(self, one: int, other: int) -> tuple[float, float]:
        """Cosine of what comes before the two, and of what comes after."""
        themselves = {self._twins[one], self._twins[other]}
        before, after = (_cosine(self._near[end][one], self._near[end][other], themselves) for end in ENDS)
        return before, after

    def _twin(self, name: int) -> int:
        return name if name == BOUNDARY else self._twins[name]


def _cosine(one: Counter[int], other: Counter[int], themselves: set[int]) -> float:
    a: dict[int, int] = {}
    b: dict[int, int] = {}
    for merged, counts in ((a, one), (b, other)):
        for node, count in counts.items():
            place = THEMSELVES if node in themselves else node
            merged[place] = merged.get(place, 0) + count
    norm = sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return round(sum(n * b.get(node, 0) for node, n in a.items()) / norm, 4) if norm else 0.0
