"""Are two names one task? An encoder proposes, history decides: likeness of names alone joins nothing but forms of the same words.

Measured with the shipped encoder, "approve claim" and "reject claim" are nearer (.74) than "register claim" and "record claim" (.61), and
"send invoice" and "receive invoice" are at .92: no threshold tells synonyms from opposites. Where words differ, what is said of the tasks
must be the same, and their place among other tasks must bear it out.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import pyarrow as pa

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.wkg.resolution.components import components
from opus_pipelines.wkg.resolution.nodes import Node
from opus_pipelines.wkg.resolution.places import Places
from opus_pipelines.wkg.resolution.said import rows_of, said_of
from opus_pipelines.wkg.resolution.space import Space
from opus_pipelines.wkg.resolution.words import Contrasts, opposed, same_words, unmatched

IN_PLACE = 0.5  # cosine of what comes before, or of what comes after, that bears out what is said
CONTRARY = 0.5  # cosine of what is said below which it speaks against a merge
Pair = tuple[int, int]


class Likeness:
    """Pairs of names, by their numbers. It encodes when asked; `threshold` is wkg.merge_threshold, `evidence` the tables of each source."""

    def __init__(
        self, nodes: Sequence[Node], evidence: Mapping[str, Mapping[str, pa.Table]], encoder: Callable[[], TextEncoder],
        threshold: float, across: bool = False,
    ) -> None:
        self._nodes, self._evidence, self._threshold, self._across = nodes, evidence, threshold, across
        self._number = {(row.source, row.industry, row.key): i for i, node in enumerate(nodes) for row in node.rows}
        self._said = said_of(rows_of(evidence, "said"), self._number, [{row.source for row in node.rows} for node in nodes])
        compared = {i for group in self._groups for i in group}
        self._named = Space([node.normal if i in compared else "" for i, node in enumerate(nodes)], encoder)
        self._told = Space([text if i in compared else "" for i, text in enumerate(self._said.texts)], encoder)
        self._judged: dict[Pair, float | None] = {}

    @cached_property
    def candidates(self) -> list[Pair]:
        """Pairs of free names that are near by name, or by what is said of them, in order."""
        return sorted({p for group in self._groups for space in (self._named, self._told) for p in space.near(group, self._threshold)})

    def similarity(self, one: int, other: int) -> float | None:
        """From the threshold to 1 where the two are one task, else None. Symmetric."""
        pair = min(one, other), max(one, other)
        if pair not in self._judged:
            by_name, by_text = self._claimed(*pair)
            self._judged[pair] = by_text if by_text and max(self._places.alike(*pair)) >= IN_PLACE else by_name
        return self._judged[pair]

    def told_apart(self, one: int, other: int) -> bool:
        """Did somebody name both, side by side?"""
        return bool(self._scopes[one] & self._scopes[other])

    def _claimed(self, one: int, other: int) -> tuple[float | None, float | None]:
        """The similarity of two names in other forms of the same words; of two in other words of which the same is said. None: neither."""
        if not self._comparable(one, other):
            return None, None
        a, b = self._nodes[one].words, self._nodes[other].words
        if same_words(a, b):
            name = self._named.cosine(one, other)
            contrary = self._said.comparable(one, other) and not self._said.same(one, other) and self._told.cosine(one, other) < CONTRARY
            return (name if name >= self._threshold and not contrary else None), None
        only_a, only_b = unmatched(a, b)
        same = self._said.comparable(one, other) and self._said.same(one, other)
        if not same or opposed(only_a, only_b) or self._contrasts(one).apart(only_a, only_b):
            return None, None
        told = self._told.cosine(one, other)
        return None, told if told >= self._threshold else None

    def _comparable(self, one: int, other: int) -> bool:
        a, b = self._nodes[one], self._nodes[other]
        return a.free and b.free and self._field(one) == self._field(other) and not self.told_apart(one, other)

    def _field(self, name: int) -> str | None:
        """What a name is compared within."""
        return None if self._across else self._nodes[name].identity[0]

    @cached_property
    def _scopes(self) -> list[frozenset[tuple[str, str]]]:
        """Of each name, where one person told it from others: (source, scope)."""
        found: list[set[tuple[str, str]]] = [set() for _ in self._nodes]
        for source, row in rows_of(self._evidence, "scopes"):
            found[self._number[source, row["industry"], row["task_key"]]].add((source, row["scope"]))
        return [frozenset(scopes) for scopes in found]

    @cached_property
    def _groups(self) -> list[list[int]]:
        """Free names that may be compared with each other; none where one person named them all."""
        groups: dict[str | None, list[int]] = defaultdict(list)
        for i, node in enumerate(self._nodes):
            if node.free:
                groups[self._field(i)].append(i)
        return [group for group in groups.values() if len({scope for i in group for scope in self._scopes[i]}) > 1]

    @cached_property
    def _places(self) -> Places:
        """Places, names that are alike in themselves taken for one."""
        sure = (pair for pair in self.candidates if any(self._claimed(*pair)))
        twins = [group[0] for _, group in sorted((i, group) for group in components(len(self._nodes), sure) for i in group)]
        return Places(rows_of(self._evidence, "follows"), self._number, twins)

    def _contrasts(self, name: int) -> Contrasts:
        return self._all_contrasts[self._field(name)]

    @cached_property
    def _all_contrasts(self) -> dict[str | None, Contrasts]:
        named: dict[str | None, dict[tuple[str, str], list[list[str]]]] = defaultdict(lambda: defaultdict(list))
        for i, scopes in enumerate(self._scopes):
            for scope in scopes:
                named[self._field(i)][scope].append(self._nodes[i].words)
        return {field: Contrasts(scopes.values()) for field, scopes in named.items()}
