"""The phrases of a clause: its conditions, its deadlines and limits, and the order of steps."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from opus_pipelines.language.grammar.figures import BOUNDED, MONTHS, TIME, Bounded, Figure, bounded, figure_of, readable
from opus_pipelines.language.grammar.modality import (
    MUST,
    NOBODY,
    PROHIBITED,
    coordinated,
    forbids,
    is_finite,
    is_imperative,
    is_participle,
    obliges,
    phrase,
    words_in,
)
from opus_pipelines.language.grammar.statements import Condition, Kind, ProcedureStatement

LEADING = re.compile(
    r"^(?:and |but |also )?(?P<word>if|where(?:ver)?|in case of|in the case of|in case|in the event of"
    r"|in the event that"
    r"|provided(?: that)?|unless|until|except for|before"
    r"|prior to|after|once|as soon as|upon|on|following|whenever|when|while|as long as|for|should|with|without|in|at"
    r"|during|by|from|within)\s+"
    r"(?P<what>(?:[^,]|,(?=\d{3}))+?)(?:,(?!\d{3})\s*(?:then |please )?| (?=(?:you|we|they) (?!have\b(?! to\b)"
    r"|has\b)))(?P<rest>.+)$"
)
# "upon termination the tenant shall ...": what comes first ends where the subject of the obligation begins
WITHOUT_COMMA = re.compile(
    r"^(?P<word>if|for|where|when(?:ever)?|before|prior to|after|once|as soon as|upon|on|following|in case of"
    r"|in the case of"
    r"|in the event of)\s+"
    r"(?P<what>(?:(?!must\b|shall\b|has to\b|have to\b"
    r"|should\b)[^,]){3,}?(?<! of)(?<! to)(?<! for)(?<! from)(?<! by)(?<! with)(?<! in)"
    r"(?<! on)(?<! at)(?<! is)(?<! are)(?<! and)(?<! or)) "
    r"(?=(?:the|an?|every|each|all) (?:(?!(?:the|an?|of|for|to|in|is|are|that|and|or)\b)[\w'-]+ ){1,3}?"
    r"(?:must|shall|has to|have to|should|is to|are to)\b)(?P<rest>.+)$"
)
TOLD_BEHIND = re.compile(  # "after the registration a confirmation is sent"
    r"^(?P<word>before|prior to|after|upon|following)\s+"
    r"(?P<what>(?:(?:the|an?|each|every|its|their) )?[\w'-]+(?: of (?:the |an? )?[\w'-]+)?) "
    r"(?=(?:the|an?|every|each|all) (?:(?!(?:the|an?|of|for|to|in|that|and|or)\b)[\w'-]+ ){1,3}?(?:is|are"
    r"|will be)\b)(?P<rest>.+)$"
)
FOR_WHOM = re.compile(r"^(?P<word>for) (?P<what>(?:(?!an?\b|the\b)[\w-]+ ){1,4}?)(?P<rest>(?:an?|the|every|no) .+)$")
_TRAILING = re.compile(
    r"\s*,?\s+\b(?P<word>but only if|only if|if|where|in case of|in the case of|in the event of|in case"
    r"|provided(?: that)?|as long as"
    r"|while|when(?:ever)?"
    r"|unless|except (?:for|where|when|if|in|that)|except|other than for)\s+(?P<what>.+)$"
)
ASKS = re.compile(
    r"\b(?:ask|check|verify|confirm|determine|decide|tell|explain|find out|note|record|clarify|say|assess|examine|see"
    r"|show)"
    r"(?: (?:them|him|her|us|me|(?:the|a) (?:customer|caller|client|applicant|patient|guest|user)))?$"
)
_NEGATED = ("unless", "except", "other")
_AROUND = (
    r"(?:\s*\b(?:of|costing|worth|with|having|a|an|the|value|that|which|is|are|amount(?:s|ing)?|to|totall?ing|in"
    r"|value|price"
    r"|who|asks?|for|cost|costs))*\s*$"
)
_BARE = re.compile(
    r"^(?:\s|(?:an?|the|any|its|this|that|it|of|is|are|was|be|been|has|in|by|with|costs?|amounts?|totals?|exact"
    r"|claimed|estimated"
    r"|value[sd]?|sums?|price|and|no|not|but)\b)*$"
)
# A part of an amount, and not the amount of the case.
_PART = re.compile(
    r"^(?:differenc|varianc|deviation|discrepanc|discount|rebate|fee|refund|surcharge|deposit|deductible|overpayment"
    r"|underpayment|shortfall|penalt|mark-?up|increase|decrease|reduction|tolerance)"
)
_LAST_NOUN = re.compile(r"(?:(?P<first>[a-z][\w'-]+) )?(?P<head>[a-z][\w'-]+)$")
_NO_NOUN = re.compile(
    r"^(?:an?|the|any|all|every|each|its|this|that|these|those|it|they|of|is|are|was|be|been|has|have|in|by|with|to"
    r"|and|or|no|not|only|than|costs?|worth|which|who|value|amounts?|total|sum|price|by|at|for)$"
)
_SUBJECT = re.compile(
    r"^(?P<noun>(?:(?!(?:of|that|which|who|whose)\b)[\w'-]+ ){1,4}?)(?P<mod>(?:with|without|from|outside|inside|in|on"
    r"|during"
    r"|concerning|affecting|involving"
    r"|under|abroad|(?:received|made|reported|submitted|placed|sent) (?:after|before|by|from|in|outside|without|with)"
    r"|[a-z]+ed (?:of"
    r"|by|to|with|from|in|on|after|before))\b"
    r"[^,]*?) (?P<rest>(?:must|shall|may not|may never|should|has to|have to|needs? to|is to|are to|are not|is not"
    r"|(?:also )?needs?"
    r"|(?:also )?requires?)\b.+)$"
)
_DURING = re.compile(r"\s+(?P<mod>(?:during|outside|in case of)\s+[^,]+)$")


def condition_of(text: str, negated: bool = False, is_scope: bool = False) -> Condition:
    """Return a condition in words, or on the figure that it bounds."""
    match = BOUNDED.search(text)
    if match:
        bound = bounded(match)
        short = re.search(r"\bnot (?:be )?$", text[: match.start()])
        negated = negated != bool(short)
        figure, of = bound.figure, _measured(text, match, bound.figure.unit)
        return Condition(_subject(text, match), bound.op, figure.amount, figure.unit, negated, is_scope, of)
    return Condition(readable(" ".join(text.split())), negated=negated, is_scope=is_scope)


def _subject(text: str, match: re.Match[str]) -> str:
    """Return the words around the figure, where they hold a condition of their own, else "".

    Example: "the vehicle is leased and worth more than ...".
    """
    rest = f"{text[: match.start()]} {text[match.end() :]}"
    return (
        "" if _BARE.match(rest) or " and " not in rest else readable(re.sub(r"^and | and$", "", " ".join(rest.split())))
    )


def trailing(text: str) -> tuple[str, tuple[Condition, ...]]:
    """Return a clause without the condition at its end, and the condition."""
    match = _TRAILING.search(text)
    if not match or not match.start() or ASKS.search(text[: match.start()]):
        return text, ()
    negated = match["word"].split()[0] in _NEGATED
    return text[: match.start()].strip(), (condition_of(match["what"], negated),)


def attached(text: str) -> tuple[str, tuple[Condition, ...]]:
    """Return a clause without the bound on a figure of one of its nouns, and the bound.

    Example: "claims above ⟦...⟧ must be reviewed".
    """
    match = BOUNDED.search(text)
    if not match or (
        re.search(r"\|[wc]⟧", match[0]) and re.search(r"\b(?:within|in|after|before)\s*$", text[: match.start()])
    ):
        return text, ()
    if re.search(r"\|[wc]⟧", match[0]) and re.match(r"\s*(?:after|before|prior to|in advance)\b", text[match.end() :]):
        return text, ()  # how long before or after something else
    bound = bounded(match)
    if re.search(r"\|[wc]⟧", match[0]) and re.search(r"\bfor\s*$", text[: match.start()]):
        return " ".join(f"{text[: match.start()].removesuffix('for ')} {text[match.end() :]}".split()), ()
    if re.search(r"\b(?:must|shall|should|has to|have to|needs? to)\b.*\b(?:with|by|using)\s*$", text[: match.start()]):
        return text, ()  # how it is done: "with at least two identifiers"
    before = re.sub(_AROUND, "", text[: match.start()])
    before = re.sub(r"\b(?:of|with|for|who ask)\s*$", "", before)
    rest = " ".join(f"{before} {text[match.end() :]}".split())
    figure = bound.figure
    return rest, (Condition("", bound.op, figure.amount, figure.unit, of=_measured(text, match, figure.unit)),)


def _measured(text: str, match: re.Match[str], unit: str) -> str:
    """Return the noun whose figure is bounded, where not any figure of the unit will do, else "".

    A percentage is a share of something, and a difference is not the amount itself.
    """
    if unit == "percent" and (whole := re.match(r" of (?:the |all |its |their )?([a-z][\w'-]+)", text[match.end() :])):
        return whole[1]
    words = re.sub(_AROUND, "", text[: match.start()].rstrip(" ,")).casefold()
    found = _LAST_NOUN.search(words)
    while found and _NO_NOUN.match(found["head"]):
        words = words[: found.start("head")].rstrip()
        found = _LAST_NOUN.search(words)
    if not found or (unit != "percent" and not _PART.match(found["head"])):
        return ""
    first = found["first"]
    return f"{first} {found['head']}" if first and not _NO_NOUN.match(first) else found["head"]


def of_subject(text: str) -> tuple[str, tuple[Condition, ...]]:
    """Return a clause without the words that narrow its subject, and the condition.

    Example: "applicants from abroad must ...".
    """
    match = _SUBJECT.match(text)
    if not match or re.match(r"(?:on|in) (?:duty|charge|question|time|writing|total|person)\b", match["mod"]):
        return text, ()
    return f"{match['noun']}{match['rest']}", (Condition(match["mod"], is_scope=True),)


def circumstances(text: str) -> tuple[str, tuple[Condition, ...]]:
    """Return a prohibition without the circumstances at its end, and the condition.

    Example: "... during probation".
    """
    match = _DURING.search(text)
    return (text[: match.start()], (Condition(match["mod"], is_scope=True),)) if match else (text, ())


_DEADLINE = re.compile(
    r"(?P<lead>,?\s*(?:and )?(?:in any event |at the latest |at latest |but )?)"
    r"(?:\b(?:within|inside|no later than|not later than|no more than|not more than|at most|at the latest|maximum"
    r"|max\.?"
    r"|not exceeding|in no more than"
    r"|in at most|in less than|in under|by the end of|by|in)\s+(?:(?:a|the) )?(?:period |timeframe |time |deadline "
    r"|maximum )?"
    r"(?:of |not exceeding |not longer than |of at most )?(?:the |another )?"
    rf"(?P<t>{TIME})|(?P<t2>{TIME}) (?:at most|at the latest|maximum|max\b\.?|deadline))"
    r"(?P<tail>(?: at the latest)?(?: (?:of|after|from|following|since|once|upon|to)\b.*)?)$"
)
_FROM_NOW = re.compile(r"(?:in|by) (?:the |another )?⟦")  # "the audit begins in two weeks" sets no deadline
_INSIDE = re.compile(
    rf"\b(?:within|inside|no later than|not later than)\s+(?:(?:a|the) )?(?:period of "
    rf"|timeframe of )?(?:the )?(?P<t>{TIME})"
    r"(?P<since> (?:of|after|from|following|since) (?:the |an? |its )?[\w-]+(?: of (?:the |an? )?[\w-]+)?)?"
)
_SINCE = re.compile(r"^\s*(?:at the latest)?\s*(?:of|after|from|following|since|once|upon|to)?\s*")
_AHEAD = re.compile(
    rf"(?<!\bfor )(?<!\bfor)\s*(?:at least |no later than |not later than |no less than )?{TIME} (?:in advance"
    rf"|prior to|before|ahead of)\b.*$"
)
_TAKE = re.compile(
    rf"^(?P<a>.+?) (?:must|shall|should|may|can|will|has to|is to)? ?(?P<not>not |never )?(?:takes?|lasts?"
    rf"|be longer than|exceed"
    rf"|elapse)\s*(?P<more>longer than |more than "
    rf"|at most |no longer than |no more than |not longer than )?(?P<t>{TIME})(?P<tail>.*)$"
)
_ELAPSE = re.compile(
    rf"^(?P<a>.*?),?\s*(?:no more than|not more than|at most) (?P<t>{TIME}) (?:may|must|shall|can|should) (?:elapse"
    rf"|pass|lie)"
)
_PART_OF_WORK = (  # the whole of what is no work
    r"(?:amount|sum|price|cost|value|loss|fee|bill|invoice|deposit|document|file|form|text|list|team|staff|department"
    r"|building"
    r"|room|load|stock)"
)
_WHOLE = re.compile(
    rf"\b(?:whole|entire|total|overall|end-to-end)\b(?! (?:\w+ )?{_PART_OF_WORK}s?\b)"
    r"|^(?:the )?(?:process|procedure|workflow)(?=$|,? (?:must|shall|should|has|is|may|can|will|takes?|from"
    r"|as a whole)\b)"
    r"|^(?:the )?(?:time|everything|all(?: steps)?|it)?,? ?from (?:the )?\w+(?: \w+)? to (?:the )?\w+"
)
_EXCEED = re.compile(
    r"^(?P<a>.+?) (?:must|shall|should|may|can|do|does|is|are|to)(?: be)? ?(?:not|never) (?:be )?(?:exceed(?:ing)?"
    r"|go (?:over|above"
    r"|beyond)|rise above|be (?:more|higher|greater|longer)"
    r" than|(?:more|higher|greater|longer|larger) than|above|over)\s+(?:the |an? )?(?P<f>⟦[^⟧]*⟧|[\d.,]+ ?[a-z°]+"
    r"|\w+ [a-z]+)"
)
_KEPT = re.compile(
    r"^(?P<a>.+?) (?:must|shall|should|has to|have to|needs? to|is to|are to|is|are)(?: always)? ?(?:be )?(?:kept"
    r"|stay|remain|held"
    r"|limited|capped|restricted|be|)\s*"
    r"(?P<b>below|under|above|over|at least|at most|to at most|to|at|less than|no more than|up to)\s+(?:a maximum of "
    r"|the "
    r"|an? )?(?P<f>⟦[^⟧]*⟧|[\d.,]+ ?[a-z°]+|\w+(?: [a-z]+)?)"
)
_AT_MOST = re.compile(
    r"^(?:there (?:must|may|can) be )?(?P<op>no more than|not more than|at most|a maximum of|up to|at least"
    r"|a minimum of"
    r"|no fewer than) (?P<n>[\w-]+) (?P<a>.+?) "
    r"(?P<m>may|can|must|shall|should|have to|has to|are to|is to|are|need to)\b(?P<rest>.*)$"
)
_NEEDS = re.compile(
    r"\b(?:needs?|requires?|must have|has to have|have to have)\s+(?:at least )?(?P<n>two|three|four|five|six"
    r"|\d+) (?P<a>[a-z]+(?: [a-z]+)?)"
)
_OPS = {"below": "<", "under": "<", "less than": "<", "above": ">", "over": ">", "at least": ">="}


def is_whole_work(text: str) -> bool:
    """Return whether the phrase is about the whole work, not about one step."""
    return bool(_WHOLE.search(text))


def deadline(text: str) -> tuple[str, Figure, str] | None:
    """Return the clause without its deadline, the time, and the event it is counted from; None where it has none."""
    text = _AHEAD.sub("", text)
    match = _DEADLINE.search(text) or _INSIDE.search(text)
    if match and _FROM_NOW.match(match[0].strip()) and not (MUST.search(text) or is_imperative(text)):
        return None
    if not match or re.search(
        r"(?<!paid )(?<!cared )(?<!accounted )(?<!applied )\bfor(?: an?)?$", text[: match.start()].strip()
    ):
        return None
    groups = match.groupdict()
    rest = f"{text[: match.start()]} {'' if 'tail' in groups else text[match.end() :]}"
    since = _SINCE.sub("", groups.get("tail") or groups.get("since") or "").strip(" ,")
    return " ".join(rest.split()).strip(" ,"), figure_of(groups["t"] or groups.get("t2") or ""), since


def without_lead(text: str) -> str:
    """Return a clause without a lead such as "two weeks in advance", which is no time limit."""
    return _AHEAD.sub("", text)


def duration_limit(text: str) -> ProcedureStatement | None:
    """Return the limit of a clause such as "the process must not take longer than ...", else None."""
    if match := _ELAPSE.match(text):
        return _timed("" if is_whole_work(match["a"]) or not match["a"] else phrase(match["a"]), figure_of(match["t"]))
    match = _TAKE.match(text)
    if (
        match
        and (match["more"] or match["not"])
        and (match["not"] or not (match["more"] or "").startswith(("longer", "more")))
    ):
        return _timed("" if is_whole_work(match["a"]) else phrase(match["a"]), figure_of(match["t"]))
    return None


def _timed(a: str, figure: Figure) -> ProcedureStatement:
    return ProcedureStatement("deadline", a, amount=figure.amount, unit=figure.unit, calendar=figure.calendar)


def limit(text: str) -> ProcedureStatement | None:
    """Return the bound that the clause itself sets on an amount, a count or a measure, else None."""
    if match := _EXCEED.match(text):
        return _bound(match["a"], Bounded("<=", figure_of(match["f"])))
    if (
        (match := _KEPT.match(text))
        and (match["f"].startswith("⟦") or _is_number(match["f"]))
        and not re.search(r"\|[wc]⟧", _at(match))
    ):
        return _bound(match["a"], Bounded(_OPS.get(match["b"], "<="), figure_of(match["f"])))
    if (match := _KEPT.match(text)) and re.search(r"\b(?:kept|stay|remain)\b", match[0]) and match["f"].startswith("⟦"):
        return _bound(match["a"], Bounded(_OPS.get(match["b"], "<="), figure_of(match["f"])))
    if (match := _AT_MOST.match(text)) and _is_number(match["n"]):
        op = ">=" if match["op"] in ("at least", "a minimum of", "no fewer than") else "<="
        if op == ">=" and match["m"] in ("may", "can"):
            return None
        return ProcedureStatement(
            "limit", phrase(f"{match['a']} {match['rest']}"), op=op, amount=figure_of(match["n"]).amount, unit="count"
        )
    return None


def count_needed(text: str) -> ProcedureStatement | None:
    """Return the lower bound of a clause such as "needs two quotations", else None."""
    match = _NEEDS.search(text)
    return (
        ProcedureStatement("limit", match["a"], op=">=", amount=figure_of(match["n"]).amount, unit="count")
        if match
        else None
    )


def _bound(a: str, bound: Bounded) -> ProcedureStatement | None:
    if re.search(
        r"\b(?:that|which|who)$", a.strip()
    ):  # "expenses that are less than ...": which ones, no bound on them
        return None
    unit = bound.figure.unit
    return ProcedureStatement("limit", phrase(a), op=bound.op, amount=bound.figure.amount, unit=unit)


def _is_number(text: str) -> bool:
    return figure_of(text).amount > 0 if re.match(r"[\d⟦]|[a-z]+", text) else False


def _at(match: re.Match[str]) -> str:
    return match["f"]


_ONLY = re.compile(
    r"^(?P<b>.*?)\bonly\b(?P<mid>.*?)\b(?P<w>after|once|when|if|upon|with|following|on(?= (?:presentation|production"
    r"|submission|receipt|proof|approval|condition)\b))\b\s+(?P<a>.+)$"
)
_NOT_BEFORE = re.compile(r"^(?P<b>.+?),?\s*(?:but )?not (?:before|until|prior to)\s+(?P<a>.+)$")
_UNTIL = re.compile(r"^(?P<b>.+?),?\s+\b(?P<w>before|until|till|unless|without|prior to)\b\s+(?P<a>.+)$")
_BEFORE = re.compile(r"^(?P<a>.+?),?\s+\b(?:before|prior to|ahead of)\b\s+(?P<b>.+)$")
_AFTER = re.compile(
    r"^(?P<b>.+?),?\s+\b(?P<w>after|once|as soon as|upon|following)\b\s+(?P<a>.+?)(?P<not>,? (?:and )?(?:not"
    r"|never) (?:earlier|before))?$"
)
_FOLLOWED = re.compile(
    r"^(?P<a>.+?),?\s+(?:(?P<m>must be|shall be|has to be|have to be|should be|is always|are always|is"
    r"|are) )?(?:directly |immediately )?followed by\s+(?P<b>.+)$"
)
_PRECEDED = re.compile(
    r"^(?P<b>.+?)\s+(?:must|shall|should|is|are|has|have)(?: to)?(?: always)?(?: be)? preceded by\s+(?P<a>.+)$"
)
_SUBJECT_TO = re.compile(
    r"^(?P<b>.+?) (?:is|are|be|shall be|must be) (?:always )?(?:subject to|conditional (?:up)?on|contingent (?:up)?on) "
    r"(?!.*\b(?:change|availability|tax|vat|terms|conditions|rules)\b)(?P<a>.+)$"
)
_PRECEDES = re.compile(r"^(?P<a>.+?)\s+(?:(?:must|shall|should|always) )?(?:precedes?|comes? before)\s+(?P<b>.+)$")
_INVERTED = re.compile(
    r"(?:^|,? and |, )only (?:after|when|once|if|upon) (?P<a>.+?) (?P<m>is|are|may|can|does|shall|will"
    r"|must) (?P<b>(?:an?|the|we|you|any"
    r"|it|they) .+)$"
)
_FOLLOWS = re.compile(r"^(?P<b>.+?)\s+(?:must|shall|should|has to|have to|always)?\s*(?:follow|follows)\s+(?P<a>.+)$")
_CONDITION_OF = re.compile(
    r"^(?P<a>.+?)\s+(?:is|are) (?:an? )?(?:prerequisite|precondition|condition|requirement)s? (?:for"
    r"|of)\s+(?P<b>.+)$"
)
_THEN = re.compile(
    r"^(?P<a>.+?)(?:[,;]? and then|, then|[,;] afterwards,?|[,;] subsequently,?|[,;] thereafter,?|[,;] after that,?"
    r"|; then|; next,?"
    r"|[,;]? and afterwards|, after which|,? and only then"
    r"|,? before then|, whereupon|, next,?)\s+(?P<b>.+)$"
)
_SUBSEQUENT = re.compile(r"^(?P<a>.+?),? and (?P<b>(?:[\w'-]+ ){0,5}(?:subsequently|afterwards|then|thereafter) .+)$")
_WITHHELD = re.compile(r"^(?P<b>.+?) (?P<h>withheld|held back|suspended|postponed|put on hold) until (?P<a>.+)$")
_FIRST_LAST = re.compile(r"^(?P<b>[^,]+), (?P<a>[^,]+) first$")
_ONLY_SUBJECT = re.compile(
    r"only (?:(?!after|once|when|if|upon|with|following|then|on\b)[\w'-]+ ){1,6}?(?:may|can|must|shall|is|are)\b"
)
_OF_A_NOUN = re.compile(r"\b(?:for|of|from) (?:an? |the |any )?[\w-]+$")
_THERE_IS_NO = re.compile(r"^there (?:is|are|shall be|must be|may be|can be|will be) no ")
_NO_NO = re.compile(r"no (?P<a>[^,]+), no (?P<b>[^,]+)")
_OUTSIDE = re.compile(
    r"\b(?:before and after|as before|as soon as possible|after all|long before|day before|once (?:an?|per|every)\b"
    r"|once ⟦)"
)
_EVENT = re.compile(r"\b(?:has|have|had|is|are|was|were|gets?) (?:not )?(?:been |already )?(?:\w+ly )?(?P<v>[a-z]+)")

_HANGING = re.compile(r"\b(?:if|unless|except|when|where|while|provided)\b")
_CLOCK = re.compile(
    rf"(?:the )?(?:\d|(?:{'|'.join(MONTHS)}) ?\d|noon|midnight|midday"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|end of|close of|⟦)"
)
_FORCE = re.compile(r"\b(?:must|shall|should|may|can|has to|have to)\b")

_DENIED = re.compile(r"\b(?:not|never)\b(?! (?:before|until|earlier|later))")

Conditions = tuple[Condition, ...]


def is_event(text: str) -> bool:
    """Return whether the clause is about an action that was done ("has been approved"), not about a state."""
    match = _EVENT.search(text)
    if match and is_participle(match["v"]):
        return True
    return bool(re.search(r"\bhas [a-z]+(?:ed|en|nt|ld|ne)\b", text)) or not is_finite(text)


def order(text: str, conditions: Conditions = ()) -> list[ProcedureStatement] | None:
    """Return the statements of order of a clause; None where it has none."""
    if _OUTSIDE.search(text) or _ONLY_SUBJECT.match(text):
        return None
    if (denied := PROHIBITED.search(text)) and not text[denied.end() :]:
        text = f"never {text[: denied.start()].strip()}"
    text = _THERE_IS_NO.sub("no ", text)
    if match := _NO_NO.fullmatch(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if (match := _INVERTED.search(text)) and (match["m"] not in ("is", "are") or not is_finite(match["a"])):
        return [_precedes(match["a"], match["b"], True, conditions)]
    match = _ONLY.match(text)
    if (
        match
        and (match["w"] not in ("if", "when") or is_event(match["a"]))
        and not re.search(r"⟦[^⟧]*\|[mp]⟧", match["a"])
    ):
        return [_precedes(match["a"], match["b"] + match["mid"], True, conditions)]
    if match := _NOT_BEFORE.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if (match := _UNTIL.match(text)) and forbids(match["b"]):
        if match["w"] == "without" and _OF_A_NOUN.search(match["b"]):
            return None  # "for a car without a number plate"
        if match["w"] in ("unless",) and not is_event(match["a"]):
            return None
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _WITHHELD.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _FIRST_LAST.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _CONDITION_OF.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _SUBJECT_TO.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    if match := _PRECEDES.match(text):
        return [_precedes(match["a"], match["b"], bool(MUST.search(text)), conditions)]
    if match := _PRECEDED.match(text):
        return [_precedes(match["a"], match["b"], True, conditions)]
    return _in_sequence(text, conditions) or _before_or_after(text, conditions)


def _in_sequence(text: str, conditions: Conditions) -> list[ProcedureStatement] | None:
    if match := _FOLLOWED.match(text):
        if not match["m"]:
            return [_statement("succession", match["a"], match["b"], True, conditions)]
        return [_statement("response", match["a"], match["b"], True, conditions)]
    if match := _THEN.match(text):
        if " only then" in text[: match.start("b")]:
            left = re.sub(r"^.*, ", "", match["a"])
            return [_precedes(left, match["b"], True, conditions)]
        steps = [re.sub(r"\bfirst\b", "", s) for s in [*_chain(match["a"]), match["b"]]]
        strong = obliges(text) or bool(MUST.search(text))
        return [_statement("succession", a, b, strong, conditions) for a, b in pairwise(steps)]
    if match := _SUBSEQUENT.match(text):
        return [_statement("succession", re.sub(r"\bfirst\b", "", match["a"]), match["b"], True, conditions)]
    if (match := _FOLLOWS.match(text)) and not re.search(r"\bfollow up\b", text):
        return [_statement("response", match["a"], match["b"], bool(MUST.search(text)), conditions)]
    return None


def _chain(text: str) -> list[str]:
    """Return the steps of a list such as "send the draft, wait for the approval" before "and then book"."""
    parts = [p.strip() for p in text.split(", ")]
    return parts if len(parts) > 1 and all(obliges(p) for p in parts) else [text]


def _before_or_after(text: str, conditions: Conditions) -> list[ProcedureStatement] | None:
    if (match := _BEFORE.match(text)) and not forbids(match["a"]) and _may_join(match["a"], match["b"]):
        return [
            _precedes(_nearest(a), match["b"], bool(obliges(match["a"])), conditions) for a in coordinated(match["a"])
        ]
    if (
        (match := _AFTER.match(text))
        and _may_join(match["b"], match["a"])
        and not re.search(r"(?:not|look|soon) $", f"{match['b']} ")
    ):
        if match["b"].endswith("⟧"):  # a span of time after an event is no step after another
            return None
        if match["not"]:
            return [_precedes(match["a"], match["b"], True, conditions)]
        if forbids(match["b"]):
            return [
                ProcedureStatement(
                    "absence", phrase(match["b"]), conditions=(*conditions, Condition(readable(f"after {match['a']}")))
                )
            ]
        return [
            _statement("response", match["a"], b, bool(obliges(match["b"])), conditions)
            for b in coordinated(match["b"])
        ]
    return None


def _may_join(left: str, right: str) -> bool:
    """Return whether a word of time joins two clauses.

    It does not where it is in a condition, or in a subject ("what came after ... must ...").
    """
    inside = _HANGING.search(left) or (_FORCE.search(right) and not _FORCE.search(left))
    return not inside and not _CLOCK.match(right)


def _nearest(text: str) -> str:
    """Return, of several clauses, the one next to the word that joins."""
    parts = re.split(r",? and (?=(?:the|an?|its|their)\b)", text)
    return parts[-1] if len(parts) > 1 and all(is_finite(p) for p in parts) else text


def with_leading_clause(
    word: str, what: str, rest: Sequence[ProcedureStatement], main: str, conditions: Conditions
) -> list[ProcedureStatement]:
    """Return the orders between `what` and the statements of the main clause.

    The clause begins with "after `what`, ..." or "before `what`, ...".
    """
    orders: list[ProcedureStatement] = []
    if _DENIED.search(what) and word not in ("before", "prior to"):  # what is not done is no step that another follows
        return [replace(statement, conditions=(*statement.conditions, Condition(readable(what)))) for statement in rest]
    for statement in rest:
        if word in ("before", "prior to"):
            orders.append(
                ProcedureStatement(
                    "precedence", statement.a, phrase(what), strong=statement.strong, conditions=statement.conditions
                )
            )
        elif statement.kind == "existence":
            orders.append(
                ProcedureStatement(
                    "response", phrase(what), statement.a, strong=statement.strong, conditions=statement.conditions
                )
            )
        elif statement.kind in ("absence", "limit", "choice"):
            orders.append(
                ProcedureStatement(
                    **{**vars(statement), "conditions": (*statement.conditions, Condition(readable(f"{word} {what}")))}
                )
            )
        elif statement.kind == "deadline" and word in ("when", "whenever"):
            orders.append(replace(statement, doubt=f"the time begins {word} {readable(what)!r}"))
        elif statement.kind == "deadline" and not statement.since:
            orders.append(replace(statement, since=readable(what)))
        else:
            orders += (
                [statement, ProcedureStatement("response", phrase(what), statement.a, strong=statement.strong)]
                if statement.kind == "succession"
                else [statement]
            )
    if not orders and word not in ("before", "prior to") and is_finite(main) and not forbids(main):
        orders = [_statement("response", what, b, False, conditions) for b in coordinated(main)]
    if not orders and word in ("before", "prior to") and is_finite(main) and not forbids(main):
        orders = [_precedes(main, what, False, conditions)]
    return orders


def _precedes(a: str, b: str, strong: bool, conditions: Conditions) -> ProcedureStatement:
    return _statement("precedence", a, b, strong, conditions)


def _statement(kind: Kind, a: str, b: str, strong: bool, conditions: Conditions) -> ProcedureStatement:
    left = _DENIED.search(a) or (kind != "precedence" and _DENIED.search(b))
    doubt = f"whether {readable(left.string)!r} is to happen or not is not sure" if left else ""
    return ProcedureStatement(
        kind, phrase(NOBODY.sub("", a)), phrase(NOBODY.sub("", b)), strong=strong, conditions=conditions, doubt=doubt
    )


def is_thin(statement: ProcedureStatement) -> bool:
    """Return whether a phrase of the statement has no words."""
    return not words_in(statement.a) or (
        statement.kind in ("precedence", "response", "succession") and not words_in(statement.b)
    )
