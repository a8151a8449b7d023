"""Are two names one task? An encoder proposes, history decides: likeness of names alone joins nothing but forms of the
same words.

Measured with the shipped encoder, "approve claim" and "reject claim" are nearer (.74) than "register claim" and "record
claim" (.61), and "send invoice" and "receive invoice" are at .92: no threshold tells synonyms from opposites. Where
words differ, what is said of the tasks must be the same, and their place among other tasks must bear it out.

Where tasks stand among others: what comes before and after them, as evidence that two names are one task.

What is said of tasks, as evidence that two names are one task: a statement that both have and no other task of their
sources.

Nearness of texts proves little. Measured with the shipped encoder, eight sentences and their paraphrases are at .44 to
.71, six sentences and their opposites ("release the goods to the carrier", "take the goods over from the carrier") at
.67 to .92.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import sqrt

import pyarrow as pa

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.task_matching.components import components
from opus_pipelines.task_matching.name_nodes import Node, normalise
from opus_pipelines.task_matching.name_similarity import NameVectors, WordContrasts, opposed, same_words, unmatched

ENDS = ("before", "after")
BOUNDARY, THEMSELVES = -1, -2  # where a case begins or ends; either of the two tasks that are compared


class TaskNeighbours:
    """Neighbours of every name, by number. `twins` gives the number by which a name counts as a neighbour: names of
    two sources have one place only as far as what surrounds them is one.
    """

    def __init__(
        self, rows: Iterable[tuple[str, dict]], number: Mapping[tuple[str, str | None, str], int], twins: Sequence[int]
    ) -> None:
        self._twins = twins
        self._near: dict[str, list[Counter[int]]] = {end: [Counter() for _ in twins] for end in ENDS}
        for source, row in rows:
            before, after = (
                BOUNDARY if row[end] is None else number[source, row["industry"], row[end]] for end in ENDS
            )
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


TELLING = 5  # words from which a statement tells tasks apart; what a program fills in, {{ ... }}, is none
INSTRUCTIONS = 4  # most frequent ones that are looked at
Counts = Mapping[tuple[int, str], Counter[str]]  # (name, field) → how often each value is said


class TaskTexts:
    """Of every name, by its number: description, instructions, and the statements that no other name of its sources
    has.
    """

    def __init__(self, counts: Counts, sources: Sequence[set[str]]) -> None:
        none: Counter[str] = Counter()
        self._sources = sources
        self._description = [
            next(iter(_most(counts.get((i, "description"), none), 1)), "") for i in range(len(sources))
        ]
        told = [_most(counts.get((i, "instruction"), none), INSTRUCTIONS) for i in range(len(sources))]
        said = [[text for text in (one, *more) if text] for one, more in zip(self._description, told, strict=True)]
        telling = [{normalise(text) for text in texts if _letters(text) >= TELLING} for texts in said]
        holders = Counter((source, text) for i, texts in enumerate(telling) for text in texts for source in sources[i])
        self.statements = [
            {t for t in texts if all(holders[s, t] == 1 for s in sources[i])} for i, texts in enumerate(telling)
        ]
        self.texts = ["\n".join(texts) if own else "" for texts, own in zip(said, self.statements, strict=True)]

    def comparable(self, one: int, other: int) -> bool:
        """Is there something told of both, by different sources? Within one source, texts are copied from task to
        task.
        """
        return bool(self.texts[one] and self.texts[other]) and not self._sources[one] & self._sources[other]

    def same(self, one: int, other: int) -> bool:
        """Do they share a telling statement, and no description speaks against it?"""
        described = normalise(self._description[one]), normalise(self._description[other])
        return bool(self.statements[one] & self.statements[other]) and (
            not all(described) or described[0] == described[1]
        )


def said_of(
    rows: Iterable[tuple[str, dict]], number: Mapping[tuple[str, str | None, str], int], sources: Sequence[set[str]]
) -> TaskTexts:
    """From the sources' `said` tables; `number` is each raw key's name."""
    counts: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for source, row in rows:
        counts[number[source, row["industry"], row["task_key"]], row["field"]][row["value"].strip()] += row["count"]
    return TaskTexts(counts, sources)


def rows_of(evidence: Mapping[str, Mapping[str, pa.Table]], table: str) -> Iterable[tuple[str, dict]]:
    """(source, row) of one kind of evidence of all sources, in order."""
    for source, tables in sorted(evidence.items()):
        for row in tables[table].to_pylist():
            yield source, row


def _most(counts: Counter[str], limit: int) -> list[str]:
    return sorted(counts, key=lambda value: (-counts[value], value))[:limit]


def _letters(text: str) -> int:
    """How many words of letters a text has, without its templates' expressions."""
    words = normalise(re.sub(r"\{\{.*?\}\}", " ", text)).split()
    return sum(word.isalpha() and len(word) > 1 for word in words)


IN_PLACE = 0.5  # cosine of what comes before, or of what comes after, that bears out what is said
CONTRARY = 0.5  # cosine of what is said below which it speaks against a merge
Pair = tuple[int, int]


class DuplicateDetector:
    """Pairs of names, by their numbers. It encodes when asked; `threshold` is wkg.merge_threshold, `evidence` the
    tables of each source.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        evidence: Mapping[str, Mapping[str, pa.Table]],
        encoder: Callable[[], TextEncoder],
        threshold: float,
        across: bool = False,
    ) -> None:
        self._nodes, self._evidence, self._threshold, self._across = nodes, evidence, threshold, across
        self._number = {(row.source, row.industry, row.key): i for i, node in enumerate(nodes) for row in node.rows}
        self._said = said_of(
            rows_of(evidence, "said"), self._number, [{row.source for row in node.rows} for node in nodes]
        )
        compared = {i for group in self._groups for i in group}
        self._named = NameVectors([node.normal if i in compared else "" for i, node in enumerate(nodes)], encoder)
        self._told = NameVectors([text if i in compared else "" for i, text in enumerate(self._said.texts)], encoder)
        self._judged: dict[Pair, float | None] = {}

    @cached_property
    def candidates(self) -> list[Pair]:
        """Pairs of free names that are near by name, or by what is said of them, in order."""
        return sorted(
            {
                p
                for group in self._groups
                for space in (self._named, self._told)
                for p in space.near(group, self._threshold)
            }
        )

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
        """The similarity of two names in other forms of the same words; of two in other words of which the same is
        said. None: neither.
        """
        if not self._comparable(one, other):
            return None, None
        a, b = self._nodes[one].words, self._nodes[other].words
        if same_words(a, b):
            name = self._named.cosine(one, other)
            contrary = (
                self._said.comparable(one, other)
                and not self._said.same(one, other)
                and self._told.cosine(one, other) < CONTRARY
            )
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
    def _places(self) -> TaskNeighbours:
        """Places, names that are alike in themselves taken for one."""
        sure = (pair for pair in self.candidates if any(self._claimed(*pair)))
        twins = [
            group[0] for _, group in sorted((i, group) for group in components(len(self._nodes), sure) for i in group)
        ]
        return TaskNeighbours(rows_of(self._evidence, "follows"), self._number, twins)

    def _contrasts(self, name: int) -> WordContrasts:
        return self._all_contrasts[self._field(name)]

    @cached_property
    def _all_contrasts(self) -> dict[str | None, WordContrasts]:
        named: dict[str | None, dict[tuple[str, str], list[list[str]]]] = defaultdict(lambda: defaultdict(list))
        for i, scopes in enumerate(self._scopes):
            for scope in scopes:
                named[self._field(i)][scope].append(self._nodes[i].words)
        return {field: WordContrasts(scopes.values()) for field, scopes in named.items()}
