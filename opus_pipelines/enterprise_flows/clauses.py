"""Cuts a requirement into clauses: spans of its text with what each is: the trigger, a step, or flow logic."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from opus_pipelines.enterprise_flows.documents import CATCH, DOUNTIL, ELSE, ELSEIF, FOREACH, IF, PARALLEL, TRY

LONGEST = 20_000  # characters of a requirement
TRIGGER, STEP = "trigger", "step"
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|\([^()]*\)')
_BOUNDARY = re.compile(
    r"(?P<end>[.;!?]+(?=\s|$)|\s->\s|\s[-–—]\s|:(?=\s))|,(?=\s)(?:\s+(?:and|or|then|but)\b)*(?:\s+then\b)?|\s(?:and|then|but)(?:\s+then\b)?(?=\s)",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\s*(?:at|on)?\s*(?:(?:every|each)\s+(?:(?:\d+|two|three|four|six|eight|twelve)\s+(?:hour|minute|day|week)s?|hour|day|"
    r"morning|night|evening|week|month|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|nightly|daily|weekly|monthly|"
    r"run once)"
    r"(?:\s+(?:at\s+\d\d?:\d\d|on\s+(?:day\s+\d+|(?:mon|tues|wednes|thurs|fri|satur|sun)day)))?\b",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"\s*(?:when(?:ever)?|once|as soon as|every|each|after|on|upon|if|for|nightly|daily|weekly|monthly|run once|"
    r"(?:some(?:body|one)|an?|the|new)\s.*\b(?:is|are|was|gets?|goes|becomes?|opens?|reports?|calls?|added|created|received)\b)\b",
    re.IGNORECASE,
)
# What says more of the record that starts the flow: "and its state is New".
_STATE = re.compile(r"(?:(?:its|their|the|whose)\s(?:[\w-]+\s){1,3}?)?(?:is|are|was|has become)\s", re.IGNORECASE)
_DEMAND = re.compile(r"\s(?:needs?|should|must|ha(?:s|ve) to)\s", re.IGNORECASE)
_ERROR = r"\b.*\b(?:fails?|throws?|errors?|goes wrong)\b"
_NEGATED = r"if (?:it|they|he|she|this|that)\b.*\b(?:not|no|n't)$|if it is (?:rejected|declined|not approved)\b"
_FOLLOWING = r"do (?:these|the following) (?:in parallel|at the same time)"
_PATTERNS = (
    (CATCH, rf"(?:(?:and )?(?:if|when|should|in case){_ERROR}|in case of (?:an )?error|on (?:error|failure))"),
    (ELSEIF, r"(?:else|otherwise|or),? if\b"),
    (ELSE, rf"(?:otherwise|else|if not\b|{_NEGATED}|in (?:any|all) other cases?)"),
    (TRY, r"(?:please )?(?:try|attempt)\b"),
    (PARALLEL, rf"(?:in parallel|at the same time|simultaneously|{_FOLLOWING}|concurrently)"),
    (DOUNTIL, r"(?:repeat|keep|do|continue)\b.*\buntil\b|until\b"),
    (
        FOREACH,
        r"(?:for (?:each|every|all)\b|per \w+$|loop (?:over|through)|go (?:over|through) (?:them|each|all of them)|"
        r"iterate|one by one)",
    ),
    (IF, r"(?:if|should|provided|in case|unless|upon (?:approval|rejection)|when(?= (?:the|it|its|they)\b))\b"),
)
_LOGIC = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)


@dataclass(frozen=True)
class Clause:
    """The characters `start` to `end` of a requirement, what they are, and whether a sentence begins with them."""

    start: int
    end: int
    text: str
    kind: str
    opens_sentence: bool = False


def clauses(text: str, is_step: Callable[[str], bool]) -> list[Clause]:
    """Returns the clauses of a requirement in order; the first one is the trigger.

    `is_step` says whether a text asks for a step; a clause that does not belongs to the one before it.
    """
    found = _pieces(text[:LONGEST])
    if not found:
        return []
    head = _head(found, is_step)
    first = replace(found[0], end=found[head].end, text=text[found[0].start : found[head].end], kind=TRIGGER)
    result = [first]
    if demand := _demand(result[0], text, is_step):
        result = list(demand)
    for piece in found[head + 1 :]:
        kind = _logic(piece.text)
        if len(result) == 1 and not piece.opens_sentence and _STATE.match(piece.text):
            result[0] = replace(result[0], end=piece.end, text=text[result[0].start : piece.end])
            continue
        if kind is None and not is_step(piece.text):
            last = result[-1]
            if len(result) > 1 or not piece.opens_sentence:
                result[-1] = replace(last, end=piece.end, text=text[last.start : piece.end])
            continue
        result += _without_logic(replace(piece, kind=kind or STEP), is_step)
    return result


def _demand(trigger: Clause, text: str, is_step: Callable[[str], bool]) -> list[Clause]:
    """The trigger apart from the step that its sentence demands: "changes that are created need approval"."""
    found = _DEMAND.search(trigger.text)
    if found is None or not is_step(trigger.text[found.end() :]):
        return []
    middle = trigger.start + found.start()
    step = trigger.start + found.end()
    return [
        replace(trigger, end=middle, text=text[trigger.start : middle]),
        Clause(step, trigger.end, text[step : trigger.end], STEP),
    ]


def _pieces(text: str) -> list[Clause]:
    hidden = _QUOTED.sub(lambda found: "\x01" * len(found[0]), text)
    pieces: list[Clause] = []
    place, opens = 0, True
    for cut in [*_BOUNDARY.finditer(hidden), None]:
        end = len(text) if cut is None else cut.start()
        while place < end and text[place].isspace():
            place += 1
        if text[place:end].strip(" .,;:!?"):
            pieces += _with_time(Clause(place, end, text[place:end], STEP, opens))
            opens = False
        if cut is not None:
            place = cut.end()
            opens = opens or cut["end"] is not None
    return pieces


def _with_time(piece: Clause) -> list[Clause]:
    """A clause that begins with a time, cut behind it: "every 2 days search those that are open"."""
    time = _TIME.match(piece.text)
    if time is None or not piece.text[time.end() :].strip():
        return [piece]
    middle = piece.start + time.end()
    rest = piece.text[time.end() :]
    blank = len(rest) - len(rest.lstrip())
    return [
        replace(piece, end=middle, text=time[0]),
        Clause(middle + blank, piece.end, rest.lstrip(), STEP),
    ]


def _head(pieces: list[Clause], is_step: Callable[[str], bool]) -> int:
    """The last piece of the trigger: the first that opens like one, where no step stands before it."""
    for n, piece in enumerate(pieces[:3]):
        if _TIME.match(piece.text) or _OPENS.match(piece.text):
            return n
        if n and is_step(piece.text):
            break
    return 0


def _logic(text: str) -> str | None:
    text = text.strip()
    return next((kind for kind, pattern in _LOGIC if pattern.match(text) or (kind == FOREACH and _late(text))), None)


def _late(text: str) -> bool:
    return bool(re.search(r"\bone by one\b", text, re.IGNORECASE))


def _without_logic(clause: Clause, is_step: Callable[[str], bool]) -> list[Clause]:
    """The logic at the beginning of a clause apart from the step behind it: "otherwise assign it to ..."."""
    cuts = {
        ELSE: r"(?:otherwise|else|if not|if it is (?:rejected|declined|not approved))\b",
        IF: r"upon (?:approval|rejection)\b",
        TRY: r"(?:please )?(?:try|attempt)(?: to)?\b",
        PARALLEL: r"(?:in parallel|at the same time|simultaneously|concurrently)\b",
        FOREACH: r"(?:for (?:each|every|all)(?: (?:of )?(?:them|one|these|those|\w+))?|per \w+)\b",
        CATCH: r"(?:in case of an error|if that fails|on error|on failure)\b",
    }
    pattern = cuts.get(clause.kind)
    found = re.match(pattern, clause.text, re.IGNORECASE) if pattern else None
    rest = clause.text[found.end() :] if found else ""
    if found is None or not is_step(rest):
        return [clause]
    middle = clause.start + found.end()
    blank = len(rest) - len(rest.lstrip())
    inner = rest.lstrip()
    kind = _logic(inner) or STEP
    return [
        replace(clause, end=middle, text=found[0]),
        Clause(middle + blank, clause.end, inner, kind),
    ]
