"""Limits for the whole work in normative sentences: deadlines, cost ceilings and service levels.

A limit counts only where its sentence concerns the whole of one piece of work ("claims are settled within 3 days", "at
most $40 per case"). The deadline of a step, the price of a hotel night or a reopening rate is no limit of the workflow.
A deadline is one of the lead time, waiting included. A day is 24 hours; a working day is 24 hours times 7/5, because a
week has five of them.
"""

import re
from dataclasses import dataclass

from opus_pipelines.language.word_stems import EMPTY

WORK = (
    r"(?:cases?|claims?|requests?|invoices?|orders?|tickets?|applications?|intakes?|matters?|files?|reports?|visits?"
    r"|charges?|statements?|notes?"
    r"|bills?|complaints?|process(?:ing)?|workflow|handling|turnaround(?: time)?|work|service)"
)
_DONE = r"(?:settled|closed|completed?|finished|done|handled|processed|resolved|turned around|released|take[sn]?|last)"
_NUMBER = (
    r"(?P<n>\d(?:[\d,]{0,13}\d)?(?:\.\d{1,6})?|one|two|three|four|five|six|seven|eight|nine|ten|twelve"
    r"|twenty-four|forty-eight)"
)
_WORDS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
    "twenty-four": 24,
    "forty-eight": 48,
}
_MOST = (
    r"(?:at most|no more than|not more than|no longer than|not longer than|(?:not |never )?exceed(?:s|ing)?|up to"
    r"|a maximum of|maximum"
    r"|max\.?|less than|below|under|capped at)"
)
_LEAST = r"(?:at least|a minimum of|minimum|no less than|not less than|not (?:fall|be|drop) below|more than|above)"
_MONEY = (
    rf"(?:(?:us)?\$\s?|usd:?\s?){_NUMBER}(?P<k>k\b)?|{_NUMBER.replace('?P<n>', '?P<n2>')}(?P<k2>k)?\s?(?:usd"
    rf"|us dollars|dollars|\$)"
)
_DURATION = re.compile(
    rf"\b(?:within|{_MOST}|no later than|take[sn]? {_MOST}|(?:longer|more) than)\s+{_NUMBER}\s*(?P<w>working "
    rf"|business )?(?:calendar )?"
    r"(?P<u>min(?:ute)?s?|h(?:ou)?rs?|h|days?|weeks?)\b(?P<tail>.*)$"
)
_TAIL = re.compile(r"\s*(?:(?:of|from|after|per|at the latest|at most|since|following)\b.*)?[\s.)]*$")
DAYS_A_WORKING_DAY = 7 / 5
_HOURS = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_COST = re.compile(rf"\b{_MOST}\s+(?:{_MONEY})(?P<tail>.*)$")
_PER_WORK = re.compile(rf"\s*(?:per|a|an|for each|for every|each)\s+{WORK}\b")
_OF_WORK = re.compile(rf"\bcosts?\b.*\b{WORK}\b|\b{WORK}\b.*\bcosts?\b")
_PER_CENT = re.compile(rf"(?P<bound>{_LEAST}|{_MOST})\s+{_NUMBER}\s*(?:%|per ?cent)")
_RIGHT = re.compile(
    r"\b(?:right|correct\w*|success\w*|accura\w+|without (?:an? )?(?:error|mistake)s?|error.free|first.time)\b"
)
_WRONG = re.compile(r"\b(?:errors?|fail\w*|mistakes?|defects?|wrong\w*|incorrect\w*)\b")


@dataclass(frozen=True)
class Limit:
    """A ceiling or floor for the whole work.

    It has the key of the constraint, the value in the unit of that key, and the words that say for which work it
    holds.
    """

    kind: str
    value: float
    subject: str


def limit_of(text: str) -> Limit | None:
    """Return the limit that a clause (in lower case) sets for the whole work; None where it sets none."""
    return _success(text) or _duration(text) or _cost(text)


def _duration(text: str) -> Limit | None:
    match = _DURATION.search(text)
    if not match or not _TAIL.match(match["tail"]):
        return None
    subject = text[: match.start()]
    if not re.search(rf"\b{WORK}\b.*\b{_DONE}\b", text[: match.end("u")]) or not re.search(rf"\b{WORK}\b", subject):
        return None
    unit = match["u"][0]
    per_unit = _HOURS[unit] * (DAYS_A_WORKING_DAY if match["w"] and unit == "d" else 1.0)
    return Limit("max_lead_time_hours", round(_number(match["n"]) * per_unit, 6), _whose(subject))


def _cost(text: str) -> Limit | None:
    match = _COST.search(text)
    if not match:
        return None
    subject = text[: match.start()]
    per_work = _PER_WORK.match(match["tail"])
    about_cost = _OF_WORK.search(subject) or (per_work and re.search(r"\bcosts?\b", subject))
    if not about_cost and not (per_work and not re.search(r"[a-z]", subject)):
        return None
    return Limit("max_cost_usd", _dollars(match), _whose(subject))


def _success(text: str) -> Limit | None:
    match = _PER_CENT.search(text)
    if not match or not re.search(rf"\b{WORK}\b", text):
        return None
    share, low = _number(match["n"]) / 100, bool(re.fullmatch(_LEAST, match["bound"]))
    rest = text[: match.start()] + text[match.end() :]
    if low and _RIGHT.search(rest) and not _WRONG.search(rest.replace("without error", "")):
        return Limit("min_success", share, _whose(rest))
    if not low and _WRONG.search(rest):
        return Limit("min_success", 1 - share, _whose(rest))
    return None


_NEUTRAL = re.compile(
    rf"\b(?:{WORK}|{_DONE}|costs?|must|shall|has to|have to|not|never|exceed|rate|share|target|overall|total|whole"
    rf"|full|complete|handle"
    r"|handling|processing|settle|close|closing|settling|success\w*|correct\w*|accura\w+|right|errors?|fail\w*"
    r"|mistakes?|wrong\w*"
    r"|incorrect\w*|first.time|without|new|single|individual|day|clients?|customers?)\b"
)


def _whose(subject: str) -> str:
    return " ".join(w for w in _NEUTRAL.sub(" ", subject).split() if w.strip(".,") not in EMPTY)


def _dollars(match: re.Match[str]) -> float:
    groups = match.groupdict()
    return _number(groups.get("n") or groups["n2"]) * (1000 if groups.get("k") or groups.get("k2") else 1)


def _number(text: str) -> float:
    return float(_WORDS[text]) if text in _WORDS else float(text.replace(",", ""))
