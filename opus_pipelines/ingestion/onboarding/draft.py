"""What a proposed source.toml is written from.

A draft as the text of source.toml, with a reason beside each line that is not plain.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opus_pipelines.core.toml_text import lines, listed, quoted
from opus_pipelines.event_logs.activity_kinds import Classified
from opus_pipelines.event_logs.values import FALSE, TRUE
from opus_pipelines.ingestion.onboarding.findings import Outcome


@dataclass(frozen=True)
class Stated:
    """What the person said on the command line."""

    industry: str | None = None
    client: str | None = None
    contract: str | None = None
    timezone: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)  # dollars a unit of a currency, of opus.toml


@dataclass(frozen=True)
class OutcomeColumn:
    """A column or attribute that plainly is an outcome: its good and its bad values."""

    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def is_boolean(self) -> bool:
        """Do its values need no rule?"""
        return {value.lower() for value in self.good} <= TRUE and {value.lower() for value in self.bad} <= FALSE


@dataclass(frozen=True)
class Draft:
    """What source.toml is written from. `plain`: top-level keys; `tables`: [columns], [record], [task]; `notes`: key →
    why it is so.
    """

    plain: dict[str, str | list[str]] = field(default_factory=dict)
    tables: dict[str, dict[str, str | list[str]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    outcome: OutcomeColumn | None = None
    kinds: dict[str, Classified] = field(default_factory=dict)
    candidates: tuple[Outcome, ...] = ()
    unclear: tuple[
        tuple[str, Counter[str]], ...
    ] = ()  # columns that are called outcomes, but whose values do not say which are good


MANY_VALUES = 6


def source_text(draft: Draft) -> str:
    """The text of source.toml."""
    blocks = [
        _plain(draft),
        *(_table(name, draft) for name in ("columns", "record", "task")),
        _success(draft),
        _activities(draft),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _plain(draft: Draft) -> str:
    return "\n".join(_noted(draft, draft.plain.items()))


def _table(name: str, draft: Draft) -> str:
    values = draft.tables.get(name, {})
    return "\n".join([f"[{name}]", *_noted(draft, values.items())]) if values else ""


def _noted(draft: Draft, values: Iterable[tuple[str, str | list[str]]]) -> list[str]:
    found = []
    for key, value in values:
        found.append(lines({key: value})[0] + (f"  # {draft.notes[key]}" if key in draft.notes else ""))
    return found


def _success(draft: Draft) -> str:
    """The rule of a column that plainly is an outcome; else the candidates as comments."""
    if draft.outcome is not None:
        if draft.outcome.is_boolean:
            return ""
        rest = f"  # the others: {', '.join(draft.outcome.bad)}"
        return f"[success]\ncolumn = {quoted(draft.outcome.name)}\nequals = {listed(draft.outcome.good)}{rest}"
    said = [
        "# [success]  No rule is stated: whether a case succeeded is unknown. Candidates, one of which may be made active:"
    ]
    for candidate in draft.candidates:
        said.append(
            f"# {candidate.toml}  # {candidate.succeeded:,} cases would be successful, {candidate.failed:,} would not"
        )
    for name, values in draft.unclear:
        some = ", ".join(f"{value}: {count:,}" for value, count in values.most_common(MANY_VALUES))
        said.append(f"# column = {quoted(name)}, equals = [...]  # {some}")
    return "\n".join(_one_line(line) for line in said) if len(said) > 1 else ""


def _activities(draft: Draft) -> str:
    found = []
    for kind in ("event", "outcome"):
        names = sorted(name for name, classified in draft.kinds.items() if classified.kind == kind)
        for name in names:
            found.append(_one_line(f"# {name}: {draft.kinds[name].reason}"))
        if names:
            found.append(f"{kind} = {listed(names)}")
    return "\n".join(["[activities]  # no work steps; every other activity is a step", *found]) if found else ""


def _one_line(comment: str) -> str:
    """A comment without what TOML refuses in comments."""
    return "".join(c if c == "\t" or (c >= " " and c != "\x7f") else " " for c in comment)
