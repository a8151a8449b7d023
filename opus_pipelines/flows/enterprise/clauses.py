"""Cuts a requirement into clauses: spans of its text with what each is: the trigger, a step, or flow logic."""

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from opus_pipelines.flows.enterprise.documents import CATCH, DOUNTIL, ELSE, ELSEIF, FOREACH, IF, PARALLEL, TRY

_EARLY = 3  # clauses among which a trigger is looked for
_LEAST_TRIGGER = 2  # words of a trigger that its sentence's demand leaves
LONGEST_REQUIREMENT = 20_000  # characters of a requirement
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
_SUBJECT = re.compile(
    rf"\s(?=(?:the|its|their)\s\w+{_OF}\s(?:(?:is|are) (?:to be\s|asked|told|informed|notified)|receives?|gets? an?))",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:please|pls|req|trigger|when|do|action|step|task|build|background|story|flow|\W|\d)*", re.IGNORECASE
)
_THAT = re.compile(r"(?:(?:so )?that\s+)?", re.IGNORECASE)
_NO_STEP_AFTER = frozenset(
    [
        "a",
        "an",
        "the",
        "its",
        "their",
        "of",
        "is",
        "are",
        "be",
        "to",
        "no",
        "not",
        "for",
        "in",
        "on",
        "with",
        "has",
        "have",
        "had",
        "become",
        "was",
        "were",
    ]
)
# What says more of the record that starts the flow: "and its state is New".
_STATE = re.compile(
    r"(?:(?:its|their|the|whose)\s(?:[\w-]+\s){1,3}?)?(?:is|are|was|has become)\s(?!to\s)", re.IGNORECASE
)
_DEMAND = re.compile(
    r"\s(?:needs?|should|must|ha(?:s|ve) to|go(?:es)? to (?=(?:its|the|their)\s(?:\w+\s){1,2}(?:as|by|via)))\s?",
    re.IGNORECASE,
)
# What says why or how surely, and asks for nothing: "just to be safe", "as a precaution", "if possible".
_ASIDE = re.compile(
    r"\W*(?:just )?(?:(?:to be|be) (?:on the )?(?:safe|sure|clear|precise|fair|honest)(?: side)?|in case|"
    r"as a precaution|for (?:good measure|safety|completeness)|as (?:usual|always|agreed|discussed)|"
    r"if (?:at all )?possible|ideally|"
    r"of course|needless to say|by the way|in other words|so to speak|in short)\W*",
    re.IGNORECASE,
)
_ERROR = r"\b.*\b(?:fails?|throws?|errors?|goes wrong)\b"
_DECIDED = r"(?:in case of|upon|on|after|if) (?:an? )?(?:yes|no|approval|rejection|approved|rejected|declined)"
_NEGATED = r"if (?:it|they|he|she|this|that)\b.*\b(?:not|no|n't)$|if it is (?:rejected|declined|not approved)\b"
_FOLLOWING = r"do (?:these|the following) (?:in parallel|at the same time)"
_PATTERNS = (
    (CATCH, rf"(?:(?:and )?(?:if|when|should|in case){_ERROR}|in case of (?:an )?error|on (?:error|failure))"),
    (ELSEIF, r"(?:else|otherwise|or),? if\b"),
    (ELSE, rf"(?:otherwise|whereas|else|if not\b|{_NEGATED}|in (?:any|all) other cases?)"),
    (TRY, r"(?:please )?(?:try|attempt)\b"),
    (
        PARALLEL,
        rf"(?:in parallel|at the same time|simultaneously|{_FOLLOWING}|concurrently|"
        r"(?:\w+ ){1,4}(?:should )?happen in parallel)",
    ),
    (DOUNTIL, r"(?:repeat|keep|do|continue)\b.*\buntil\b|until\b"),
    (
        FOREACH,
        r"(?:for (?:each|every|all)\b|per \w+$|loop (?:over|through)|go (?:over|through) (?:them|each|all of them)|"
        r"iterate|in a loop|loop$|(\w+) (?:by|after) \1\b|.*\bone at a time\b)",
    ),
    (IF, rf"(?:(?:only )?if|should|provided|in case|unless|{_DECIDED}|when(?= (?:the|it|its|they)\b))\b"),
)
_LOGIC = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)


@dataclass(frozen=True)
class Span:
    """The characters `start` to `end` of a requirement, what they are, and whether a sentence begins with them."""

    start: int
    end: int
    text: str
    kind: str
    opens_sentence: bool = False


class StepReader(Protocol):
    """What must be known of a catalogue to cut a requirement."""

    def asks_for_step(self, text: str) -> bool:
        """Returns whether a text asks for a step."""
        ...

    def begins_step(self, text: str) -> bool:
        """Returns whether a text begins with the verb of a step."""
        ...

    def is_value(self, text: str) -> bool:
        """Returns whether a text is the name of a value and nothing more."""
        ...

    def is_event(self, text: str) -> bool:
        """Returns whether a text says when a flow starts."""
        ...


def clauses(text: str, reader: StepReader) -> list[Span]:
    """Returns the clauses of a requirement in order; the first one is the trigger.

    A clause that asks for no step belongs to the one before it.
    """
    pieces = _pieces(text[:LONGEST_REQUIREMENT])
    if not pieces:
        return []
    head, begin = _head(pieces, text, reader)
    first = replace(
        pieces[begin], end=pieces[head].end, text=text[pieces[begin].start : pieces[head].end], kind=TRIGGER
    )
    result = [first]
    if demand := _demand(result[0], text, reader):
        result = list(demand)
    for place, piece in enumerate(pieces[head + 1 :], head + 1):
        if _ASIDE.fullmatch(piece.text):
            continue
        kind = _logic(piece.text)
        ends = place + 1 == len(pieces) or pieces[place + 1].opens_sentence
        if ends and kind in (IF, ELSEIF, CATCH) and (middle := _step_after(piece.text, reader)):
            rest = Span(piece.start + middle, piece.end, piece.text[middle:], STEP)
            result += [replace(piece, end=piece.start + middle, text=piece.text[:middle], kind=kind), rest]
            continue
        is_state = not piece.opens_sentence and _STATE.match(piece.text)
        if len(result) == 1 and (is_state or reader.is_value(piece.text)):
            result[0] = replace(result[0], end=piece.end, text=text[result[0].start : piece.end])
            continue
        if kind is None and not reader.asks_for_step(piece.text):
            last = result[-1]
            if len(result) > 1 or not piece.opens_sentence:
                result[-1] = replace(last, end=piece.end, text=text[last.start : piece.end])
            continue
        result += _without_logic(replace(piece, kind=kind or STEP), reader)
    return result


def _step_after(text: str, reader: StepReader) -> int:
    """Where a step begins in a condition that no comma ends: "if it is rejected close it"; 0: nowhere.

    A step begins with a verb in its plain form; what follows an article or a form of "be" is none.
    """
    given = list(re.finditer(r"[^\s]+", text))
    for before, word in list(pairwise(given))[1:]:
        plain = word[0].isalpha() and not word[0].endswith(("ed", "ing", "s"))
        if plain and before[0].lower() not in _NO_STEP_AFTER and reader.begins_step(word[0]):
            return word.start()
    return 0


def _demand(trigger: Span, text: str, reader: StepReader) -> list[Span]:
    """The trigger apart from the step that its sentence demands: "changes that are created need approval"."""
    for demand in (_DEMAND.search(trigger.text), _SUBJECT.search(trigger.text)):
        is_whole = demand is not None and len(trigger.text[: demand.start()].split()) >= _LEAST_TRIGGER
        if demand is not None and is_whole and reader.asks_for_step(trigger.text[demand.end() :]):
            break
    else:
        return []
    middle = trigger.start + demand.start()
    step = trigger.start + demand.end()
    return [
        replace(trigger, end=middle, text=text[trigger.start : middle]),
        Span(step, trigger.end, text[step : trigger.end], STEP),
    ]


def _pieces(text: str) -> list[Span]:
    hidden = _QUOTED.sub(lambda quoted: "\x01" * len(quoted[0]), text)
    pieces: list[Span] = []
    place, opens = 0, True
    for cut in [*_BOUNDARY.finditer(hidden), None]:
        end = len(text) if cut is None else cut.start()
        while place < end and text[place].isspace():
            place += 1
        if text[place:end].strip(" .,;:!?"):
            piece = Span(place, end, text[place:end], STEP, opens)
            late = _LATE.search(piece.text) if len(pieces) < _EARLY and not _OPENS.match(piece.text) else None
            if late is not None:
                middle = place + late.end()
                pieces.append(replace(piece, end=place + late.start(), text=text[place : place + late.start()]))
                piece = Span(middle, end, text[middle:end], STEP)
            pieces += _with_time(piece)
            opens = False
        if cut is not None:
            place = cut.end()
            opens = opens or cut["end"] is not None
    return pieces


def _with_time(piece: Span) -> list[Span]:
    """A clause that begins with a time, cut behind it: "every 2 days search those that are open"."""
    time = _TIME.match(piece.text)
    if time is None or not piece.text[time.end() :].strip():
        return [piece]
    middle = piece.start + time.end()
    rest = piece.text[time.end() :]
    blank = len(rest) - len(rest.lstrip())
    return [
        replace(piece, end=middle, text=time[0]),
        Span(middle + blank, piece.end, rest.lstrip(), STEP),
    ]


def _head(pieces: list[Span], text: str, reader: StepReader) -> tuple[int, int]:
    """The last piece of the trigger, and its first one.

    It ends with the first piece that opens like a trigger, where no step stands before it. Headings ("Trigger:") and
    sentences before it that say no event are not part of it.
    """
    first = next((n for n, piece in enumerate(pieces[:-1]) if not _HEADING.fullmatch(piece.text)), 0)
    last = first
    for n in range(first, min(len(pieces), first + _EARLY)):
        piece = pieces[n]
        if _TIME.match(piece.text) or _OPENS.match(piece.text):
            last = n
            break
        is_lead_in = piece.text.endswith(" that")
        if not is_lead_in and (reader.is_event(piece.text) if n == first else reader.asks_for_step(piece.text)):
            break
    sentences = [n for n in range(first, last) if text[pieces[n].end : pieces[n].end + 1] in (".", "!", "?")]
    return last, max(sentences, default=first - 1) + 1


def _logic(text: str) -> str | None:
    text = _THAT.sub("", text.strip(), count=1)
    return next((kind for kind, pattern in _LOGIC if pattern.match(text) or (kind == FOREACH and _late(text))), None)


def _late(text: str) -> bool:
    return bool(re.search(r"\bone by one\b", text, re.IGNORECASE))


def _without_logic(clause: Span, reader: StepReader) -> list[Span]:
    """The logic at the beginning of a clause apart from the step behind it: "otherwise assign it to ..."."""
    cuts = {
        ELSE: rf"(?:whereas )?(?:otherwise|else|if not|if it is (?:rejected|declined|not approved)|{_DECIDED})\b",
        IF: rf"{_DECIDED}\b",
        TRY: r"(?:please )?(?:try|attempt)(?: to)?\b",
        PARALLEL: r"(?:in parallel|at the same time|simultaneously|concurrently)\b",
        FOREACH: r"(?:for (?:each|every|all)(?: (?:of )?(?:them|one|these|those|\w+))?|per \w+|in a loop|"
        r"(\w+) (?:by|after) \1)\b",
        CATCH: r"(?:in case of an error|if that fails|on error|on failure)\b",
    }
    pattern = cuts.get(clause.kind)
    logic = re.match(rf"{_THAT.pattern}(?:{pattern})", clause.text, re.IGNORECASE) if pattern else None
    rest = clause.text[logic.end() :] if logic else ""
    if logic is None or not reader.asks_for_step(rest):
        return [clause]
    middle = clause.start + logic.end()
    blank = len(rest) - len(rest.lstrip())
    inner = rest.lstrip()
    kind = _logic(inner) or STEP
    return [
        replace(clause, end=middle, text=logic[0]),
        Span(middle + blank, clause.end, inner, kind),
    ]
