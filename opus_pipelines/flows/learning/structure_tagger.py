"""A trained tagger of structure: averaged perceptron over sequences, with Viterbi search under the grammar of tags.

Collins 2002, "Discriminative training methods for hidden Markov models: theory and experiments with perceptron
algorithms", figure 1 and section 2.5 (averages). The features of a word are the words and word classes around it, and
the markers that precede it in the sentence. The tag of the word before it enters by the transitions.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.learning.structure_tags import TAGS, Tagged, may_follow
from opus_pipelines.flows.text import clause_words as lexicon
from opus_pipelines.flows.text.operations import operations_of_verb
from opus_pipelines.language.grammar.verbs import is_base, is_participle

if TYPE_CHECKING:
    from collections.abc import Collection

EPOCHS = 6
SEED = 31
_IMPOSSIBLE = -1e9
_PLACE = {tag: n for n, tag in enumerate(TAGS)}
_LEGAL = np.array([[0.0 if may_follow(one, other) else _IMPOSSIBLE for other in TAGS] for one in TAGS])
_FIRST = np.array([0.0 if may_follow(None, tag) else _IMPOSSIBLE for tag in TAGS])
_MARKERS = frozenset(
    [
        "if",
        "when",
        "whenever",
        "unless",
        "provided",
        "assuming",
        "supposing",
        "else",
        "otherwise",
        "while",
        "until",
        "each",
        "every",
    ]
)


class TaggerError(OpusError):
    """A tagger cannot be trained: there is no sentence with tags."""


@dataclass(frozen=True)
class StructureTagger:
    """Weights of features [features, tags] by their names, and of transitions [tags, tags]."""

    features: Mapping[str, int]
    weights: np.ndarray
    transitions: np.ndarray
    applications: frozenset[str] = field(default_factory=frozenset)

    def tagged(self, words: Sequence[str]) -> Tagged:
        """Returns a sentence with the tags of the highest score that the grammar allows."""
        tags, _ = _best(self._scores(words), self.transitions)
        return Tagged(tuple(words), tuple(TAGS[n] for n in tags))

    def margin(self, words: Sequence[str], other: Sequence[str]) -> float:
        """Returns by how much the best tags score above other ones of the sentence, for each word; 0 where equal."""
        scores = self._scores(words)
        _, best = _best(scores, self.transitions)
        places = [_PLACE[tag] for tag in other]
        own = sum(scores[n, place] for n, place in enumerate(places))
        own += sum(self.transitions[one, two] for one, two in pairwise(places))
        return max(0.0, float(best - own)) / max(1, len(words))

    def _scores(self, words: Sequence[str]) -> np.ndarray:
        rows = [
            [self.features[f] for f in names if f in self.features] for names in features_of(words, self.applications)
        ]
        return np.stack([self.weights[row].sum(axis=0) for row in rows])


def features_of(words: Sequence[str], applications: "Collection[str]" = ()) -> list[list[str]]:
    """Returns the names of the features of each word. `applications` are names in lower case as one word."""
    lower = [word.lower() for word in words]
    classes = [_class(word, applications) for word in lower]
    found, marker, since = [], "", 0
    for n, word in enumerate(lower):
        before, after = (lower[n - 1] if n else "<s>"), (lower[n + 1] if n + 1 < len(lower) else "</s>")
        kind_before = classes[n - 1] if n else "<s>"
        kind_after = classes[n + 1] if n + 1 < len(lower) else "</s>"
        kind_later = classes[n + 2] if n + 2 < len(lower) else "</s>"
        found.append(
            [
                "bias",
                f"w {word}",
                f"w-1 {before}",
                f"w+1 {after}",
                f"w-1 w {before} {word}",
                f"w w+1 {word} {after}",
                f"c {classes[n]}",
                f"c-1 c {kind_before} {classes[n]}",
                f"c c+1 {classes[n]} {kind_after}",
                f"c-1 c c+1 {kind_before} {classes[n]} {kind_after}",
                f"c c+1 c+2 {classes[n]} {kind_after} {kind_later}",
                f"marker {marker}",
                f"marker c {marker} {classes[n]}",
                f"marker comma {marker} {',' in lower[since:n]}",
                f"marker c-1 c {marker} {kind_before} {classes[n]}",
                f"first {n == 0} {classes[n]}",
            ]
        )
        if word in _MARKERS or word in (",", "then"):
            marker, since = (word if word in _MARKERS else f"{marker.split()[0] if marker else ''} ,"), n
    return found


def _class(word: str, applications: "Collection[str]") -> str:
    """The class of a word: that of a closed list, else what a verb or another word may be."""
    if not word[0].isalnum():
        return "quoted" if word[0] in "\"'" else word
    for name, words in _LISTS:
        if word in words:
            return name
    if word in applications:
        return "application"
    if word[0].isdigit():
        return "number"
    if is_base(word):
        known = "known " if operations_of_verb(word) else ""
        return f"{known}verb or noun" if word in lexicon.NOUNS else f"{known}verb"
    if word.endswith("s"):
        return "ends in s"
    return "participle" if is_participle(word) else "other"


_LISTS = (
    ("condition word", lexicon.CONDITION_WORDS),
    ("coordinator", lexicon.COORDINATORS),
    ("adverb", lexicon.ADVERBS - {"that"}),
    ("determiner", lexicon.DETERMINERS),
    ("preposition", lexicon.PREPOSITIONS),
    ("auxiliary", lexicon.AUXILIARIES),
)


def _best(scores: np.ndarray, transitions: np.ndarray) -> tuple[list[int], float]:
    """Viterbi: the places of the best tags, and their score."""
    allowed = transitions + _LEGAL
    worth = scores[0] + _FIRST
    back = []
    for row in scores[1:]:
        ways = worth[:, None] + allowed
        back.append(ways.argmax(axis=0))
        worth = ways.max(axis=0) + row
    place = int(worth.argmax())
    best, found = float(worth[place]), [place]
    for ways in reversed(back):
        place = int(ways[place])
        found.append(place)
    return found[::-1], best


def fit_tagger(
    examples: Sequence[tuple[Tagged, int]], applications: "Collection[str]" = (), epochs: int = EPOCHS
) -> StructureTagger:
    """Learns from sentences with their tags, each repeated as often as its number says.

    The same examples give the same weights. Raises TaggerError where there is none.
    """
    if not examples:
        raise TaggerError("no sentence with tags: there is nothing to train the tagger of structure on")
    draw = random.Random(SEED)
    names = frozenset(applications)
    places: dict[str, int] = {}
    sentences = []
    for tagged, times in examples:
        rows = [
            np.array([places.setdefault(name, len(places)) for name in word])
            for word in features_of(tagged.words, names)
        ]
        sentences += [(rows, [_PLACE[tag] for tag in tagged.tags])] * times
    weights, transitions = np.zeros((len(places), len(TAGS))), np.zeros((len(TAGS), len(TAGS)))
    late, late_transitions = np.zeros_like(weights), np.zeros_like(transitions)  # each change times its moment
    moment = 1
    for _ in range(epochs):
        draw.shuffle(sentences)
        for rows, gold in sentences:
            scores = np.stack([weights[row].sum(axis=0) for row in rows])
            made, _ = _best(scores, transitions)
            for n, (right, wrong) in enumerate(zip(gold, made, strict=True)):
                if right != wrong:
                    for place, sign in ((right, 1.0), (wrong, -1.0)):
                        weights[rows[n], place] += sign
                        late[rows[n], place] += sign * moment
                if n and (gold[n - 1], right) != (made[n - 1], wrong):
                    for pair, sign in (((gold[n - 1], right), 1.0), ((made[n - 1], wrong), -1.0)):
                        transitions[pair] += sign
                        late_transitions[pair] += sign * moment
            moment += 1
    return StructureTagger(places, weights - late / moment, transitions - late_transitions / moment, names)
