"""Shows what was understood of a source as tables for a person. `opus init` and `opus check` show the same.

It writes the draft of a source.toml, with a reason for each line that is not obvious.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.formatting import grid, share, usd
from opus_pipelines.core.settings_files import toml_lines, toml_listed, toml_quoted
from opus_pipelines.history.formats.drawn_flows import CONNECTIONS_LOST
from opus_pipelines.history.ingestion.ingest import more_activities, unpriced_steps
from opus_pipelines.history.ingestion.onboarding.trial import (
    Findings,
    Trial,
    attribute_values,
    outcome_candidates,
)
from opus_pipelines.history.records.activity_kinds import KINDS, Classified, classify_source
from opus_pipelines.history.records.money import remark
from opus_pipelines.history.records.values import FALSE, TRUE

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.onboarding.trial import Outcome


ASSUMED_ZONE = "UTC"


@dataclass(frozen=True)
class Stated:
    """The settings that the person stated on the command line."""

    industry: str | None = None
    client: str | None = None
    contract: str | None = None
    timezone: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    sheet: str | None = None  # of a workbook
    transitions: Mapping[str, list[str]] = field(default_factory=dict)
    rows: Mapping[str, list[str]] = field(default_factory=dict)
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
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, list[str]] | list[str]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    outcome: OutcomeColumn | None = None
    kinds: dict[str, Classified] = field(default_factory=dict)
    candidates: "tuple[Outcome, ...]" = ()
    # columns that are called outcomes, but whose values do not say which are good
    unclear: tuple[tuple[str, Counter[str]], ...] = ()


MANY_VALUES = 6
TABLE_NAMES = ("table", "table.names", "columns", "record", "task", "transitions")


def source_text(draft: Draft) -> str:
    """Returns the text of source.toml."""
    blocks = [
        "\n".join(_noted(draft, draft.plain.items())),
        *("\n".join([f"[{name}]", *_noted(draft, t.items())]) for name in TABLE_NAMES if (t := draft.tables.get(name))),
        _rows_text(draft),
        _success_text(draft),
        _activities_text(draft),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _noted(draft: Draft, values: Iterable[tuple[str, Any]]) -> list[str]:
    reasons = []
    for key, value in values:
        written = key if re.fullmatch(r"[\w-]+", key, re.ASCII) else toml_quoted(key)
        reasons.append(toml_lines({written: value})[0] + (f"  # {draft.notes[key]}" if key in draft.notes else ""))
    return reasons


def _rows_text(draft: Draft) -> str:
    """Returns the table [rows], which says which rows are read."""
    if not draft.rows:
        return ""
    lines = ["[rows]" + (f"  # left out: {draft.notes['left out']}" if "left out" in draft.notes else "")]
    for kind, values in draft.rows.items():
        if isinstance(values, list):
            lines.append(f"{kind} = {toml_listed(values)}")
            continue
        told = ", ".join(f"{toml_quoted(name)} = {toml_listed(some)}" for name, some in values.items())
        lines.append(f"{kind} = {{ {told} }}")
    return "\n".join(map(_one_line, lines))


def _success_text(draft: Draft) -> str:
    """Returns the rule of a column that clearly is an outcome, else the candidates as comments."""
    if draft.outcome is not None:
        if draft.outcome.is_boolean:
            return ""
        rest = f"  # the others: {', '.join(draft.outcome.bad)}"
        return (
            f"[success]\ncolumn = {toml_quoted(draft.outcome.name)}\nequals = {toml_listed(draft.outcome.good)}{rest}"
        )
    toml_lines = [
        (
            "# [success]  No rule is stated: whether a case succeeded is unknown. Candidates, one of which may be made "
            "active (last_activity_in tells which cases to follow, and not how well a step is done):"
        )
    ]
    for candidate in draft.candidates:
        toml_lines.append(
            f"# {candidate.toml}  # {candidate.succeeded:,} cases would be successful, {candidate.failed:,} would not"
        )
    for name, values in draft.unclear:
        some = ", ".join(f"{value}: {count:,}" for value, count in values.most_common(MANY_VALUES))
        toml_lines.append(f"# column = {toml_quoted(name)}, equals = [...]  # {some}")
    return "\n".join(_one_line(line) for line in toml_lines) if len(toml_lines) > 1 else ""


def _activities_text(draft: Draft) -> str:
    toml_lines = []
    for kind in ("event", "outcome"):
        names = sorted(name for name, classified in draft.kinds.items() if classified.kind == kind)
        for name in names:
            toml_lines.append(_one_line(f"# {name}: {draft.kinds[name].reason}"))
        if names:
            toml_lines.append(f"{kind} = {toml_listed(names)}")
    return (
        "\n".join(["[activities]  # no work steps; every other activity is a step", *toml_lines]) if toml_lines else ""
    )


def _one_line(comment: str) -> str:
    """Removes characters that TOML does not allow in comments."""
    return "".join(c if c == "\t" or (c >= " " and c != "\x7f") else " " for c in comment)


MANY = 30  # activities that are listed
MANY_FILES = 10
ASIDE = "case_quarantined"  # the code of usable records whose case is put aside
WIDE = 100  # characters of a line of names
SURE_STEP = 0.9


def report(trial: Trial, findings: Findings, notes: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Returns the lines: what was understood, the activities, and what is missing.

    `notes` has more rows (what, how) for the first table.
    """
    kinds = classify_source(trial.evidence, trial.whole, trial.settings.activities.stated)
    rows = [
        *_files(trial),
        *_account(trial),
        *notes,
        *_counts(trial, findings, kinds),
        *_left_out(trial),
        *_outcomes(trial, findings, kinds),
        *_missing(trial, findings),
        *_doubts(trial, findings),
    ]
    return [
        f"Source {trial.name}: what was understood",
        *grid([list(row) for row in dict.fromkeys(rows)]),
        "",
        "Activities",
        *grid(_activities(trial, findings, kinds)),
    ]


def complaints(trial: Trial) -> list[str]:
    """Returns a message for each problem of the source; none if a rebuild would use all of it."""
    return [*trial.failed, *rejects_by_cause(trial)]


def rejects_by_cause(trial: Trial) -> list[str]:
    """Returns a line for each of the most frequent causes of rejected records, with one example of its reason.

    Records that are put aside because of another one of their case are no cause, and are counted in the last line.
    """
    causes, example = Counter[str](), dict[str, str]()
    for (code, reason), count in trial.rejects.items():
        causes[code] += count
        example.setdefault(code, reason)
    total, aside = trial.total("records"), causes.pop(ASIDE, 0)
    toml_lines = [
        f"{count:,} of {total:,} records rejected ({code}): {example[code]}" for code, count in causes.most_common(3)
    ]
    return toml_lines + ([f"{aside:,} more are put aside with the cases of these records"] if aside else [])


def _account(trial: Trial) -> list[tuple[str, str]]:
    """Returns what became of every record, where not all are used; the numbers add up."""
    records, used, rejected = (trial.total(f"records{name}") for name in ("", "_used", "_rejected"))
    same, corrected = trial.total("records_duplicate"), trial.total("records_corrected")
    aside = sum(count for (code, _), count in trial.rejects.items() if code == ASIDE)
    counts = {
        "used": used,
        "no work": trial.total("records_not_work") - same - corrected,
        "repeated": same,
        "corrected": corrected,
        "put aside with their case": aside,
        "rejected": rejected - aside,
    }
    if used == records:
        return []
    return [("records", f"{records:,} = " + " + ".join(f"{n:,} {what}" for what, n in counts.items() if n))]


def _files(trial: Trial) -> list[tuple[str, str]]:
    rows = []
    for row in trial.files[:MANY_FILES]:
        if row["status"] == "rejected":
            rows.append((f"file {row['path']}", f"REJECTED: {row['reason']}"))
        else:
            repeated = (row["records_duplicate"] or 0) + (row["records_corrected"] or 0)
            summary = (
                f"{row['format']}, {row['records']:,} records: {row['records_used']:,} used, "
                f"{(row['records_not_work'] or 0) - repeated:,} no work"
            ) + (f", {repeated:,} repeated" if repeated else "")
            rows.append((f"file {row['path']}", f"{summary}, {row['records_rejected']:,} rejected"))
    if more := trial.files[MANY_FILES:]:
        rejected = sum(row["status"] == "rejected" for row in more)
        rows.append(
            (
                f"{len(more):,} more files",
                f"{rejected:,} of them rejected whole; {trial.total('records'):,} records in all files",
            )
        )
    return rows


def _counts(trial: Trial, findings: Findings, kinds: dict[str, Classified]) -> list[tuple[str, str]]:
    per_kind = [sum(classified.kind == kind for classified in kinds.values()) for kind in KINDS]
    by_kind = ", ".join(
        f"{count:,} {kind}{'' if count == 1 else 's'}" for kind, count in zip(KINDS, per_kind, strict=True)
    )
    period = (
        (f"{findings.first:%Y-%m-%d} to {findings.last:%Y-%m-%d}")
        if findings.first and findings.last
        else "unknown: no times"
    )
    attributes = [f"{name} ({count:,})" for name, count in findings.case_attributes.most_common()]
    return [
        ("cases", f"{findings.cases:,}"),
        ("activities", f"{len(kinds):,}: {by_kind}; {findings.tasks:,} occurrences"),
        ("period", period),
        ("resources", _resources(trial, findings)),
        (
            "working time",
            f"{share(findings.timed / findings.tasks)} of the occurrences state it"
            if findings.timed
            else "unknown: no start and end",
        ),
        ("costs", _costs(trial, findings)),
        ("case attributes", _cut(", ".join(attributes)) or "none"),
    ]


def _left_out(trial: Trial) -> list[tuple[str, str]]:
    """Returns which rows the settings leave out."""
    rows = trial.settings.rows
    told = [f"rows whose {name!r} is not {' or '.join(values)}" for name, values in rows.only.items()]
    told += [f"rows whose {name!r} is {' or '.join(map(repr, values))}" for name, values in rows.without.items()]
    told += [f"rows without a {name!r}" for name in rows.filled]
    return [("left out", text) for text in told]


def _resources(trial: Trial, findings: Findings) -> str:
    automatic = sum(evidence.automatic for evidence in trial.evidence.values())
    drawn = f"{findings.with_drawn_actor:,} drawn tasks name who does them: {_cut(', '.join(findings.drawn_actors))}"
    drawn = drawn if findings.with_drawn_actor else ""
    if not findings.tasks or not findings.named + automatic:
        return drawn or "unknown: nothing names who did it"
    text = f"{share(findings.named / findings.tasks)} of the occurrences name who did it"
    program = f"{share(automatic / findings.tasks)} were done by a program" if automatic else ""
    return ", ".join(filter(None, (text, program, drawn)))


def _costs(trial: Trial, findings: Findings) -> str:
    text = (
        f"{share(findings.priced / findings.tasks)} of the occurrences have a cost in dollars"
        if findings.priced
        else "none in dollars"
    )
    currencies = sorted({code for row in trial.files for code in row["currencies"] or ()})
    return text + (f"; amounts in {', '.join(currencies)}" if currencies else "")


def _outcomes(trial: Trial, findings: Findings, kinds: dict[str, Classified]) -> list[tuple[str, str]]:
    if findings.succeeded or findings.failed:
        unknown = findings.cases - findings.succeeded - findings.failed
        rest = f", {unknown:,} unknown" if unknown else ""
        return [("outcomes", f"{findings.succeeded:,} cases succeeded, {findings.failed:,} did not{rest}")]
    rows = [("outcomes", "unknown: nothing states whether a case succeeded")]
    for candidate in outcome_candidates(findings, kinds, trial):
        rows.append(
            ("  candidate", f"{_cut(candidate.toml)}: {candidate.succeeded:,} successful, {candidate.failed:,} not")
        )
    return rows


def _missing(trial: Trial, findings: Findings) -> list[tuple[str, str]]:
    """Returns what would improve the plans if it were known."""
    rows: list[tuple[str, str]] = []
    if not trial.whole.cases:
        return rows  # process models have neither costs nor outcomes
    currencies = {code for row in trial.files for code in row["currencies"] or ()}
    if findings.tasks and findings.first is None:
        rows.append(("missing", "times: name their column or field with time under [columns] or [task]"))
    if lacking := remark(currencies, trial.settings):
        rows.append(("missing", lacking))
    if missing := _missing_costs(trial, findings, is_stated=bool(currencies)):
        rows.append(("missing", missing))
    if not findings.succeeded and not findings.failed:
        rows.append(
            ("missing", "outcomes: state a rule under [success]; without one, plans follow what most similar cases did")
        )
    known_actors = findings.named + sum(evidence.automatic for evidence in trial.evidence.values())
    if known_actors < findings.tasks:
        rows.append(("missing", f"who did it, in {share(1 - known_actors / findings.tasks)} of the occurrences"))
    if not findings.case_attributes and not findings.with_text:
        rows.append(("missing", "attributes and texts of the cases: nothing tells which cases are alike"))
    if trial.settings.industry is None:
        rows.append(
            (
                "missing",
                'industry = "..." at the top of source.toml: tasks merge with other sources of the same industry',
            )
        )
    return rows


def _missing_costs(trial: Trial, findings: Findings, is_stated: bool) -> str | None:
    """Returns what would tell the costs that are unknown; `is_stated`: the source states amounts of its own."""
    rates = trial.settings.rates
    if trial.folder and (unpriced := unpriced_steps(rates, trial.folder)):
        return f"costs: {unpriced}"
    if findings.priced or is_stated:
        return None
    if any(isinstance(rate, float) for rate in rates.values()) and not findings.timed:
        return "costs: [rates] prices working time, and nothing states it; name start and end under [columns]"
    return "costs: name their column with cost under [columns], or prices an hour under [rates]"


BY_CHANCE = 0.001  # share of the cases whose ids may be names of activities, as short codes are
_FIRST_YEAR = 1990  # earlier times are seldom those of work that a program recorded


def _next_year() -> int:
    return datetime.now(UTC).year + 1


def hard_doubts(trial: Trial, findings: Findings) -> list[str]:
    """Returns what speaks for a wrong reading of ids, activities and dates."""
    told: list[str] = []
    if len(names := findings.ids_as_activities) > BY_CHANCE * findings.cases:
        which = f"{_few(names)}: both a case and an activity"
        told.append(f"{which}; are the columns of case and activity exchanged in one of the files?")
    elif doubt := more_activities(len(trial.evidence), findings.cases):
        told.append(doubt)
    if (
        findings.first
        and findings.last
        and not _FIRST_YEAR <= findings.first.year <= findings.last.year <= _next_year()
    ):
        what = f"the times reach from {findings.first:%Y-%m-%d} to {findings.last:%Y-%m-%d}"
        told.append(f"{what}; are some read wrongly, or dates that stand for no date (1900, 9999)?")
    if alike := findings.alike_ids:
        which = f"{len(alike):,} ids of cases are other spellings of another one (blanks, leading zeros, .0, letters)"
        told.append(f"{which}, as {alike[0]!r}; each is a case of its own; {_joined(alike)}")
    return told


def _doubts(trial: Trial, findings: Findings) -> list[tuple[str, str]]:
    """Returns what was read without an error and may yet be wrong."""
    told = hard_doubts(trial, findings)
    if not trial.whole.cases and (models := findings.case_attributes.get(CONNECTIONS_LOST)):
        which = f"{models:,} models" if models > 1 else "one model"
        total = sum(map(int, attribute_values(trial.folder, CONNECTIONS_LOST).elements())) if trial.folder else 0
        told.append(f"{total:,} connections of {which} lead to no node and are left out; is the file whole?")
    if repeated := findings.repeated:
        money = f", and {usd(findings.repeated_usd)} of costs" if findings.repeated_usd else ""
        what = (
            f"{repeated:,} occurrences ({share(repeated / findings.tasks)}){money} equal an earlier one of their case"
        )
        told.append(f'{what}, and count; if the export doubles rows, state repeated = "drop" under [events]')
    return [("doubt", text) for text in told]


def _joined(alike: Sequence[str]) -> str:
    """Returns how ids that are alike become one case."""
    if all(re.fullmatch(r"\d+(?:[.,]0+)?", ident.strip()) for ident in alike):
        return "strip_zeros = true beside case under [columns] reads them without leading zeros and .0"
    return "correct them in the export"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2:,} more" if len(names) > 2 else ""
    return ", ".join(repr(_cut(name, 40)) for name in names[:2]) + more


def _activities(trial: Trial, findings: Findings, kinds: dict[str, Classified]) -> list[list[str]]:
    """Returns the most frequent activities, and every activity that is no certain step."""
    names = sorted(kinds, key=lambda name: (-trial.evidence[name].occurrences, name))
    special = [
        name
        for name in names
        if kinds[name].kind != "step" or kinds[name].confidence < SURE_STEP or kinds[name].is_stated
    ]
    shown = [name for name in names if name in set(names[:MANY]) | set(special)]
    often = Counter(findings.titles.values())
    rows = [["activity", "kind", "occurrences", "why"]]
    for name in shown:
        why = kinds[name].reason if name in special else ""
        rows.append(
            [_cut(_shown(name, findings, often), 60), kinds[name].kind, f"{trial.evidence[name].occurrences:,}", why]
        )
    if len(shown) < len(names):
        rows.append([f"{len(names) - len(shown):,} more", "step", "", ""])
    return rows


def _shown(key: str, findings: Findings, often: Counter[str]) -> str:
    """Returns the title of an activity, with its key where several activities have that title."""
    title = findings.titles.get(key, key)
    return f"{title} ({key})" if often[title] > 1 else title


def _cut(text: str, wide: int = WIDE) -> str:
    return text if len(text) <= wide else text[: wide - 3] + "..."
