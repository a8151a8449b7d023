"""The texts that may be a step of a request: steps of similar cases, parts of the request, what is listed beside it.

A step of a similar case is rewritten for the request: the words by which the two requests differ are exchanged. So
"take apple from countertop", done for "put an apple in the fridge", becomes "take potato from countertop" for "put a
potato in the fridge".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from opus_pipelines.language.embedding.text_parts import parts

SIMILAR, SENTENCE, CLAUSE, LISTED = "similar case", "sentence", "clause", "listed"
ORIGINS = (SIMILAR, SENTENCE, CLAUSE, LISTED)
LEAST_ALIKE = 0.3  # share of common words of two requests from which their differences are exchanged
LONGEST_DIFFERENCE = 5  # words that one difference may have
_LEAST_WORDS = 3  # a shorter part of a request has no content
MOST_SENTENCES, MOST_CLAUSES, MOST_LISTED = 12, 16, 60  # of a long text the first ones count
COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of in on to and or for with from by at is are was were be it its that this these those i me "
        "my we our you your please can could would like want need then also after before first next finally "
        "help as into using use so some any one two do does which what who how where when there their them if "
        "whose have has had not",
    )
)
_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+|\n+")
_CLAUSE_END = re.compile(r"[,.;:!?]+\s+|\n+|\s+(?:and|then|also|but|after|before)\s+", re.IGNORECASE)
Exchange = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class StepText:
    """A text that may be a step.

    Attributes:
        text: the text.
        origin: one of `ORIGINS`.
        case: rank of the similar case, 0 for the most similar one; 0 for another origin.
        place: place among the texts of the same origin, and of the same case.
        number: how many texts these are.
    """

    text: str
    origin: str
    case: int
    place: int
    number: int


def of_request(request: str, context: str) -> list[StepText]:
    """Returns the sentences and clauses of a request, and the texts that are listed in its context."""
    listed = [sentence.text for part in parts(context) for sentence in part.sentences][:MOST_LISTED]
    by_origin = ((SENTENCE, sentences(request)), (CLAUSE, clauses(request)), (LISTED, list(dict.fromkeys(listed))))
    return [
        StepText(text, origin, 0, place, len(texts)) for origin, texts in by_origin for place, text in enumerate(texts)
    ]


def of_case(steps: Sequence[str], rank: int, exchanges: Sequence[Exchange]) -> list[StepText]:
    """Returns the steps of a similar case, rewritten."""
    return [StepText(rewritten(step, exchanges), SIMILAR, rank, place, len(steps)) for place, step in enumerate(steps)]


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text; a text without one is one sentence."""
    found = [piece.strip() for piece in _SENTENCE_END.split(text)]
    return [piece for piece in found if len(piece.split()) >= _LEAST_WORDS][:MOST_SENTENCES] or [text.strip() or "-"]


def clauses(text: str) -> list[str]:
    """Returns the clauses of a text; none where none has enough words."""
    found = [piece.strip() for piece in _CLAUSE_END.split(text)]
    return [piece for piece in found if len(piece.split()) >= _LEAST_WORDS][:MOST_CLAUSES]


def content_words(text: str) -> list[str]:
    """Returns the words of a text in lower case, without the common ones."""
    return [word.lower() for word in _WORD.findall(text) if word.lower() not in COMMON_WORDS]


def exchanges_of(old: str, new: str) -> list[Exchange]:
    """Returns by which words two requests differ, longest first; none where they have too little in common."""
    a, b = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, [word.lower() for word in a], [word.lower() for word in b], autojunk=False)
    if matcher.ratio() < LEAST_ALIKE:
        return []
    found: list[Exchange] = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "replace" and j - i <= LONGEST_DIFFERENCE and m - k <= LONGEST_DIFFERENCE:
            if j - i == m - k:
                found += [((x,), (y,)) for x, y in zip(a[i:j], b[k:m], strict=True)]
            found.append((tuple(a[i:j]), tuple(b[k:m])))
    telling = [(x, y) for x, y in found if any(word.lower() not in COMMON_WORDS for word in x)]
    return sorted(dict.fromkeys(telling), key=lambda pair: -len(pair[0]))


def rewritten(step: str, exchanges: Sequence[Exchange]) -> str:
    """Returns a step with the words exchanged; a word that was put in is not exchanged again."""
    put_in: list[str] = []
    for old, new in exchanges:
        words = r"[\W_]+".join(map(re.escape, old))
        pattern = re.compile(rf"(?<![^\W_]){words}(?![^\W_])", re.IGNORECASE)
        if pattern.search(step):
            step = pattern.sub(f"\0{len(put_in)}\0", step)
            put_in.append(" ".join(new))
    return re.sub("\0(\\d+)\0", lambda mark: put_in[int(mark[1])], step)
