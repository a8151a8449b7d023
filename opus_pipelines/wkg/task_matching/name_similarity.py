"""Compares the words of two names, and the vectors of their texts.

Words are compared by their letters and by the contrasts that history shows, without a thesaurus and for any language.
Names whose words may be the same are found by blocks, so that the work grows with the names and not with their pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

from opus_pipelines.language.embedding.encoder import TextEncoder

if TYPE_CHECKING:
    import numpy as np

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
