"""From pairs that are alike to tasks: connected components, split where a chain joins ends that are not alike."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

Similarity = Callable[[int, int], float | None]


def components(size: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The connected components of the graph over 0..size-1, each sorted, by their first member."""
    top = list(range(size))

    def find(node: int) -> int:
        while top[node] != node:
            top[node] = top[top[node]]
            node = top[node]
        return node

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        top[high] = low
    groups: dict[int, list[int]] = defaultdict(list)
    for node in range(size):
        groups[find(node)].append(node)
    return [groups[first] for first in sorted(groups)]


def tasks_of(
    atoms: Sequence[Sequence[int]],
    alike: Mapping[tuple[int, int], float],
    similarity: Similarity,
    apart: Callable[[int, int], bool],
) -> list[list[int]]:
    """Names in groups, each one task: every member is alike to every other (complete linkage), the most alike joined
    first.

    `atoms` hold every name once, those that are joined whatever they are together: of them it is enough that one is
    alike. `alike` are candidates with their similarity, `similarity` compares any two names (None: not one task), no
    group holds two that are `apart`. Ties go by the names' numbers, so that the order of `alike` does not matter.
    """
    atom_of = {node: number for number, atom in enumerate(atoms) for node in atom}
    best: dict[tuple[int, int], float] = {}
    for (one, other), value in alike.items():
        low, high = sorted((atom_of[one], atom_of[other]))
        pair = low, high
        if low != high:
            best[pair] = max(value, best.get(pair, -1.0))
    joined: list[list[int]] = [[number] for number in range(len(atoms))]
    group_of = list(range(len(atoms)))
    for one, other in sorted(best, key=lambda pair: (-best[pair], pair)):
        low, high = sorted((group_of[one], group_of[other]))
        if low != high and all(
            _one_task(atoms[a], atoms[b], similarity, apart) for a in joined[low] for b in joined[high]
        ):
            for atom in joined[high]:
                group_of[atom] = low
            joined[low] += joined[high]
            joined[high] = []
    return sorted(sorted(node for atom in group for node in atoms[atom]) for group in joined if group)


def _one_task(
    one: Sequence[int], other: Sequence[int], similarity: Similarity, apart: Callable[[int, int], bool]
) -> bool:
    if any(apart(a, b) for a in one for b in other):
        return False
    return any(similarity(a, b) is not None for a in one for b in other)
