"""Tells facts and conditions from instructions in the clauses of a procedure.

An instruction has an imperative, a verb of obligation, a passive or an active verb with an action. A fact has a verb of
state: "is" without a participle, "has", "costs", "contains". Where it is not certain, a clause is no fact, because a
fact asks for no step. The words are those of English procedures; the rules are this project's own.

Finds the conditions under which clauses of a procedure hold: "if a key is lost", "claims above CHF 5,000".

When something is done ("when the owner arrives") is no condition here, unless the clause speaks of what need not be
("when a key is lost"). The words are those of English procedures; the rules are this project's own.
"""

import re
from functools import lru_cache
from itertools import pairwise

from lemminflect import getAllLemmas

from opus_pipelines.language.word_stems import is_irregular_participle, word_set

MOST_OF_SUBJECT = 9  # words before the verb of a fact
MOST_WITHOUT_ARTICLE = 3  # words before the verb where none of them is an article: longer ones may hold a verb
_OBLIGED = re.compile(
    r"\b(?:must|shall|should|ought|ha(?:s|ve|d) to|needs?|(?:is|are) to|oblige[ds]?|obligatory|required?|requires|"
    r"necessary|mandatory|compulsory|essential|vital|important|imperative|indispensable|crucial|due|advisable|"
    r"recommended|a must|please|forget|mak(?:e|es|ing) sure|ensur\w+|responsible|accountable|in charge|will|by)\b",
    re.IGNORECASE,
)
_BE = word_set("is are was were")
_HAVE = word_set("has have had")
_STATE = word_set(
    """
    belongs belong consists consist contains contain cost costs depends depend differs earns equals exists lasts
    means remain remains
"""
)
_TAKE = word_set("take takes")
_OF_THINGS = {"applies": word_set("to only in"), "lists": word_set("what which how")}  # "the nurse applies a bandage"
_VERBS = _BE | _HAVE | _STATE | _TAKE | _OF_THINGS.keys()
_LASTS = re.compile(
    r"^(?:(?:about|around|at least|up to|roughly|between|only)\s+)?(?:\S+\s+(?:to|and|or)\s+)?\S+\s+(?:working\s+)?"
    r"(?:second|minute|hour|day|week|month|year)s?\b"
)
# "it is his job to check"
_TO_DO = re.compile(r"\bto (?!(?:the|a|an|this|that|all|each|every|its|his|her|their|our|your)\b)[a-z]{2,}")
_WHERE_OR_WHEN = word_set("after at before by during in on through to until via within")  # "delivery is at noon"
_DONE_WITH_HAVE = word_set("call chat check conversation discussion interview look meeting talk word")  # "has a look"
_AMOUNT = re.compile(r"\d|^(?:about|between|less|more|only|roughly|up|some|two|three|four|five|six|seven|ten)$")
_ARTICLES = word_set(
    """
    a an the this that these those each every any all no some most many few one two three our your its his her
    their it he she they we nobody
"""
)
_QUANTITIES = word_set("most many few")  # what holds of most cases describes, and asks for nothing
_PREPOSITIONS = word_set("above at below by for from in of on over than to under with without")
_LINKS = word_set("that whether if who which what when where how why until")
_WORK = word_set("step task thing action measure duty job")
_ORDINALS = word_set("first next then last finally second third")
_ACTION = re.compile(r"(?:tion|sion|ment|ance|ence|ing)s?$|^(?:approv|arriv|dispos|refus|remov|renew)als?$")
_ROLE = re.compile(
    r"\b(?:agent|assistant|captain|clerk|crew|department|desk|director|doctor|driver|engineer|inspector|manager|nurse|"
    r"office|officer|operator|physician|secretary|staff|supervisor|team|technician|warehouse)s?$",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"^(?:who|what|why|how|which|where|when)\b[^?]*\?$", re.IGNORECASE)
IMPERATIVES = word_set(
    """
    add ask assign book call check close confirm copy do enter get give have inform keep let make note open pay
    print put read record report see send set sign take tell test use verify wait write
"""
)
_PARTICIPLE_ENDS = ("ed", "en", "wn", "ught", "ound", "elt", "ept", "ent", "ost", "old")
_ADVERBS = word_set("not also then always usually mostly only often now already both still again")
_LABEL = re.compile(
    r"^(?:(?:document|process|policy)\s+)?(?:owner|author|version|revision|status|date|scope|purpose|"
    r"valid (?:from|until)|last (?:reviewed|updated|changed|modified)|approved by|reviewed by|"
    r"effective(?: from| date)?)\s*(?::|\d|$)",
    re.IGNORECASE,
)
_SALUTATION = re.compile(
    r"^(?:dear|hello|hi|thanks?|best|kind|many|greetings|regards|cheers|sincerely|yours)\b[^.:;]*$", re.IGNORECASE
)


_REFERENCE = re.compile(
    r"^(?:see|cf\.?|as (?:in|per)|refer to|according to|under)\s+(?:also\s+|the\s+)?"
    r"(?:§|\d|annex|appendix|article|chapter|clause|form|page|section|table|[A-Z]{2,}-?\d)",
    re.IGNORECASE,
)


def is_label(text: str) -> bool:
    """Tells whether a sentence is about the document ("Last reviewed: May 2024"), greets its reader, or asks."""
    bare = text.strip()
    words = bare.split()
    return bool(_LABEL.match(bare) or _QUESTION.match(bare)) or (
        len(words) <= 4 and bool(_SALUTATION.match(bare.rstrip(",!. ")))
    )


@lru_cache(maxsize=8192)
def may_be_noun(word: str) -> bool:
    """Tells whether a lower-case word may be a noun or an adjective by the dictionary of lemminflect."""
    return not {"NOUN", "PROPN", "ADJ"}.isdisjoint(getAllLemmas(word))


def is_reference(text: str) -> bool:
    """Tells whether a note in brackets only refers to another place of the documents: "(see 4.1 for broken seals)"."""
    return bool(_REFERENCE.match(text.strip()))


def is_fact(clause: str) -> bool:
    """Tells whether a clause certainly states what is, and not what is done."""
    words = [word.strip(",.;:!?()\"'") for word in clause.casefold().split()]
    at = next((n for n, word in enumerate(words) if n and word in _VERBS), None)
    if at is None or _OBLIGED.search(clause) or not _is_subject(words[:at]):
        return False
    told = words[at + 1 :]
    while told and (told[0] in _ADVERBS or told[0].endswith("ly")):
        told = told[1:]
    if not told:
        return False
    verb, subject = words[at], words[:at]
    if verb in _TAKE:
        return bool(_LASTS.match(" ".join(told)))
    if verb in _STATE or verb in _OF_THINGS:
        return verb in _STATE or told[0] in _OF_THINGS[verb]
    if verb in _HAVE:
        return not any(map(is_participle, told)) and _DONE_WITH_HAVE.isdisjoint(told)
    if subject[0] in _QUANTITIES:
        return True
    if _TO_DO.search(" ".join(told)):
        return False
    if told[0] in _ARTICLES or _AMOUNT.search(told[0]):
        return not (subject[0].endswith("ing") and (told[0] == "the" or not _WORK.isdisjoint(told)))
    if is_participle(told[0]) or told[0].endswith("ing") or told[0] in _WHERE_OR_WHEN:
        return False
    return not any(_ACTION.search(word) for word in subject) and not any(word.endswith("ing") for word in told)


def is_role(text: str) -> bool:
    """Tells whether a note in brackets says who does it: "(ramp agent)"."""
    return len(text.split()) <= 3 and bool(_ROLE.search(text))


def subject_of(clause: str) -> str:
    """Returns the subject of a clause that states a fact: "an excess" of "an excess applies"; "" where it is none."""
    words = clause.split()
    at = next((n for n, word in enumerate(words) if n and word.casefold() in _VERBS), 0)
    return " ".join(words[:at])


def _is_subject(words: list[str]) -> bool:
    """Tells whether the words before a verb are a subject alone, without another verb."""
    if not 0 < len(words) <= MOST_OF_SUBJECT or not _LINKS.isdisjoint(words[1:]):
        return False
    if not _WORK.isdisjoint(words) or words[0] in _ORDINALS or not _ORDINALS.isdisjoint(words[1:-1]):
        return False
    if words[0].endswith("ing"):  # "checking takes a day", "housing benefit is a subsidy"; "checking the form"
        return len(words) == 1 or (len(words) == 2 and words[1] not in _ARTICLES)
    if any(word in _ARTICLES and before not in _PREPOSITIONS for before, word in pairwise(words)):
        return False
    if words[0] in _ARTICLES or words[0][:1].isdigit():
        return True
    return words[0] not in IMPERATIVES and (
        len(words) <= MOST_WITHOUT_ARTICLE or not _PREPOSITIONS.isdisjoint(words[:2])
    )


def is_participle(word: str) -> bool:
    """Tells whether a lower-case word looks like a past participle."""
    return word.endswith(_PARTICIPLE_ENDS) or is_irregular_participle(word)


MOST_OF_SCOPE = 3  # words of a note in brackets that says for which cases a step holds
_NO_SCOPE = IMPERATIVES | word_set(
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
