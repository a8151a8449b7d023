"""Text for people: figures, progress, and text from outside made safe for files that others open.

Formats figures for people. An unknown figure is a dash, never 0.

Makes text from outside safe for files that others open, and says how XML from outside is parsed. Control characters
and direction overrides are removed, and characters are escaped that could be taken for syntax.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any


def number(value: float | None, digits: int = 2) -> str:
    """Formats a number with a fixed count of decimals."""
    return "-" if value is None else f"{value:,.{digits}f}"


def usd(value: float | None) -> str:
    """Formats dollars: two decimals from one dollar, four below."""
    if value is None:
        return "-"
    text = f"${abs(value):,.2f}" if abs(value) >= 1 or value == 0 else f"${abs(value):.4f}"
    return f"-{text}" if value < 0 and text.strip("$0.") else text


def within(low: float | None, high: float | None) -> str:
    """Formats an interval of dollars."""
    return "-" if low is None or high is None else f"{usd(low)} to {usd(high)}"


FAR = 0.25  # cosine similarity; unrelated texts reach as much, so a case below it is not similar to an intake


def is_far(similarity: float | None) -> bool:
    """Returns whether the most similar case is so far away that its figures describe another kind of work.

    The bound FAR is this project's own.
    """
    return similarity is not None and similarity < FAR


def share(value: float | None) -> str:
    """Formats a share in per cent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def assumed(part: float | None, unknown: int | None) -> str:
    """Formats the note on a total: its assumed share, and how many steps of unknown figure it leaves out."""
    steps = f"{unknown} step{'s' if unknown != 1 else ''} unknown" if unknown else ""
    return ", ".join(filter(None, (f"{share(part)} assumed" if part is not None else "", steps))) or "-"


def costs_of_unknown_kind(steps: int) -> str:
    """Returns why the costs of `steps` steps of known time are unknown, and which settings would tell them."""
    return (
        f"{steps} step{'s have' if steps != 1 else ' has'} a known time and no cost, because nothing says what kind of "
        "actor does them: name the column of the kind with actor_kind in source.toml, or state human = ... under "
        "[cost.usd_per_hour] of opus.toml, which counts for an unknown kind, too"
    )


def success(value: float | None, unknown: int | None) -> str:
    """Formats a success probability, and the number of steps for which it is assumed; a dash where it is unknown."""
    supposed = f" ({unknown} step{'s' if unknown != 1 else ''} assumed)" if unknown and value is not None else ""
    return f"{share(value)}{supposed}"


def is_on_assumed_success(row: Mapping[str, Any]) -> bool:
    """Returns whether a workflow has a Reward, and no outcome of any of its steps was ever observed."""
    return row["reward_usd"] is not None and row["success_probability"] is None


def is_offered(row: Mapping[str, Any]) -> bool:
    """Returns whether a ranked workflow may be run: it keeps every constraint, or a person chose it all the same, or it
    is the first one, does what is demanded, and will only miss a deadline.
    """
    is_at_risk = row["rank"] == 1 and bool(row.get("risks"))
    return row["feasible"] is not False or row["decision"] is not None or is_at_risk


def left_out(unread: Sequence[str] | None, rules_not_applied: int | None) -> str:
    """Formats what was not read and how many rules are not applied; empty where there is nothing of it."""
    rules = rules_not_applied or 0
    parts = [
        f"not read: {', '.join(unread)}" if unread else "",
        f"{rules} rule{'' if rules == 1 else 's'} not applied" if rules else "",
    ]
    return "; ".join(filter(None, parts))


def chance(p: float) -> str:
    """Formats a probability with three decimals; it shows 0 or 1 only where the value is exactly that."""
    return f"{p:.0f}" if p in (0, 1) else f"{min(max(p, 0.001), 0.999):.3f}"


def hours(value_ms: float | None) -> str:
    """Formats milliseconds in days, hours, minutes, seconds or milliseconds, by their size."""
    if value_ms is None:
        return "-"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if value_ms >= size:
            return f"{value_ms / size:.1f} {unit}"
    return f"{value_ms:.0f} ms"


def lead_time(p50_ms: float | None, p90_ms: float | None) -> str:
    """Formats the median and the 90th percentile of a lead time; a dash where it is unknown."""
    return "-" if p50_ms is None else f"{hours(p50_ms)}, p90 {hours(p90_ms)}"


def deadline(limit_hours: float | None, p_deadline: float | None) -> str:
    """Formats the probability that a deadline in hours is kept; an empty text where there is no deadline."""
    if limit_hours is None:
        return ""
    return f"{hours(limit_hours * 3.6e6)} kept: " + ("unknown" if p_deadline is None else share(p_deadline))


def grid(rows: list[list[str]], indent: str = "  ") -> list[str]:
    """Returns the rows as lines whose columns are aligned to their widest cell; the last column is not padded."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)] if rows else []
    return [
        indent + "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in rows
    ]


# The options of every parser of XML from outside: nothing else is fetched (no network, no external DTD), entities stay
# unexpanded, and libxml2 keeps its limits on depth and on the length of a text.
SAFE_XML: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
# Characters that XML forbids, and those that change the direction of the text after them.
_FORBIDDEN = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Characters that Mermaid, Markdown or HTML may read as syntax.
_SPECIAL = re.compile(r"[\"'#&;<>%{}\[\]()`|\\*_~$]")


def clean(text: str) -> str:
    """Returns one line of text that XML may hold, without control characters and direction overrides.

    An empty text becomes a dash.
    """
    return " ".join(_FORBIDDEN.sub(" ", text).split()) or "–"


def printable(text: str) -> str:
    """Returns text for a terminal: its lines as they are, without control characters and direction overrides."""
    return _FORBIDDEN.sub(" ", text)


def xml_text(text: str) -> str:
    """Returns the text with each character that XML cannot hold replaced by U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)


def mermaid_text(text: str) -> str:
    """Returns one quoted line of text in which characters of Mermaid, Markdown and HTML syntax are character codes."""
    return '"' + _SPECIAL.sub(lambda match: f"#{ord(match[0])};", clean(text)) + '"'


def mermaid_comment(text: str) -> str:
    """Returns one line of text for a Mermaid comment, without the braces that begin a directive."""
    return re.sub(r"[{}]", "", clean(text))


EVERY_SECONDS = 10.0


class Ticker:
    """Reports progress when it is called with (done, of): at most one line every `every` seconds, and one at the end.

    `of` is None where the total is unknown; then no time left is reported. Another `of` begins another piece of work.
    """

    def __init__(
        self,
        label: str,
        say: Callable[[str], None],
        every: float = EVERY_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._label, self._say, self._every, self._clock = label, say, every, clock
        self._began = self._said = clock()
        self._of: int | None = None

    def __call__(self, done: int, of: int | None = None) -> None:
        """Reports a line where one is due; `done` and `of` count records."""
        now = self._clock()
        if of != self._of:
            self._began, self._of = self._said if self._of is None else now, of
        if now - self._said < self._every and done != of:
            return
        self._said = now
        self._say(f"{self._label}: {_progress(done, of, now - self._began)}")


def _progress(done: int, of: int | None, seconds: float) -> str:
    parts = [f"{done:,}" if of is None else f"{done:,} of {of:,}"]
    if done and seconds >= 1:
        parts.append(f"{done / seconds:,.0f} a second")
        if of is not None and of > done:
            parts.append(f"{duration(seconds * (of - done) / done)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Formats seconds: 45 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
