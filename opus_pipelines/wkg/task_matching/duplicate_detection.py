"""Detects names that denote the same task: blocks propose pairs, and an encoder and evidence from history decide.

Two names are proposed where they have the same words in other forms, or share a statement. No other pair could be one
task, so that only the names of proposed pairs are encoded, and the work grows with their number.

Similarity of names alone joins only different forms of the same words. Measured with the shipped encoder, "approve
claim" and "reject claim" are nearer (.74) than "register claim" and "record claim" (.61), and "send invoice" and
"receive invoice" are at .92: no threshold separates synonyms from opposites. Where words differ, the two tasks must
share a description or an instruction that no other task of their sources has, and the tasks before or after them must
be similar (`TaskTexts`, `TaskNeighbours`).

Similarity of those texts proves little either. Measured with the shipped encoder, eight sentences and their
paraphrases are at .44 to .71, six sentences and their opposites ("release the goods to the carrier", "take the goods
over from the carrier") at .67 to .92.

Compares the words of two names, and the vectors of their texts. Words are compared by their letters and by the
contrasts that history shows, without a thesaurus and for any language. Names whose words may be the same are found by
blocks, so that the work grows with the names and not with their pairs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from math import sqrt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.task_matching.names import Node, normalise

if TYPE_CHECKING:
    import numpy as np


Similarity = Callable[[int, int], float | None]


def components_of(size: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
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


SHARED = 4  # letters that two forms of one word begin with at least
ENDING = 3  # letters by which one form may be longer
MARK = 5  # letters that stand for all forms of a word where contrasts are looked up
Words = Sequence[str]


def same_form(one: str, other: str) -> bool:
    """Tells whether two words are forms of one: order and orders, approve and approving, notify and notifies.

    Employee and employer are not.
    """
    if one == other:
        return True
    shared = _prefix(one, other)
    short, long = sorted((one[shared:], other[shared:]), key=lambda rest: (len(rest), rest))
    if shared < SHARED or len(long) > ENDING or _digits(one + other):
        return False
    return not short or (short in ("e", "y") and long[0] in "aei")


def same_words(one: Words, other: Words) -> bool:
    """Tells whether two names have the same words in other forms.

    Two words may change places. Three may not: their order says who does what to whom.
    """
    if len(one) != len(other):
        return False
    if all(map(same_form, one, other)):
        return True
    return len(one) == 2 and all(map(same_form, one, reversed(other)))


def same_word_pairs(names: Mapping[int, Words]) -> Iterator[tuple[int, int]]:
    """Yields all pairs (lower number first) of these names that have the same words in other forms.

    Only names of one block are compared. Blocking as in Papadakis et al., Blocking and Filtering Techniques for Entity
    Resolution (2020): no pair is lost, because forms of one word share its first letters.
    """
    blocks: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, words in names.items():
        blocks[_block(words)].append(number)
    for block in blocks.values():
        yield from ((min(i, j), max(i, j)) for i, j in combinations(block, 2) if same_words(names[i], names[j]))


def _block(words: Words) -> tuple[str, ...]:
    marks = [word if _digits(word) else word[:SHARED] for word in words]
    return tuple(sorted(marks) if len(marks) == 2 else marks)


def unmatched(one: Words, other: Words) -> tuple[list[str], list[str]]:
    """Returns the words of each name that have no form in the other."""
    rest = list(other)
    only = []
    for word in one:
        twin = next((w for w in rest if same_form(word, w)), None)
        if twin is None:
            only.append(word)
        else:
            rest.remove(twin)
    return only, rest


def opposed(only_one: Words, only_other: Words) -> bool:
    """Tells whether these words are numbers, or negate each other by a prefix.

    Examples are lock and unlock, increase and decrease, goedkeuren and afkeuren.
    """
    if any(_digits(word) or len(word) == 1 for word in (*only_one, *only_other)):
        return True
    return any(_prefix(a[::-1], b[::-1]) >= min(SHARED, len(a), len(b)) for a, b in product(only_one, only_other))


class WordContrasts:
    """Pairs of words that separate tasks: names of one scope differ in this one word only."""

    def __init__(self, scopes: Iterable[Iterable[Words]]) -> None:
        self._groups: dict[str, set[int]] = defaultdict(set)
        numbers: dict[tuple[object, ...], int] = {}
        for scope, names in enumerate(scopes):
            for words in names:
                for i, word in enumerate(words):
                    frame = (scope, i, *words[:i], None, *words[i + 1 :])
                    if len(words) > 1:
                        self._groups[word[:MARK]].add(numbers.setdefault(frame, len(numbers)))

    def separates(self, only_one: Words, only_other: Words) -> bool:
        """Tells whether one of these words and one of those separate two tasks of the same scope."""
        nothing: set[int] = set()
        marks = ((a[:MARK], b[:MARK]) for a, b in product(only_one, only_other))
        return any(a != b and self._groups.get(a, nothing) & self._groups.get(b, nothing) for a, b in marks)


def _prefix(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _digits(text: str) -> bool:
    return any(c.isdigit() for c in text)


DECIMALS = 4  # vectors agree to 1e-6 whatever else was in their batch; decisions must not hang on the rest


class NameVectors:
    """Texts and their vectors, by the number of the name; an empty text has none. Encodes at the first use."""

    def __init__(self, texts: Sequence[str], encoder: Callable[[], TextEncoder]) -> None:
        self.texts = texts
        self._encoder = encoder

    def cosine(self, one: int, other: int) -> float:
        """Returns the cosine of the texts of two names, at most 1."""
        return min(1.0, round(float(self._vectors[self.texts[one]] @ self._vectors[self.texts[other]]), DECIMALS))

    @cached_property
    def _vectors(self) -> "dict[str, np.ndarray]":
        texts = sorted({text for text in self.texts if text})
        return dict(zip(texts, self._encoder().encode(texts), strict=True))


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
_Pair = tuple[int, int]


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
        self._similarities: dict[_Pair, float | None] = {}

    @cached_property
    def candidates(self) -> list[_Pair]:
        """The pairs of free names that may be one task, sorted: all that have the same words, or share a statement."""
        found: set[_Pair] = set()
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
            group[0]
            for _, group in sorted((i, group) for group in components_of(len(self._nodes), sure) for i in group)
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
