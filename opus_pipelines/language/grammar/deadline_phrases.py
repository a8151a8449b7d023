"""Deadlines and limits in a clause."""

import re

from opus_pipelines.language.grammar.figures import TIME, Bounded, Figure, figure_of
from opus_pipelines.language.grammar.modality import MUST, phrase
from opus_pipelines.language.grammar.statements import ProcedureStatement
from opus_pipelines.language.grammar.verbs import is_imperative

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
