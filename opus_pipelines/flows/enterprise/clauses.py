"""The clauses of a requirement: where its trigger ends, and what the reader of utterances says of the rest.

Each clause keeps the span of the requirement that it comes from.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING

from opus_pipelines.flows.enterprise.documents import CATCH, DOUNTIL, ELSE, ELSEIF, FOREACH, IF, TRY
from opus_pipelines.flows.text import clauses as text_clauses
from opus_pipelines.flows.text.clauses import MAX_UTTERANCE, Clause, UtteranceError, clauses_of
from opus_pipelines.language.grammar.modality import is_base
from opus_pipelines.language.word_stems import stem

if TYPE_CHECKING:
    from opus_pipelines.flows.enterprise.composer import Composer

_EARLY = 3  # pieces among which a trigger is looked for
_LEAST_TRIGGER = 2  # words of a trigger that its sentence's demand leaves
TRIGGER, STEP = "trigger", "step"
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|\([^()]*\)')
_BOUNDARY = re.compile(
    r"(?P<end>[;!?]+(?=\s|$)|\.+(?=\s+(?-i:[^a-z\s])|\s*$)|\s(?:->|=>|>>|→|⇒)\s|\s[-–—]\s|:(?=\s))|"
    r",(?=\s)(?:\s+(?:and|or|then|but)\b)*(?:\s+then\b)?|\s(?:and|then|but|&|\+)(?:\s+then\b)?(?=\s)",
    re.IGNORECASE,
)
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_TIME = re.compile(
    rf"\s*(?:at|on)?\s*(?:(?:every|each)\s+"
    rf"(?:(?:\d+|two|three|four|six|eight|twelve)\s+(?:hour|hr|minute|min|day|week)s?|"
    rf"hour|day|morning|night|evening|week|month|{_DAY})|nightly|daily|weekly|monthly|run once|once a day|{_DAY}s)"
    rf"(?:\s+(?:at\s+\d\d?(?::\d\d)?\s?(?:[ap]m)?|on\s+(?:day\s+\d+|{_DAY})))?\b",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"\s*(?:when(?:ever)?|once|as soon as|at the moment|every|each|after|on|upon|if|for|where|"
    r"nightly|daily|weekly|monthly|run once|"
    r"(?:some(?:body|one)|an?|the|new)\s.*\b(?:is|are|was|gets?|goes|becomes?|opens?|reports?|calls?|added|created|received)\b)\b",
    re.IGNORECASE,
)
# A sentence in which the trigger comes late: "what we want is that as soon as ...".
_LATE = re.compile(
    r"\s(?=(?:when(?:ever)?|as soon as|at the moment|once|(?:up)?on (?:the )?(?:creation|submission|arrival))\s)",
    re.IGNORECASE,
)
# What the sentence of a trigger goes on to demand, with who it is about: "the boss is asked to approve it".
_OF = r"(?:\s(?:of|in|who|that)(?:\s[\w']+){1,4}?)?"
_DEMANDS = (
    re.compile(
        r"\s(?:needs?|should|must|ha(?:s|ve) to|go(?:es)? to (?=(?:its|the|their)\s(?:\w+\s){1,2}(?:as|by|via)))\s?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\s(?=(?:the|its|their)\s\w+{_OF}\s"
        r"(?:(?:is|are) (?:to be\s|asked|told|informed|notified)|receives?|gets? an?))",
        re.IGNORECASE,
    ),
)
_HEADING = re.compile(
    r"(?:please|pls|req|trigger|when|do|action|step|task|build|background|story|flow|\W|\d)*", re.IGNORECASE
)
# What says more of the record that starts the flow: "and its state is New".
_STATE = re.compile(
    r"(?:(?:its|their|the|whose)\s(?:[\w-]+\s){1,3}?)?(?:is|are|was|has become)\s(?!to\s)", re.IGNORECASE
)
_ERROR = re.compile(r"\b(?:fails?|failed|throws?|errors?|failure|goes wrong)\b", re.IGNORECASE)
_OTHERWISE = re.compile(
    r"(?:if|when|in case) (?:not\b|no\b|(?:it is |they are )?(?:rejected|declined|denied)\b|"
    r"(?:it|they|he|she|this|that)\b.*\b(?:not|no|n't)$|(?:it|they|this|that) (?:is|are) not approved\b)",
    re.IGNORECASE,
)
_KINDS = {
    text_clauses.STEP: STEP,
    text_clauses.CONDITION: IF,
    text_clauses.LOOP: FOREACH,
    text_clauses.WHILE: DOUNTIL,
    text_clauses.ELSE: ELSE,
    text_clauses.START: IF,
}
_LEADING = re.compile(r"^[\s,;:]*(?:(?:and|then|but)\b[\s,]*)*", re.IGNORECASE)
_CHECK = re.compile(r"(?:check|see|find out|verify)\b", re.IGNORECASE)
_ASIDE = re.compile(r"\([^()]*\)")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Span:
    """A span of a requirement with what it is: the trigger, a step or flow logic.

    `said` is the clause as the reader of utterances writes it, `behind` says that logic stands behind its step, and
    `together` that the steps of its sentence are done at the same time.
    """

    text: str
    kind: str
    said: str = ""
    opens_sentence: bool = False
    behind: bool = False
    together: bool = False


def spans_of(text: str, reader: "Composer") -> list[Span]:
    """Returns the spans of a requirement in order; the first one is the trigger. Empty for a text without a word."""
    text = text[:MAX_UTTERANCE]
    first, last = _trigger(text, reader)
    if first == last:
        return []
    rest = text[last:]
    try:
        read = clauses_of(_ASIDE.sub(" ", rest))
    except UtteranceError:  # no word is left
        read = []
    spans = [Span(text[first:last], TRIGGER)]
    for number, (clause, span) in enumerate(zip(read, _placed(rest, read), strict=True)):
        alone = number + 1 == len(read) or read[number + 1].opens
        if alone and clause.kind == text_clauses.CONDITION and _CHECK.match(span):
            clause = replace(clause, kind=text_clauses.STEP, marker="", words=tuple(span.split()))
        spans += _spans(clause, span)
    return _with_steps(spans, reader)


def _spans(clause: Clause, span: str) -> list[Span]:
    occasion = clause.kind == text_clauses.START and not clause.marker  # "for audits:", "every Monday"
    kind = STEP if occasion else _KINDS[clause.kind]
    is_verb = is_base(clause.verb.lower())
    said = " ".join(filter(None, (clause.marker, clause.text if is_verb else " ".join(clause.words))))
    if kind == IF and clause.alternative:
        kind = ELSEIF
    elif kind == IF and _ERROR.search(said):
        kind = CATCH
    elif kind == IF and _OTHERWISE.match(said):
        kind = ELSE  # an IF where no condition stands before it
    own = Span(span, kind, said, clause.opens, clause.postfix, clause.together)
    if kind == STEP and "try" in clause.adverbs:
        return [replace(own, kind=TRY), replace(own, opens_sentence=False)]
    return [own]


def _with_steps(spans: Sequence[Span], reader: "Composer") -> list[Span]:
    """Returns the spans without the steps that ask for nothing; what they say belongs to the span before."""
    kept: list[Span] = [spans[0]]
    for span in spans[1:]:
        beside = span.kind == FOREACH and span.behind  # "email the owner of every asset"
        if beside or (span.kind == STEP and not reader.asks_for_step(span.text)):
            last = kept[-1]
            if beside:
                both = f"{last.text} {span.text}"
                kept[-1] = replace(last, text=both, said=both)
            elif len(kept) > 1 or not span.opens_sentence:
                kept[-1] = replace(last, text=f"{last.text}, {span.text}", said=f"{last.said}, {span.said}")
        else:
            kept.append(span)
    return kept


def _placed(text: str, read: Sequence[Clause]) -> list[str]:
    """Returns the part of a text that each clause comes from: from its first word to the first one of the next."""
    words = [(match.start(), stem(match[0].lower())) for match in _WORD.finditer(text)]
    said = [
        (number, stem(word.lower()))
        for number, clause in enumerate(read)
        for word in _WORD.findall(" ".join((*clause.adverbs, clause.marker, *clause.words)))
    ]
    matcher = SequenceMatcher(None, [word for _, word in said], [word for _, word in words], autojunk=False)
    starts: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        for n in range(block.size):
            starts.setdefault(said[block.a + n][0], words[block.b + n][0])
    begins = [len(text)]
    for number in reversed(range(len(read))):
        begins.insert(0, starts.get(number, begins[0]))
    begins[0] = 0
    return [_LEADING.sub("", text[start:end]).strip(" ,.;:-\n") for start, end in pairwise(begins)]


def _trigger(text: str, reader: "Composer") -> tuple[int, int]:
    """Returns where the trigger begins and ends. What its sentence demands is no part of it."""
    pieces = _pieces(text)
    if not pieces:
        return 0, 0
    last, first = _head(pieces, text, reader)
    start, end = pieces[first][0], pieces[last][1]
    for pattern in _DEMANDS:  # "changes that are created need approval"
        demand = pattern.search(text, start, end)
        is_whole = demand is not None and len(text[start : demand.start()].split()) >= _LEAST_TRIGGER
        if demand and is_whole and reader.asks_for_step(text[demand.end() : end]):
            return start, demand.start()
    for place in range(last + 1, len(pieces)):
        piece = text[slice(*pieces[place])]
        if "." in text[end : pieces[place][0]] or not (_STATE.match(piece) or reader.is_value(piece)):
            break
        end = pieces[place][1]
    return start, end


def _pieces(text: str) -> list[tuple[int, int]]:
    """The parts of a text between its punctuation marks and connectives."""
    hidden = _QUOTED.sub(lambda quoted: "\x01" * len(quoted[0]), text)
    pieces: list[tuple[int, int]] = []
    place = 0
    for cut in [*_BOUNDARY.finditer(hidden), None]:
        end = len(text) if cut is None else cut.start()
        place += len(text[place:end]) - len(text[place:end].lstrip())
        if text[place:end].strip(" .,;:!?"):
            late = _LATE.search(text, place, end)
            if len(pieces) < _EARLY and late is not None and not _OPENS.match(text[place:end]):
                pieces.append((place, late.start()))
                place = late.end()
            time = _TIME.match(text[place:end])  # "every 2 days search those that are open"
            if time is not None and text[place + time.end() : end].strip():
                pieces.append((place, place + time.end()))
                place += time.end()
            pieces.append((place, end))
        if cut is not None:
            place = cut.end()
    return pieces


def _head(pieces: list[tuple[int, int]], text: str, reader: "Composer") -> tuple[int, int]:
    """The last piece of the trigger, and its first one.

    It ends with the first piece that opens like a trigger, where no step stands before it. Headings ("Trigger:") and
    sentences before it that say no event are not part of it.
    """
    shown = [text[start:end] for start, end in pieces]
    first = next((n for n, piece in enumerate(shown[:-1]) if not _HEADING.fullmatch(piece)), 0)
    last = first
    for n in range(first, min(len(pieces), first + _EARLY)):
        if _TIME.match(shown[n]) or _OPENS.match(shown[n]):
            last = n
            break
        is_lead_in = shown[n].endswith(" that")
        if not is_lead_in and (reader.is_event(shown[n]) if n == first else reader.asks_for_step(shown[n])):
            break
    sentences = [n for n in range(first, last) if text[pieces[n][1] : pieces[n][1] + 1] in (".", "!", "?")]
    return last, max(sentences, default=first - 1) + 1
