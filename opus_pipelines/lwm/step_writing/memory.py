"""The cases of one industry as texts, and the texts that may be a step of a request with their features.

Candidates are the steps of similar cases, parts of the request, and what is listed beside it. A step of a similar case
is rewritten for the request: the words by which the two requests differ are exchanged. So "take apple from countertop",
done for "put an apple in the fridge", becomes "take potato from countertop" for "put a potato in the fridge".

A case that is itself in the memory can be left out (`hidden`), so that training sees what generation will see.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import numpy as np

from opus_pipelines.language.embedding.texts import parts, plain
from opus_pipelines.workflow.metrics.opus_metrics import THRESHOLD

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


_NEAREST = 6  # similar cases whose steps are candidates
_SHARPNESS = 0.1  # a case that is so much less similar than the most similar one has 1/e of its weight
RARE = 0.01  # share of the cases below which a word of their steps is rare
_LINKED = 0.5  # share of similar cases that are chains, from which a written workflow is one
LINK_CASES = 12  # similar cases that tell whether work is a chain
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class TextCase:
    """A case as texts: its request, what was listed beside it, its distinct steps in order, and if they are a chain."""

    request: str
    context: str
    steps: tuple[str, ...]
    is_chain: bool


@dataclass(frozen=True)
class TextCandidates:
    """What may be a step of one request.

    Attributes:
        texts: the texts.
        features: [n, FEATURES], the same for every prefix.
        alike: cosines of the texts [n, n].
        support: share of the similar cases, by weight, with a step that is like the text [n].
        case_weights: weight of each similar case; they sum to 1.
        case_steps: for each similar case the places of its steps in `texts`, in order.
        place: expected place in the workflow by similar cases, in [0, 1] [n].
        request_place: place of the sentence of the request that is most similar, in [0, 1] [n].
        expected_steps: mean number of steps of the similar cases, by weight.
        is_chain: whether most similar cases are chains.
    """

    texts: tuple[StepText, ...]
    features: np.ndarray
    alike: np.ndarray
    support: np.ndarray
    case_weights: np.ndarray
    case_steps: tuple[tuple[int, ...], ...]
    place: np.ndarray
    request_place: np.ndarray
    expected_steps: float
    is_chain: bool

    def rows_of(self, origin: str) -> list[int]:
        """Return the places of the texts of one origin."""
        return [n for n, text in enumerate(self.texts) if text.origin == origin]


TEXT_FEATURES = 27  # features of a candidate that do not depend on the steps so far


class TextMemory:
    """The cases of one industry."""

    def __init__(self, cases: Sequence[TextCase], rates: Mapping[str, Sequence[float]]) -> None:
        """Take the cases, of which there is at least one, and the `origin_rates` of their industry."""
        self.cases, self.rates = list(cases), dict(rates)
        self._words: Counter[str] = Counter()
        for case in cases:
            self._words.update({word for step in case.steps for word in content_words(step)})
        self._mean_steps = _mean(len(case.steps) for case in cases)

    @classmethod
    def measured(cls, cases: Sequence[TextCase], encode: Encode) -> "TextMemory":
        """Return the memory with the rates of these cases."""
        return cls(cases, cls(cases, {}).origin_rates(encode))

    def load(self) -> None:
        """Compute now what every request needs."""
        self._requests  # noqa: B018 - it is kept

    def texts(self, request: str, context: str) -> list[str]:
        """Return every text whose vector `candidates` asks for."""
        near, _ = self._near(request, None)
        texts, _ = self._texts(request, context, near[:_NEAREST])
        return [plain(text) for text in (request, *sentences(request), *(text.text for text in texts))]

    def nearest(self, request: str, hidden: int | None = None) -> TextCase:
        """Return the most similar case."""
        return self.cases[self._near(request, hidden)[0][0]]

    def candidates(self, request: str, context: str, encode: Encode, hidden: int | None = None) -> TextCandidates:
        """Return the candidates for a request; `hidden`: the case that is left out, None for none."""
        near, cosines = self._near(request, hidden)
        texts, case_steps = self._texts(request, context, near[:_NEAREST])
        own = sentences(request)
        vectors = encoded([text.text for text in texts], encode)
        alike, to_sentences = vectors @ vectors.T, vectors @ encoded(own, encode).T
        weights = np.exp((cosines - cosines[:1]) / _SHARPNESS)
        shares = weights[:_NEAREST] / max(1e-9, float(weights[:_NEAREST].sum()))
        most = np.stack([alike[:, list(steps)].max(1) for steps in case_steps]) if case_steps else np.zeros((0, 1))
        support = shares @ (most > THRESHOLD) if case_steps else np.zeros(len(texts))
        best = to_sentences.max(1)
        margin = best - np.sort(to_sentences, 1)[:, -2] if len(own) > 1 else np.full(len(texts), np.nan)
        request_place = to_sentences.argmax(1) / max(1, len(own) - 1)
        expected = float(sum(share * len(steps) for share, steps in zip(shares, case_steps, strict=True)))
        columns = [
            *self._by_origin(texts, cosines),
            support,
            shares @ most if case_steps else np.zeros(len(texts)),
            vectors @ encoded([request], encode)[0],
            best,
            request_place,
            *self._by_words(texts, request),
            np.full(len(texts), float(len(own))),
            np.full(len(texts), expected),
            (alike > THRESHOLD).mean(1),
            np.array([float(text.text.endswith("?")) for text in texts]),
            margin,
            np.full(len(texts), self._mean_steps),
        ]
        return TextCandidates(
            tuple(texts),
            np.stack(columns, 1),
            alike,
            support,
            shares,
            tuple(map(tuple, case_steps)),
            _places(alike, case_steps, shares),
            request_place,
            expected,
            self._is_chain(near, weights),
        )

    @cached_property
    def _requests(self) -> tuple[Any, Any]:
        """Return the tf-idf vectoriser of the words of requests, and its rows of the cases."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
        return words, words.fit_transform([plain(case.request) or "-" for case in self.cases])

    def _near(self, request: str, hidden: int | None) -> tuple[list[int], np.ndarray]:
        """Return the similar cases, most similar first, and their cosines by words.

        Words are compared, not sentence vectors, so that a run knows every text to encode before it encodes.
        """
        words, rows = self._requests
        cosines = np.asarray((words.transform([plain(request) or "-"]) @ rows.T).todense())[0].round(6)
        order = [n for n in np.argsort(-cosines, kind="stable").tolist() if n != hidden][:LINK_CASES]
        return order, cosines[order]

    def _is_chain(self, near: Sequence[int], weights: np.ndarray) -> bool:
        telling = [
            (float(weight), self.cases[n].is_chain)
            for weight, n in zip(weights, near, strict=True)
            if len(self.cases[n].steps) > 1
        ]
        return sum(w for w, is_chain in telling if is_chain) >= _LINKED * sum(w for w, _ in telling)

    def _texts(self, request: str, context: str, near: Sequence[int]) -> tuple[list[StepText], list[list[int]]]:
        """Return the distinct candidates for a request, and the places among them of each similar case's steps."""
        rows: dict[tuple[str, bool], int] = {}
        texts: list[StepText] = []

        def row_of(text: StepText) -> int:
            key = (text.text.lower(), text.origin == SIMILAR)
            if key not in rows:
                rows[key] = len(texts)
                texts.append(text)
            return rows[key]

        of_cases = [
            of_case(self.cases[n].steps, rank, exchanges_of(self.cases[n].request, request))
            for rank, n in enumerate(near)
        ]
        case_steps = [[row_of(text) for text in steps] for steps in of_cases]
        for text in of_request(request, context):
            row_of(text)
        return texts, case_steps

    def _by_origin(self, texts: Sequence[StepText], cosines: np.ndarray) -> list[np.ndarray]:
        rows = []
        for text in texts:
            of_case = text.origin == SIMILAR
            cosine = float(cosines[text.case]) if of_case else 0.0
            rows.append(
                [
                    *(float(text.origin == origin) for origin in ORIGINS),
                    *self.rates[text.origin],
                    cosine,
                    cosine - float(cosines[0]) if of_case else np.nan,
                    text.case if of_case else np.nan,
                    text.place / max(1, text.number - 1),
                    text.place,
                    text.number,
                ]
            )
        return list(np.array(rows, float).T)

    def _by_words(self, texts: Sequence[StepText], request: str) -> list[np.ndarray]:
        """Return the shares of a text's words that the request has and that are strange, and two more."""
        asked, rare, rows = set(content_words(request)), max(2.0, RARE * len(self.cases)), []
        for text in texts:
            words = content_words(text.text)
            n = max(1, len(words))
            known = sum(word in asked for word in words)
            strange = sum(word not in asked and self._words[word] < rare for word in words)
            rows.append([known / n, strange / n, len(asked & set(words)) / max(1, len(asked)), np.log(n)])
        return list(np.array(rows, float).T)

    def origin_rates(self, encode: Encode) -> dict[str, Sequence[float]]:
        """Return for each origin how many of its texts were a step, and how many steps were one of its texts."""
        rates: dict[str, list[tuple[float, float]]] = {origin: [] for origin in ORIGINS}
        for n, case in enumerate(self.cases):
            near, _ = self._near(case.request, n)
            texts, _ = self._texts(case.request, case.context, near[:_NEAREST])
            hits = encoded([text.text for text in texts], encode) @ encoded(case.steps, encode).T > THRESHOLD
            for origin in ORIGINS:
                own = hits[[m for m, text in enumerate(texts) if text.origin == origin]]
                rates[origin].append((float(own.any(1).mean()), float(own.any(0).mean())) if len(own) else (0.0, 0.0))
        return {origin: (_mean(r for r, _ in found), _mean(r for _, r in found)) for origin, found in rates.items()}


def encoded(texts: Sequence[str], encode: Encode) -> np.ndarray:
    """Return the unit vectors [n, d] of n texts, read as the names of new steps are: words in lower case."""
    return encode([plain(text) for text in texts])


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _places(alike: np.ndarray, case_steps: Sequence[Sequence[int]], shares: np.ndarray) -> np.ndarray:
    """Return the expected place [n] of each text: the mean place of like steps of similar cases."""
    places, total = np.full(len(alike), 0.005), np.full(len(alike), 0.01)
    for steps, share in zip(case_steps, shares, strict=True):
        for place, n in enumerate(steps):
            mass = np.clip(alike[:, n] - 0.5, 0.0, None) * share
            places += mass * place / max(1, len(steps) - 1)
            total += mass
    return np.asarray(places / total)
