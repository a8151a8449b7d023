"""Parts of speech from the dictionary of lemminflect: whether a word may be a verb, and in which form."""

import re
from functools import lru_cache
from itertools import pairwise

from lemminflect import getAllLemmas, getInflection

_FINITE_WORDS = (
    "is are was were am be has have had do does did will would shall should must can could may might "
    "cannot needs need isn't aren't"
)
FINITE = frozenset(_FINITE_WORDS.split())
_WORD = re.compile(r"[a-z][a-z'-]*")
_OTHER_WORDS = "see say thank thanks feel let hope imagine note tip please like mean bet be have do does may more most"
_OTHER_WORDS += " up down out off back near past even still well better best long total enjoy"
_NO_ORDERS = frozenset(_OTHER_WORDS.split())


@lru_cache(maxsize=8192)
def _lemmas(word: str) -> frozenset[str]:
    return frozenset(getAllLemmas(word, upos="VERB").get("VERB", ()))


@lru_cache(maxsize=8192)
def _is_noun(word: str) -> bool:
    return "NOUN" in getAllLemmas(word)


def is_base(word: str) -> bool:
    """Return whether the word may be a verb's base form: "verify", "check"."""
    return word in _lemmas(word) or ("-" in word and word.rpartition("-")[2] in _lemmas(word.rpartition("-")[2]))


@lru_cache(maxsize=8192)
def is_participle(word: str) -> bool:
    """Return whether the word may be a past participle: "verified", "sent"."""
    return any(word in getInflection(lemma, tag="VBN") for lemma in _lemmas(word))


@lru_cache(maxsize=8192)
def is_third_person(word: str) -> bool:
    """Return whether the word is a verb's third person and no plural of a noun: "explains", not "checks"."""
    return (
        word.endswith("s")
        and any(word in getInflection(lemma, tag="VBZ") for lemma in _lemmas(word))
        and not _is_noun(word)
    )


def may_be_third_person(word: str) -> bool:
    """Return whether the word may be a verb's third person: "checks"."""
    return word.endswith("s") and any(word in getInflection(lemma, tag="VBZ") for lemma in _lemmas(word))


def words_in(text: str) -> list[str]:
    """Return the words of a lower-case text."""
    return _WORD.findall(text)


def is_finite(text: str) -> bool:
    """Return whether the text has a finite verb and is therefore a clause."""
    words = words_in(text)
    pronouns = any(w in ("we", "you", "they", "i") and is_base(after) for w, after in pairwise(words))
    return pronouns or any(w in FINITE or is_third_person(w) for w in words) or _has_verb_after_noun(words)


def _has_verb_after_noun(words: list[str]) -> bool:
    """Return whether a possible third person is between a noun and a determiner: "the clerk checks the file"."""
    after = {
        "the",
        "a",
        "an",
        "its",
        "their",
        "his",
        "her",
        "it",
        "them",
        "all",
        "every",
        "each",
        "what",
        "that",
        "from",
        "to",
        "for",
    }
    return any(may_be_third_person(w) and following in after for w, following in pairwise(words[1:]))


def _makes_a_noun(before: str) -> bool:
    """Return whether a noun follows the word: "the payer's edits"."""
    return before in (
        "the",
        "a",
        "an",
        "all",
        "any",
        "its",
        "their",
        "your",
        "our",
        "these",
        "those",
    ) or before.endswith(("'s", "s'"))


def _tells_of_several(words: list[str]) -> bool:
    """Return whether two nouns and then the verb begin the text: "school classes love the fog horn"."""
    match words:
        case [first, second, third, "the" | "a" | "an", *_]:
            return second.endswith("s") and _is_noun(first) and is_base(third)
    return False


def is_imperative(text: str) -> bool:
    """Return whether the text begins with a verb's base form and has no other finite verb: "check the seal"."""
    words = words_in(text)
    if (
        words[:1] in (["have"], ["get"])
        and words[1:2] in (["a"], ["an"], ["the"], ["another"])
        and any(is_base(w) for w in words[3:6])
    ):
        return True  # "have a second analyst review the results"
    if words[:1] == ["note"] and words[1:2] in (["it"], ["the"], ["down"], ["any"], ["all"]):
        return True
    if words[1:2] in (["or"], ["and"], ["of"]) and _is_noun(words[0]) and not is_base((words[2:3] or [""])[0]):
        return False  # "band or DJ"
    if not words or words[0] in _NO_ORDERS or not is_base(words[0]) or (len(words) > 1 and words[1] in FINITE):
        return False
    if _tells_of_several(words):
        return False
    main = re.split(
        r"\b(?:that|which|who|whom|whose|why|whether|if|what|how|where|when|because|so|until|before|after|while"
        r"|unless|as|than"
        r"|even)\b",
        text,
    )[0]
    following = pairwise(words_in(main))
    return not any(w in FINITE or (is_third_person(w) and not _makes_a_noun(before)) for before, w in following)
