"""How the words of two names differ: in form only, or in meaning. No thesaurus, no language: letters, and what history tells apart."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

SHARED = 4  # letters that two forms of one word begin with at least
ENDING = 3  # letters by which one form may be longer
MARK = 5  # letters that stand for all forms of a word where contrasts are looked up
Words = Sequence[str]


def same_form(one: str, other: str) -> bool:
    """Are these forms of one word: order and orders, approve and approved, approving, notify and notifies? Not employee and employer."""
    if one == other:
        return True
    shared = _prefix(one, other)
    short, long = sorted((one[shared:], other[shared:]), key=lambda rest: (len(rest), rest))
    if shared < SHARED or len(long) > ENDING or _digits(one + other):
        return False
    return not short or (short in ("e", "y") and long[0] in "aei")


def same_words(one: Words, other: Words) -> bool:
    """The same words in other forms; two words may change places (order of three says who does what to whom)."""
    if len(one) != len(other):
        return False
    if all(map(same_form, one, other)):
        return True
    return len(one) == 2 and all(map(same_form, one, reversed(other)))


def unmatched(one: Words, other: Words) -> tuple[list[str], list[str]]:
    """The words of each that have no form in the other."""
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
    """Do these words number things, or deny each other by a prefix (lock, unlock; increase, decrease; goedkeuren, afkeuren)?"""
    if any(_digits(word) or len(word) == 1 for word in (*only_one, *only_other)):
        return True
    return any(_prefix(a[::-1], b[::-1]) >= min(SHARED, len(a), len(b)) for a, b in product(only_one, only_other))


class Contrasts:
    """Words that somebody used to tell tasks apart: names of one scope that differ in this one word."""

    def __init__(self, scopes: Iterable[Iterable[Words]]) -> None:
        self._groups: dict[str, set[int]] = defaultdict(set)
        numbers: dict[tuple[object, ...], int] = {}
        for scope, names in enumerate(scopes):
            for words in names:
                for i, word in enumerate(words):
                    frame = (scope, i, *words[:i], None, *words[i + 1 :])
                    if len(words) > 1:
                        self._groups[word[:MARK]].add(numbers.setdefault(frame, len(numbers)))

    def apart(self, only_one: Words, only_other: Words) -> bool:
        """Did somebody tell tasks apart by one of these words against one of those?"""
        nothing: set[int] = set()
        marks = ((a[:MARK], b[:MARK]) for a, b in product(only_one, only_other))
        return any(a != b and self._groups.get(a, nothing) & self._groups.get(b, nothing) for a, b in marks)


def _prefix(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _digits(text: str) -> bool:
    return any(c.isdigit() for c in text)
