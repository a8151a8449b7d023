"""Decides which names are one task: by pins first, then by equal names, then by duplicate detection.

The outcome is stored, so that an unchanged rebuild does not compute it again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from opus_pipelines.lake.layout import read_json, write_json
from opus_pipelines.wkg.task_matching.components import components, tasks_of
from opus_pipelines.wkg.task_matching.duplicate_detection import DuplicateDetector
from opus_pipelines.wkg.task_matching.name_nodes import Identity, Node
from opus_pipelines.wkg.task_matching.pins import Pins

MERGES = "merges.json"  # among what is kept


@dataclass(frozen=True)
class Merges:
    """Groups of names that are one task each.

    `similarities` has the pairs of a group that are similar in themselves, `pins` the names that pins join.
    """

    groups: tuple[tuple[Identity, ...], ...] = ()
    similarities: Mapping[frozenset[Identity], float] = field(default_factory=dict)
    pins: tuple[tuple[Identity, ...], ...] = ()

    def similarity(self, one: Identity, other: Identity) -> float | None:
        """Returns the similarity of two names of a group; None when only a pin or a third name joins them."""
        return self.similarities.get(frozenset((one, other)))

    def pinned(self, one: Identity, other: Identity) -> bool:
        """Tells whether a pin, or a chain of pins, joins two names."""
        return any(one in group and other in group for group in self.pins)


def merges_of(nodes: Sequence[Node], pins: Pins, across: bool, detector: DuplicateDetector | None = None) -> Merges:
    """Returns the groups of two or more names. The order of `nodes` does not matter.

    Without a `detector`, only pins and equal names join names.
    """
    equal = dict.fromkeys(_equal(nodes, across), 1.0)
    same = list(_pinned_same(nodes, pins))
    pinned_apart = _pinned_apart(nodes, pins)

    def similarity(one: int, other: int) -> float | None:
        pair = min(one, other), max(one, other)
        return equal.get(pair) or (detector.similarity(one, other) if detector else None)

    def apart(one: int, other: int) -> bool:
        if pinned_apart(one, other):
            return True
        return (
            detector is not None
            and (min(one, other), max(one, other)) not in equal
            and detector.named_separately(one, other)
        )

    similar = {
        pair: value for pair in (detector.candidates if detector else ()) if (value := similarity(*pair)) is not None
    } | equal
    pinned = components(len(nodes), ((group[0], other) for group in same for other in group[1:]))
    groups = [group for group in tasks_of(pinned, similar, similarity, apart) if len(group) > 1]
    pairs = (pair for group in groups for pair in combinations(group, 2))
    return Merges(
        tuple(tuple(nodes[i].identity for i in group) for group in groups),
        {
            frozenset((nodes[i].identity, nodes[j].identity)): value
            for i, j in pairs
            if (value := similarity(i, j)) is not None
        },
        tuple(tuple(nodes[i].identity for i in group) for group in pinned if len(group) > 1),
    )


def read_merges(path: Path, inputs: str) -> Merges | None:
    """Returns the stored outcome for the same inputs, else None."""
    kept = read_json(path)
    if kept is None or kept.get("inputs") != inputs:
        return None
    pairs = {frozenset(((a[0], a[1]), (b[0], b[1]))): value for a, b, value in kept["similarities"]}
    groups, pins = (tuple(tuple((i, d) for i, d in group) for group in kept[name]) for name in ("groups", "pins"))
    return Merges(groups, pairs, pins)


def keep_merges(path: Path, inputs: str, merges: Merges) -> None:
    """Stores the outcome for later rebuilds with these inputs."""
    pairs = [[*sorted(map(list, pair), key=repr), value] for pair, value in merges.similarities.items()]
    kept: dict[str, Any] = {
        "inputs": inputs,
        "groups": merges.groups,
        "pins": merges.pins,
        "similarities": sorted(pairs, key=repr),
    }
    write_json(path, kept)


def _equal(nodes: Sequence[Node], across: bool) -> Iterator[tuple[int, int]]:
    """Yields pairs of free names that are equal after normalisation.

    Such names are two where their industries differ and settings merge across industries, or where a pin separates one
    of them from a third.
    """
    by_name: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        if node.free:
            by_name[None if across else node.identity[0], node.normal].append(i)
    for names in by_name.values():
        yield from combinations(names, 2)


def _pinned_same(nodes: Sequence[Node], pins: Pins) -> Iterable[list[int]]:
    """Yields for each pin the names that it joins.

    They are joined per industry when one industry has them all, else across industries.
    """
    numbers: dict[str, dict[str | None, set[int]]] = defaultdict(lambda: defaultdict(set))
    for i, node in enumerate(nodes):
        for row in node.rows:
            numbers[f"{row.source}/{row.key}"][row.industry].add(i)
    for pin in pins.same:
        named = [numbers[task] for task in pin.tasks if task in numbers]
        shared = set.intersection(*map(set, named)) if named else set()
        for industry in sorted(shared, key=repr):
            yield sorted({i for task in named for i in task[industry]})
        if named and not shared:
            yield sorted({i for task in named for ids in task.values() for i in ids})


def _pinned_apart(nodes: Sequence[Node], pins: Pins) -> Callable[[int, int], bool]:
    tasks = [{f"{row.source}/{row.key}" for row in node.rows} & pins.kept_apart for node in nodes]

    def apart(one: int, other: int) -> bool:
        return any(frozenset((a, b)) in pins.pairs_apart for a in tasks[one] for b in tasks[other])

    return apart
