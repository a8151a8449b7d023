"""Detects names that denote the same task: blocks propose pairs, and an encoder and evidence from history decide.

Two names are proposed where they have the same words in other forms, or share a statement. No other pair could be one
task, so that only the names of proposed pairs are encoded, and the work grows with their number.

Similarity of names alone joins only different forms of the same words. Measured with the shipped encoder, "approve
claim" and "reject claim" are nearer (.74) than "register claim" and "record claim" (.61), and "send invoice" and
"receive invoice" are at .92: no threshold separates synonyms from opposites. Where words differ, the two tasks must
share a description or an instruction that no other task of their sources has, and the tasks before or after them must
be similar (`TaskTexts`, `TaskNeighbours`).

Similarity of those texts proves little either. Measured with the shipped encoder, eight sentences and their paraphrases
are at .44 to .71, six sentences and their opposites ("release the goods to the carrier", "take the goods over from the
carrier") at .67 to .92.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import Any

import pyarrow as pa

from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.task_matching.components import components
from opus_pipelines.wkg.task_matching.name_nodes import Node, normalise
from opus_pipelines.wkg.task_matching.name_similarity import (
    NameVectors,
    WordContrasts,
    opposed,
    same_word_pairs,
    same_words,
    unmatched,
)

ENDS = ("before", "after")
BOUNDARY, COMPARED_TASKS = -1, -2  # the start or end of a case; either of the two tasks that are compared


class TaskNeighbours:
    """Counts of the tasks directly before and after every name, by number.

    `twins` gives for each name the number that stands for it as a neighbour, so that equal names of two sources count
    as the same neighbour.
    """

    def __init__(
        self,
        rows: Iterable[tuple[str, dict[str, Any]]],
        number: Mapping[tuple[str, str | None, str], int],
        twins: Sequence[int],
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

    def cosines(self, one: int, other: int) -> tuple[float, float]:
        """Returns the cosine of what comes before the two names, and of what comes after them."""
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
            place = COMPARED_TASKS if node in themselves else node
            merged[place] = merged.get(place, 0) + count
    norm = sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return round(sum(n * b.get(node, 0) for node, n in a.items()) / norm, 4) if norm else 0.0


MIN_STATEMENT_WORDS = 5  # a shorter text does not identify a task; template expressions {{ ... }} do not count
MOST_INSTRUCTIONS = 4  # only the most frequent instructions are compared
Counts = Mapping[tuple[int, str], Counter[str]]  # (name, field) → how often each value occurs


class TaskTexts:
    """The descriptions and instructions of every name, by number.

    `statements` are the texts that no other name of the same sources has.
    """

    def __init__(self, counts: Counts, sources: Sequence[set[str]]) -> None:
        none: Counter[str] = Counter()
        self._sources = sources
        self._description = [
            next(iter(_most(counts.get((i, "description"), none), 1)), "") for i in range(len(sources))
        ]
        instructions = [_most(counts.get((i, "instruction"), none), MOST_INSTRUCTIONS) for i in range(len(sources))]
        all_texts = [
            [text for text in (one, *more) if text] for one, more in zip(self._description, instructions, strict=True)
        ]
        distinctive = [
            {normalise(text) for text in texts if _word_count(text) >= MIN_STATEMENT_WORDS} for texts in all_texts
        ]
        holders = Counter(
            (source, text) for i, texts in enumerate(distinctive) for text in texts for source in sources[i]
        )
        self.statements = [
            {t for t in texts if all(holders[s, t] == 1 for s in sources[i])} for i, texts in enumerate(distinctive)
        ]
        self.texts = ["\n".join(texts) if own else "" for texts, own in zip(all_texts, self.statements, strict=True)]

    def comparable(self, one: int, other: int) -> bool:
        """Tells whether both names have texts, from different sources.

        Within one source, texts are copied from task to task.
        """
        return bool(self.texts[one] and self.texts[other]) and not self._sources[one] & self._sources[other]

    def sharing(self, names: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yields the pairs (lower number first) of these names that share a statement."""
        holders: dict[str, list[int]] = defaultdict(list)
        for i in sorted(names):
            for text in self.statements[i]:
                holders[text].append(i)
        for found in holders.values():
            yield from combinations(found, 2)

    def same(self, one: int, other: int) -> bool:
        """Tells whether both names share a statement, and their descriptions do not differ."""
        described = normalise(self._description[one]), normalise(self._description[other])
        return bool(self.statements[one] & self.statements[other]) and (
            not all(described) or described[0] == described[1]
        )


def task_texts(
    rows: Iterable[tuple[str, dict[str, Any]]],
    number: Mapping[tuple[str, str | None, str], int],
    sources: Sequence[set[str]],
) -> TaskTexts:
    """Makes the texts of the sources' `said` tables; `number` maps each raw key to the number of its name."""
    counts: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for source, row in rows:
        counts[number[source, row["industry"], row["task_key"]], row["field"]][row["value"].strip()] += row["count"]
    return TaskTexts(counts, sources)


def rows_of(evidence: Mapping[str, Mapping[str, pa.Table]], table: str) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yields (source, row) for one table of evidence of all sources, in a fixed order."""
    for source, tables in sorted(evidence.items()):
        for row in tables[table].to_pylist():
            yield source, row


def _most(counts: Counter[str], limit: int) -> list[str]:
    return sorted(counts, key=lambda value: (-counts[value], value))[:limit]


def _word_count(text: str) -> int:
    """Counts the words of letters in a text, without its template expressions {{ ... }}."""
    words = normalise(re.sub(r"\{\{.*?\}\}", " ", text)).split()
    return sum(word.isalpha() and len(word) > 1 for word in words)


MIN_NEIGHBOUR_COSINE = 0.5  # of the tasks before, or after, that confirms a shared statement
MIN_TEXT_COSINE = 0.5  # below it, different texts prevent a merge of similar names
Pair = tuple[int, int]


class DuplicateDetector:
    """Decides for pairs of names, given by number, whether they denote the same task.

    The encoder is called only when a comparison needs it. `threshold` is wkg.merge_threshold. `evidence` holds the
    tables of each source by name.
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
        self._task_texts = task_texts(
            rows_of(evidence, "said"), self._number, [{row.source for row in node.rows} for node in nodes]
        )
        compared = {i for pair in self.candidates for i in pair}
        self._name_vectors = NameVectors(
            [node.normal if i in compared else "" for i, node in enumerate(nodes)], encoder
        )
        self._text_vectors = NameVectors(
            [text if i in compared else "" for i, text in enumerate(self._task_texts.texts)], encoder
        )
        self._similarities: dict[Pair, float | None] = {}

    @cached_property
    def candidates(self) -> list[Pair]:
        """The pairs of free names that may be one task, sorted: all that have the same words, or share a statement."""
        found: set[Pair] = set()
        for group in self._groups:
            found.update(same_word_pairs({i: self._nodes[i].words for i in group}))
            found.update(self._task_texts.sharing(group))
        return sorted(pair for pair in found if not self.named_separately(*pair))

    def similarity(self, one: int, other: int) -> float | None:
        """Returns a value from the threshold to 1 when both are one task, else None. It is symmetric."""
        pair = min(one, other), max(one, other)
        if pair not in self._similarities:
            by_name, by_text = self._claims(*pair)
            self._similarities[pair] = (
                by_text if by_text and max(self._places.cosines(*pair)) >= MIN_NEIGHBOUR_COSINE else by_name
            )
        return self._similarities[pair]

    def named_separately(self, one: int, other: int) -> bool:
        """Tells whether the same source or process model has both names, which makes them different tasks."""
        return bool(self._scopes[one] & self._scopes[other])

    def _claims(self, one: int, other: int) -> tuple[float | None, float | None]:
        """Returns two similarities, each None when its rule does not hold.

        The first is that of names with other forms of the same words. The second is that of names in other words that
        share a statement.
        """
        if not self._comparable(one, other):
            return None, None
        a, b = self._nodes[one].words, self._nodes[other].words
        if same_words(a, b):
            name = self._name_vectors.cosine(one, other)
            contrary = (
                self._task_texts.comparable(one, other)
                and not self._task_texts.same(one, other)
                and self._text_vectors.cosine(one, other) < MIN_TEXT_COSINE
            )
            return (name if name >= self._threshold and not contrary else None), None
        only_a, only_b = unmatched(a, b)
        same = self._task_texts.comparable(one, other) and self._task_texts.same(one, other)
        if not same or opposed(only_a, only_b) or self._contrasts(one).separates(only_a, only_b):
            return None, None
        by_text = self._text_vectors.cosine(one, other)
        return None, by_text if by_text >= self._threshold else None

    def _comparable(self, one: int, other: int) -> bool:
        a, b = self._nodes[one], self._nodes[other]
        return a.free and b.free and self._field(one) == self._field(other) and not self.named_separately(one, other)

    def _field(self, name: int) -> str | None:
        """Returns the industry within which a name is compared; None when names of all industries are."""
        return None if self._across else self._nodes[name].identity[0]

    @cached_property
    def _scopes(self) -> list[frozenset[tuple[str, str]]]:
        """The scopes (source, process model or whole source) in which each name occurs."""
        found: list[set[tuple[str, str]]] = [set() for _ in self._nodes]
        for source, row in rows_of(self._evidence, "scopes"):
            found[self._number[source, row["industry"], row["task_key"]]].add((source, row["scope"]))
        return [frozenset(scopes) for scopes in found]

    @cached_property
    def _groups(self) -> list[list[int]]:
        """The free names that may be compared with each other; a group within one scope is left out."""
        groups: dict[str | None, list[int]] = defaultdict(list)
        for i, node in enumerate(self._nodes):
            if node.free:
                groups[self._field(i)].append(i)
        return [group for group in groups.values() if len({scope for i in group for scope in self._scopes[i]}) > 1]

    @cached_property
    def _places(self) -> TaskNeighbours:
        """The neighbours of all names, where names that are similar in themselves count as one."""
        sure = (pair for pair in self.candidates if any(self._claims(*pair)))
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
