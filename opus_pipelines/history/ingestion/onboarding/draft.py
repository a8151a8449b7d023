"""Writes a draft as the text of source.toml, with a reason for each line that is not obvious."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opus_pipelines.core.toml_text import lines, listed, quoted
from opus_pipelines.history.records.activity_kinds import Classified
from opus_pipelines.history.records.values import FALSE, TRUE

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.onboarding.findings import Outcome

ASSUMED_ZONE = "UTC"


@dataclass(frozen=True)
class Stated:
    """The settings that the person stated on the command line."""

    industry: str | None = None
    client: str | None = None
    contract: str | None = None
    timezone: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)  # dollars a unit of a currency, of opus.toml


@dataclass(frozen=True)
class OutcomeColumn:
    """A column or attribute that clearly is an outcome, with its good and its bad values."""

    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def is_boolean(self) -> bool:
        """Tells whether its values need no rule."""
        return {value.lower() for value in self.good} <= TRUE and {value.lower() for value in self.bad} <= FALSE


@dataclass(frozen=True)
class Draft:
    """The content of a source.toml.

    `plain` has top-level keys, `tables` [columns], [record] and [task], and `notes` the reason for a key.
    """

    plain: dict[str, str | list[str]] = field(default_factory=dict)
    tables: dict[str, dict[str, str | list[str]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    outcome: OutcomeColumn | None = None
    kinds: dict[str, Classified] = field(default_factory=dict)
    candidates: "tuple[Outcome, ...]" = ()
    unclear: tuple[
        tuple[str, Counter[str]], ...
    ] = ()  # columns that are called outcomes, but whose values do not say which are good


MANY_VALUES = 6


def source_text(draft: Draft) -> str:
    """Returns the text of source.toml."""
    blocks = [
        _plain_text(draft),
        *(_table_text(name, draft) for name in ("columns", "record", "task")),
        _success_text(draft),
        _activities_text(draft),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _plain_text(draft: Draft) -> str:
    return "\n".join(_noted(draft, draft.plain.items()))


def _table_text(name: str, draft: Draft) -> str:
    values = draft.tables.get(name, {})
    return "\n".join([f"[{name}]", *_noted(draft, values.items())]) if values else ""


def _noted(draft: Draft, values: Iterable[tuple[str, str | list[str]]]) -> list[str]:
    reasons = []
    for key, value in values:
        reasons.append(lines({key: value})[0] + (f"  # {draft.notes[key]}" if key in draft.notes else ""))
    return reasons


def _success_text(draft: Draft) -> str:
    """Returns the rule of a column that clearly is an outcome, else the candidates as comments."""
    if draft.outcome is not None:
        if draft.outcome.is_boolean:
            return ""
        rest = f"  # the others: {', '.join(draft.outcome.bad)}"
        return f"[success]\ncolumn = {quoted(draft.outcome.name)}\nequals = {listed(draft.outcome.good)}{rest}"
    lines = [
        (
            "# [success]  No rule is stated: whether a case succeeded is unknown. Candidates, one of which may be made "
            "active (last_activity_in tells which cases to follow, and not how well a step is done):"
        )
    ]
    for candidate in draft.candidates:
        lines.append(
            f"# {candidate.toml}  # {candidate.succeeded:,} cases would be successful, {candidate.failed:,} would not"
        )
    for name, values in draft.unclear:
        some = ", ".join(f"{value}: {count:,}" for value, count in values.most_common(MANY_VALUES))
        lines.append(f"# column = {quoted(name)}, equals = [...]  # {some}")
    return "\n".join(_one_line(line) for line in lines) if len(lines) > 1 else ""


def _activities_text(draft: Draft) -> str:
    lines = []
    for kind in ("event", "outcome"):
        names = sorted(name for name, classified in draft.kinds.items() if classified.kind == kind)
        for name in names:
            lines.append(_one_line(f"# {name}: {draft.kinds[name].reason}"))
        if names:
            lines.append(f"{kind} = {listed(names)}")
    return "\n".join(["[activities]  # no work steps; every other activity is a step", *lines]) if lines else ""


def _one_line(comment: str) -> str:
    """Removes characters that TOML does not allow in comments."""
    return "".join(c if c == "\t" or (c >= " " and c != "\x7f") else " " for c in comment)
