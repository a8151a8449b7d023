"""Groups pairs of similar names into tasks: connected components, split by complete linkage."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

Similarity = Callable[[int, int], float | None]


def components(size: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Returns the connected components of the graph over 0..size-1, each sorted, by their first member."""
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
    """Groups names into tasks by complete linkage: every member of a group is similar to every other member.

    `atoms` hold every name once. The names of an atom belong together in any case, and for an atom it is enough that
    one of its names is similar. `alike` maps candidate pairs to their similarity; the most similar pair is joined
    first, and ties go by the names' numbers, so that the order of `alike` does not matter. `similarity` compares any
    two names (None: not one task). No group holds two names for which `apart` is True.
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
