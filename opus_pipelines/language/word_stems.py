"""Reduces the words of English text that carry meaning to stems, so that texts and names can be compared."""

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snowballstemmer.english_stemmer import EnglishStemmer


def word_set(words: str) -> frozenset[str]:
    """Returns the words that a text lists, separated by blanks."""
    return frozenset(words.split())


_LEAST_LETTERS = 5  # letters from which one stem may be the beginning of another: verif(y), verifi(cation)
_WORD = re.compile(r"[^\W_]+")
_EMPTY = """
    a after all also always an and any anybody anyone anything are as at be been before being both by can do does
    done each either every for from had has have he her here his how i if in into is it its may me more most must my
    never no nor not of off on once only or other our out over per shall she should so some somebody someone
    something such than that the their them then there these they this those through to too until up upon us very
    was we were what when where which while who will with within without would you your
"""
EMPTY = word_set(_EMPTY)
_IRREGULAR = {
    "paid": "pay",
    "payment": "pay",
    "payments": "pay",
    "sent": "send",
    "told": "tell",
    "taken": "take",
    "took": "take",
    "held": "hold",
    "made": "make",
    "written": "write",
    "sought": "seek",
    "given": "give",
    "begun": "begin",
    "broken": "break",
    "brought": "bring",
    "bought": "buy",
    "built": "build",
    "chosen": "choose",
    "drawn": "draw",
    "driven": "drive",
    "eaten": "eat",
    "forgotten": "forget",
    "frozen": "freeze",
    "grown": "grow",
    "heard": "hear",
    "hidden": "hide",
    "kept": "keep",
    "known": "know",
    "lent": "lend",
    "lost": "lose",
    "overseen": "oversee",
    "rang": "ring",
    "rung": "ring",
    "rebuilt": "rebuild",
    "repaid": "repay",
    "rewritten": "rewrite",
    "seen": "see",
    "shown": "show",
    "sold": "sell",
    "spent": "spend",
    "stolen": "steal",
    "swept": "sweep",
    "taught": "teach",
    "thrown": "throw",
    "torn": "tear",
    "understood": "understand",
    "undertaken": "undertake",
    "upheld": "uphold",
    "withdrawn": "withdraw",
    "withheld": "withhold",
    "worn": "wear",
    "dealt": "deal",
    "dug": "dig",
    "fed": "feed",
    "flown": "fly",
    "hung": "hang",
    "laid": "lay",
    "led": "lead",
    "meant": "mean",
    "met": "meet",
    "proven": "prove",
    "ridden": "ride",
    "risen": "rise",
    "sewn": "sew",
    "shaken": "shake",
    "spoken": "speak",
    "struck": "strike",
    "stuck": "stick",
    "sworn": "swear",
    "won": "win",
}


@lru_cache(maxsize=1)
def _stemmer() -> "EnglishStemmer":
    """Importing the package takes a third of a second, because it brings all languages."""
    from snowballstemmer import stemmer

    return stemmer("english")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Returns the stem of one word in lower case."""
    word = word.casefold()
    return str(_stemmer().stemWord(_IRREGULAR.get(word, word)))


@lru_cache(maxsize=16384)
def stems(text: str) -> tuple[str, ...]:
    """Returns the stems of the words that carry meaning, in order and without repetitions."""
    return tuple(dict.fromkeys(stem(w) for w in _WORD.findall(text) if w.casefold() not in EMPTY))


def stem_set(text: str) -> frozenset[str]:
    """Returns the set of stems of a document, to look words up in it."""
    return frozenset(stem(w) for w in set(_WORD.findall(text)) if w.casefold() not in EMPTY)


def same(one: str, other: str) -> bool:
    """Returns whether two stems belong to one word: they are equal, or the shorter begins the longer.

    The shorter one must have five letters at least.
    """
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    return one == other or (len(short) >= _LEAST_LETTERS and long.startswith(short))


@lru_cache(maxsize=65536)
def within(name: tuple[str, ...], text: tuple[str, ...]) -> bool:
    """Returns whether every stem of `name` is among those of `text`."""
    return bool(name) and all(any(same(n, t) for t in text) for n in name)


def near_names(wanted: str, names: Mapping[str, str], most: int, cutoff: float) -> list[str]:
    """Returns at most `most` names: those that contain the wanted one, then those with the most similar spelling.

    `names` are by the form in which they are compared; `wanted` has that form, too. `cutoff` is that of difflib.
    """
    containing = [form for form in names if wanted and wanted in form]
    similar = difflib.get_close_matches(wanted, names, n=most, cutoff=cutoff)
    return [names[form] for form in dict.fromkeys([*containing, *similar])][:most]
