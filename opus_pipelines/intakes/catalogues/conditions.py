"""Finds the conditions under which clauses of a procedure hold: "if a key is lost", "claims above CHF 5,000".

When something is done ("when the owner arrives") is no condition here, unless the clause speaks of what need not be
("when a key is lost"). The words are those of English procedures; the rules are this project's own.
"""

import re

from opus_pipelines.intakes.catalogues.facts import IMPERATIVES, may_be_noun


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOST_OF_SCOPE = 3  # words of a note in brackets that says for which cases a step holds
_NO_SCOPE = IMPERATIVES | _words(
    "all any both each every few in its many no of one on our per see some the their these three two with"
)
MOST_BEFORE = 4  # words of a subject before the amount that narrows it
_CONDITIONAL = re.compile(
    r"^(?:only\s+)?(?:if|unless|except\s+(?:where|if|when|in|for)|in case|provided|where|"
    r"should\s+(?:a|an|the|this|any|there))\b|"
    r"^only\s+(?:for|in|with|when)\b",
    re.IGNORECASE,
)
_FOR = re.compile(
    r"^(?:for|in the case of)\s+(?!(?:this|that|these|it|all|any|every|each|both|example|instance|now|which|"
    r"(?:the\s+)?(?:first|second|time|purpose|sake|rest|safety|security)|\w+\s+reasons?|\d)\b)\w",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\s(?:that|which|who|whose|where)\s", re.IGNORECASE)
_FINITE = re.compile(r"\b(?:is|are|was|were|must|shall|should|may|can|will|has|have|needs?|goes|go)\b", re.IGNORECASE)
_QUESTION_WORD = re.compile(r"(?:who|what|why|how|which|where|when)\b", re.IGNORECASE)
_IN_CASE = re.compile(
    r"\b(?:in (?:case|the event) of (?:[\w-]+\s?){1,4}|on request|(?:if|where|when|as) (?:necessary|needed|required|"
    r"applicable|appropriate|requested|wanted))$",
    re.IGNORECASE,
)
_WHEN = re.compile(r"^(?:only\s+)?when(?:ever)?\b", re.IGNORECASE)
_NEED_NOT_BE = re.compile(r"\b(?:a|an|no|not|any|too|more|less|\d[\d.,]*)\b", re.IGNORECASE)
_AMOUNT_CONDITION = re.compile(
    r"\b(?:above|over|below|under|more than|less than|exceeding)\s+(?:[A-Z]{3}\s|[€$£])?\s?\d[\d.,]*"
    r"(?:\s?(?:%|°C|m|km|kg|t|days|hours|euros|dollars|years|[A-Z]{3})\b)?",
)
_VERB = re.compile(
    r",?\s(?:\w+\s){0,3}?(?:need|needs|must|shall|should|has|have|is|are|require|requires|go|goes)\b", re.IGNORECASE
)
_PERMISSION = re.compile(r"^(?!.*\b(?:you|we|i)\s+m)(?:[a-z-]+\s+){1,8}(?:may|might)\s+(?!not\b)", re.IGNORECASE)
_SENTENCE_VERB = r"(?:is|are|was|were|has|have|does|do|\w{3,}s|\w+ed)"
# Where such a clause begins in the middle of another one: "the lock is changed where a key is lost".
INNER = re.compile(
    rf"(?<!\bexcept)\s(?=(?:only\s+|except\s+)?(?:if|unless|in case|where)\s+(?:[\w'’-]+\s+){{1,6}}?"
    rf"{_SENTENCE_VERB}\b)|"
    r"\s(?=only\s+(?:for|in|with)\s)",
    re.IGNORECASE,
)
# Behind these verbs such a clause says what is to be found out: "check if it is complete".
_FINDS_OUT = re.compile(
    r"\b(?:ask|assess|check|clarif|confirm|decid|determin|establish|examin|find|know|look|see|show|tell|test|verif|"
    r"note|record|stat)\w*",
    re.IGNORECASE,
)


def inner_parts(clause: str) -> list[str]:
    """Returns a clause cut where a condition begins in it; whole where that says what is to be found out."""
    parts = INNER.split(clause, maxsplit=1)
    return parts if len(parts) > 1 and not _FINDS_OUT.search(parts[0]) else [clause]


def is_conditional(clause: str) -> bool:
    """Tells whether a subordinate clause says whether something is done, and not only when."""
    if clause.endswith("?"):  # "Fridge over 7 degrees? Call the technician"
        return not _QUESTION_WORD.match(clause)
    if is_scope_of(clause):
        return True
    return bool(_CONDITIONAL.match(clause) or (_WHEN.match(clause) and _NEED_NOT_BE.search(clause)))


def own_condition(clause: str) -> str:
    """Returns what narrows the subject of a clause, or the clause where it permits something; "" where neither does."""
    if _PERMISSION.match(clause):
        return clause
    match = _AMOUNT_CONDITION.search(clause)
    if match and len(clause[: match.start()].split()) <= MOST_BEFORE and _VERB.match(clause, match.end()):
        return match[0]
    named = _IN_CASE.search(clause)
    return named[0] if named else ""


def is_scope_of(clause: str) -> bool:
    """Tells whether a clause ahead of another one says for which cases that holds: "for those who have left"."""
    narrowed = _RELATIVE.split(clause, maxsplit=1)[0]
    return bool(_FOR.match(clause)) and not _FINITE.search(narrowed)


def is_scope(text: str) -> bool:
    """Tells whether a note in brackets behind a step says for which cases it holds: "(device trials)".

    It is the plural of a thing in at most `MOST_OF_SCOPE` words of letters, with an adjective or a noun before it.
    """
    words = text.split()
    if not 1 < len(words) <= MOST_OF_SCOPE or not re.fullmatch(r"[A-Za-z]+-?[a-z]*", words[0]):
        return False
    first = words[0].casefold()
    is_plural = bool(re.fullmatch(r"[a-z]{2,}[^s\W]s", words[-1])) and may_be_noun(words[-1])
    return is_plural and first not in _NO_SCOPE and may_be_noun(first)


def without_joint(condition: str) -> str:
    """Returns a condition without the words that join it: "a key is lost" of "only where a key is lost"."""
    return re.sub(_CONDITIONAL.pattern + r"|^(?:only\s+)?when(?:ever)?\b", "", condition, count=1, flags=re.I).strip()
