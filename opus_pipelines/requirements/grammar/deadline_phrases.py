"""Deadlines and limits in a clause."""

import re

from opus_pipelines.requirements.grammar.figures import TIME, Bounded, Figure, figure_of
from opus_pipelines.requirements.grammar.modality import MUST, phrase
from opus_pipelines.requirements.grammar.verbs import is_imperative
from opus_pipelines.requirements.statements import ProcedureStatement

_DEADLINE = re.compile(
    r"(?P<lead>,?\s*(?:and )?(?:in any event |at the latest |at latest |but )?)"
    r"(?:\b(?:within|inside|no later than|not later than|no more than|not more than|at most|at the latest|maximum|max\.?"
    r"|not exceeding|in no more than"
    r"|in at most|in less than|in under|by the end of|by|in)\s+(?:(?:a|the) )?(?:period |timeframe |time |deadline |maximum )?"
    r"(?:of |not exceeding |not longer than |of at most )?(?:the |another )?"
    rf"(?P<t>{TIME})|(?P<t2>{TIME}) (?:at most|at the latest|maximum|max\b\.?|deadline))"
    r"(?P<tail>(?: at the latest)?(?: (?:of|after|from|following|since|once|upon|to)\b.*)?)$"
)
_FROM_NOW = re.compile(r"(?:in|by) (?:the |another )?⟦")  # "the audit begins in two weeks" sets no deadline
_INSIDE = re.compile(
    rf"\b(?:within|inside|no later than|not later than)\s+(?:(?:a|the) )?(?:period of |timeframe of )?(?:the )?(?P<t>{TIME})"
    r"(?P<since> (?:of|after|from|following|since) (?:the |an? |its )?[\w-]+(?: of (?:the |an? )?[\w-]+)?)?"
)
_SINCE = re.compile(r"^\s*(?:at the latest)?\s*(?:of|after|from|following|since|once|upon|to)?\s*")
_AHEAD = re.compile(
    rf"(?<!\bfor )(?<!\bfor)\s*(?:at least |no later than |not later than |no less than )?{TIME} (?:in advance"
    rf"|prior to|before|ahead of)\b.*$"
)
_TAKE = re.compile(
    rf"^(?P<a>.+?) (?:must|shall|should|may|can|will|has to|is to)? ?(?P<not>not |never )?(?:takes?|lasts?|be longer than|exceed"
    rf"|elapse)\s*(?P<more>longer than |more than "
    rf"|at most |no longer than |no more than |not longer than )?(?P<t>{TIME})(?P<tail>.*)$"
)
_ELAPSE = re.compile(
    rf"^(?P<a>.*?),?\s*(?:no more than|not more than|at most) (?P<t>{TIME}) (?:may|must|shall|can|should) (?:elapse"
    rf"|pass|lie)"
)
_PART = (  # the whole of what is no work
    r"(?:amount|sum|price|cost|value|loss|fee|bill|invoice|deposit|document|file|form|text|list|team|staff|department|building"
    r"|room|load|stock)"
)
_WHOLE = re.compile(
    rf"\b(?:whole|entire|total|overall|end-to-end)\b(?! (?:\w+ )?{_PART}s?\b)"
    r"|^(?:the )?(?:process|procedure|workflow)(?=$|,? (?:must|shall|should|has|is|may|can|will|takes?|from|as a whole)\b)"
    r"|^(?:the )?(?:time|everything|all(?: steps)?|it)?,? ?from (?:the )?\w+(?: \w+)? to (?:the )?\w+"
)
_EXCEED = re.compile(
    r"^(?P<a>.+?) (?:must|shall|should|may|can|do|does|is|are|to)(?: be)? ?(?:not|never) (?:be )?(?:exceed(?:ing)?|go (?:over|above"
    r"|beyond)|rise above|be (?:more|higher|greater|longer)"
    r" than|(?:more|higher|greater|longer|larger) than|above|over)\s+(?:the |an? )?(?P<f>⟦[^⟧]*⟧|[\d.,]+ ?[a-z°]+|\w+ [a-z]+)"
)
_KEPT = re.compile(
    r"^(?P<a>.+?) (?:must|shall|should|has to|have to|needs? to|is to|are to|is|are)(?: always)? ?(?:be )?(?:kept|stay|remain|held"
    r"|limited|capped|restricted|be|)\s*"
    r"(?P<b>below|under|above|over|at least|at most|to at most|to|at|less than|no more than|up to)\s+(?:a maximum of |the "
    r"|an? )?(?P<f>⟦[^⟧]*⟧|[\d.,]+ ?[a-z°]+|\w+(?: [a-z]+)?)"
)
_AT_MOST = re.compile(
    r"^(?:there (?:must|may|can) be )?(?P<op>no more than|not more than|at most|a maximum of|up to|at least|a minimum of"
    r"|no fewer than) (?P<n>[\w-]+) (?P<a>.+?) "
    r"(?P<m>may|can|must|shall|should|have to|has to|are to|is to|are|need to)\b(?P<rest>.*)$"
)
_NEEDS = re.compile(
    r"\b(?:needs?|requires?|must have|has to have|have to have)\s+(?:at least )?(?P<n>two|three|four|five|six"
    r"|\d+) (?P<a>[a-z]+(?: [a-z]+)?)"
)
_OPS = {"below": "<", "under": "<", "less than": "<", "above": ">", "over": ">", "at least": ">="}


def whole(text: str) -> bool:
    """The phrase speaks of the whole of the work, not of one step."""
    return bool(_WHOLE.search(text))


def deadline(text: str) -> tuple[str, Figure, str] | None:
    """The clause without its deadline, the time, and what it is counted from; None where it has none."""
    text = _AHEAD.sub("", text)
    found = _DEADLINE.search(text) or _INSIDE.search(text)
    if found and _FROM_NOW.match(found[0].strip()) and not (MUST.search(text) or is_imperative(text)):
        return None
    if not found or re.search(
        r"(?<!paid )(?<!cared )(?<!accounted )(?<!applied )\bfor(?: an?)?$", text[: found.start()].strip()
    ):
        return None
    groups = found.groupdict()
    rest = f"{text[: found.start()]} {'' if 'tail' in groups else text[found.end() :]}"
    since = _SINCE.sub("", groups.get("tail") or groups.get("since") or "").strip(" ,")
    return " ".join(rest.split()).strip(" ,"), figure_of(groups["t"] or groups.get("t2") or ""), since


def ahead_removed(text: str) -> str:
    """A clause without a time by which it comes before something else: "two weeks in advance" is no time limit."""
    return _AHEAD.sub("", text)


def duration_limit(text: str) -> ProcedureStatement | None:
    """ "The process must not take longer than ...", "no more than ... may elapse"."""
    if found := _ELAPSE.match(text):
        return _timed("" if whole(found["a"]) or not found["a"] else phrase(found["a"]), figure_of(found["t"]))
    found = _TAKE.match(text)
    if (
        found
        and (found["more"] or found["not"])
        and (found["not"] or not (found["more"] or "").startswith(("longer", "more")))
    ):
        return _timed("" if whole(found["a"]) else phrase(found["a"]), figure_of(found["t"]))
    return None


def _timed(a: str, figure: Figure) -> ProcedureStatement:
    return ProcedureStatement("deadline", a, amount=figure.amount, unit=figure.unit, calendar=figure.calendar)


def limit(text: str) -> ProcedureStatement | None:
    """A bound that the clause itself sets on an amount, a count or a measure."""
    if found := _EXCEED.match(text):
        return _bound(found["a"], Bounded("<=", figure_of(found["f"])))
    if (
        (found := _KEPT.match(text))
        and (found["f"].startswith("⟦") or _is_number(found["f"]))
        and not re.search(r"\|[wc]⟧", _at(found))
    ):
        return _bound(found["a"], Bounded(_OPS.get(found["b"], "<="), figure_of(found["f"])))
    if (found := _KEPT.match(text)) and re.search(r"\b(?:kept|stay|remain)\b", found[0]) and found["f"].startswith("⟦"):
        return _bound(found["a"], Bounded(_OPS.get(found["b"], "<="), figure_of(found["f"])))
    if (found := _AT_MOST.match(text)) and _is_number(found["n"]):
        op = ">=" if found["op"] in ("at least", "a minimum of", "no fewer than") else "<="
        if op == ">=" and found["m"] in ("may", "can"):
            return None
        return ProcedureStatement(
            "limit", phrase(f"{found['a']} {found['rest']}"), op=op, amount=figure_of(found["n"]).amount, unit="count"
        )
    return None


def count_needed(text: str) -> ProcedureStatement | None:
    """ "needs two quotations": at least as many."""
    found = _NEEDS.search(text)
    return (
        ProcedureStatement("limit", found["a"], op=">=", amount=figure_of(found["n"]).amount, unit="count")
        if found
        else None
    )


def _bound(a: str, said: Bounded) -> ProcedureStatement | None:
    if re.search(
        r"\b(?:that|which|who)$", a.strip()
    ):  # "expenses that are less than ...": which ones, no bound on them
        return None
    unit = said.figure.unit
    return ProcedureStatement("limit", phrase(a), op=said.op, amount=said.figure.amount, unit=unit)


def _is_number(text: str) -> bool:
    return figure_of(text).amount > 0 if re.match(r"[\d⟦]|[a-z]+", text) else False


def _at(found: re.Match[str]) -> str:
    return found["f"]
