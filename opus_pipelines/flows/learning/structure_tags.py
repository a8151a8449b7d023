"""The tags that a word of an utterance may have, and the way between tags and clauses.

A clause is a marker ("if", "for each") and its words, or a step that begins with its verb, or a step that shares the
verb of the step before it. Words between clauses are `OUT`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from opus_pipelines.flows.text.clause_words import COORDINATORS, PREPOSITIONS
from opus_pipelines.flows.text.clauses import CONDITION, ELSE, LOOP, STEP, WHILE, Clause, last_verb

OUT = "out"
VERB, SHARED, WITHIN = "step: verb", "step: shared verb", "step"
FRONTED = "step: fronted"  # "in Slack, search for it": words that belong to the step behind them
ALTERNATIVE = "alternative"
TAGS = (
    OUT,
    VERB,
    SHARED,
    WITHIN,
    FRONTED,
    *(f"{kind}{part}" for kind in (CONDITION, ALTERNATIVE, LOOP, WHILE) for part in (": marker", "")),
    f"{ELSE}: marker",
)


def may_follow(one: str | None, other: str) -> bool:
    """Tells whether a tag may stand behind another one, None for the begin of a sentence: the grammar of tags."""
    if other == WITHIN:
        return one in (VERB, SHARED, WITHIN)
    if other == SHARED:
        return one is not None
    if other in (CONDITION, ALTERNATIVE, LOOP, WHILE):
        return one in (other, f"{other}: marker")
    return True


@dataclass(frozen=True)
class Tagged:
    """The words of a sentence with their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def tags_of(sentence: Sequence[str], clauses: Sequence[Clause]) -> Tagged | None:
    """Returns the tags by which clauses read a sentence; None where a clause has words in another order than it."""
    lower = [word.lower() for word in sentence]
    tags, at = [OUT] * len(lower), 0
    for number, clause in enumerate(clauses):
        marker, words = clause.marker.split(), [word.lower() for word in clause.words]
        behind = clauses[number + 1] if number + 1 < len(clauses) else None
        if clause.kind == STEP and behind is not None and (added := _place_of_loop(behind)):
            words = words[: len(words) - len(added)]
        found = _found(lower, [*marker, *words], at)
        if found is None and clause.kind == STEP:
            for size in range(1, len(words)):
                front = _found(lower, words[-size:], at)
                found = _found(lower, words[:-size], front + size) if front is not None else None
                if front is not None and found is not None:
                    tags[front : front + size] = [FRONTED] * size
                    words = words[:-size]
                    break
        if found is None:
            return None
        tags[found : found + len(marker)] = [f"{_kind(clause)}: marker"] * len(marker)
        first = found + len(marker)
        tags[first : first + len(words)] = [WITHIN if clause.kind == STEP else _kind(clause)] * len(words)
        if clause.kind == STEP:
            tags[first] = SHARED if clause.shares_verb else VERB
        at = first + len(words)
    legal = all(may_follow(one, other) for one, other in zip([None, *tags], tags, strict=False))
    return Tagged(tuple(sentence), tuple(tags)) if legal else None


def _found(words: Sequence[str], wanted: Sequence[str], start: int) -> int | None:
    """The first place from `start` on where the wanted words stand in a row."""
    places = range(start, len(words) - len(wanted) + 1)
    return next((n for n in places if words[n : n + len(wanted)] == wanted), None) if wanted else None


def _place_of_loop(clause: Clause) -> tuple[str, ...]:
    """The words that a loop behind a step adds to it: "create an issue" + "for each lead" → "for lead"."""
    preposition = clause.marker.partition(" ")[0]
    is_place = clause.kind == LOOP and clause.postfix and preposition in PREPOSITIONS
    return (preposition, *clause.words) if is_place else ()


def _kind(clause: Clause) -> str:
    return ALTERNATIVE if clause.alternative else clause.kind


def clauses_from(sentences: Sequence[Tagged]) -> list[Clause]:
    """Returns the clauses that tags say, in their order."""
    found: list[Clause] = []
    for number, sentence in enumerate(sentences):
        own: list[Clause] = []
        skipped: list[str] = []
        fronted: list[str] = []
        for segment in _segments(sentence):
            if segment.kind == FRONTED:
                fronted += segment.words
                continue
            if segment.kind == OUT:
                skipped += [word.lower() for word in segment.words]
                continue
            clause = _clause(segment, last_verb([*found, *own]))
            behind = bool(own) and own[-1].kind == STEP and "," not in skipped
            if segment.kind in (CONDITION, ALTERNATIVE):
                behind = behind and segment.is_last
            elif segment.kind in (LOOP, WHILE):
                behind = behind and (segment.is_last or not COORDINATORS.intersection(skipped))
            else:
                behind = False
            adverbs = tuple(skipped)
            if clause.kind == STEP:
                clause, fronted = replace(clause, words=(*clause.words, *fronted)), []
            own.append(replace(clause, adverbs=adverbs, sentence=number, opens=not own, postfix=behind))
            skipped = []
        for place, (step, loop) in enumerate(pairwise(own)):
            if step.kind == STEP:
                own[place] = replace(step, words=(*step.words, *_place_of_loop(loop)))
        found += own
    return found


@dataclass
class _Segment:
    """Words of one clause: its kind, its marker, its words, and whether only words outside of clauses follow it."""

    kind: str
    marker: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    is_last: bool = False


def _clause(segment: _Segment, verb: str) -> Clause:
    """One clause; `verb` is the verb of the step before it."""
    words, marker = tuple(segment.words), " ".join(segment.marker).lower()
    if segment.kind == SHARED and verb:
        return Clause(STEP, words, verb=verb, shares_verb=True)
    if segment.kind in (VERB, SHARED):
        return Clause(STEP, words, verb=words[0])
    if segment.kind == ALTERNATIVE:
        return Clause(CONDITION, words, marker=marker, alternative=True)
    return Clause(segment.kind, words, marker=marker)


def _segments(sentence: Tagged) -> list[_Segment]:
    found: list[_Segment] = []
    before: str | None = None
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        is_marker = tag.endswith(": marker")
        if not found or tag in (VERB, SHARED, FRONTED, OUT) or (is_marker and before != tag):
            found.append(_Segment(tag.removesuffix(": marker")))
        (found[-1].marker if is_marker else found[-1].words).append(word)
        before = tag
    for segment in [segment for segment in found if segment.kind not in (OUT, FRONTED)][-1:]:
        segment.is_last = True
    return found
