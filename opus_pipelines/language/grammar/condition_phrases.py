"""The conditions of a clause, in words and on figures, and the clause without them."""

import re

from opus_pipelines.language.grammar.figures import BOUNDED, bounded, readable
from opus_pipelines.language.grammar.statements import Condition

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
