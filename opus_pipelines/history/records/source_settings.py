"""Reads `source.toml`, the settings of one source of history. A missing file means the same as an empty one."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator, Field, field_validator, model_validator

from opus_pipelines.core.settings import Rates, Section, parse
from opus_pipelines.core.settings_files import stated_toml
from opus_pipelines.history.records.activity_kinds import KINDS, ActivityKind
from opus_pipelines.history.records.formats import LOG_FORMATS
from opus_pipelines.history.records.values import MOST_RUNS, says_nothing, text

END_OF_CASE = "end:"  # stands before the name of an activity that ends a case, where open cases are stated
FILE_NAME = "source.toml"
MOST_USD = 1_000_000.0  # an hour, or a million tokens: what costs more is a slip of the pen


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


TextList = Annotated[list[str], BeforeValidator(_listed)]


DayAndHour = Annotated[list[str], Field(min_length=2, max_length=2)]


class FromColumn(Section):
    """`{ column = "..." }`: each case has its own value, in that column, attribute or dotted path."""

    column: str


class TokenPrice(Section):
    """The price of a model with different prices for input and output tokens."""

    tokens_in: float = Field(0.0, ge=0, description="dollars per million tokens read")
    tokens_out: float = Field(0.0, ge=0, description="dollars per million tokens written")


class CaseNames(Section):
    """The columns, attributes or dotted paths of case values."""

    case: str | None = Field(None, description="the case's id")
    title: str | None = Field(None, description="what the case was asked to do")
    description: str | None = Field(None, description="the request in words")
    process_context: str | None = Field(None, description="the procedure it was carried out under")
    expected_outcome: str | None = Field(None, description="the outcome that was right, as a boolean")
    industry: str | None = Field(None, description="the case's industry")
    client: str | None = Field(None, description="the case's client")
    contract: str | None = Field(None, description="the case's contract")
    case_cost: str | None = Field(None, description="what the whole case cost")
    currency: str | None = Field(
        None, description="which currency the amounts beside it are in: three letters or a sign"
    )
    attributes: TextList | None = Field(
        None, description="the case's own attributes; default: all that tell themselves apart as such"
    )


class EventNames(Section):
    """The columns, attributes or dotted paths of event values."""

    activity: str | None = Field(None, description="the task's name")
    start: str | DayAndHour | None = Field(None, description="when it began; of two columns, the day and the hour")
    end: str | DayAndHour | None = Field(None, description="when it ended; the same")
    time: str | DayAndHour | None = Field(None, description="the one moment that is known; the same")
    transition: str | None = Field(None, description="lifecycle transition: start, complete, ...")
    instance: str | None = Field(None, description="what tells two runs of one task in one case apart")
    order: str | None = Field(None, description="a number that orders the events of a case that have the same time")
    event_id: str | None = Field(
        None, description="id of the event: a later record with the same id and case corrects the earlier one"
    )
    actor: str | None = Field(None, description="who or what did it")
    actor_group: str | None = Field(
        None, description="role or group of who did it: a lane of the pictures, a name for prices"
    )
    actor_kind: str | None = Field(None, description="human, model or code")
    model: str | None = Field(None, description="name of the AI model")
    cost: str | None = Field(None, description="what the task cost")
    currency: str | None = Field(
        None, description="which currency the amounts beside it are in: three letters or a sign"
    )
    cost_compute: str | None = Field(None, description="programs' and machines' part")
    cost_model: str | None = Field(None, description="AI models' part")
    cost_human: str | None = Field(None, description="people's part")
    task_title: str | None = Field(None, description="what a person calls the task")
    task_description: str | None = Field(None, description="what the task does")
    task_success: str | None = Field(None, description="did this step do what it should")
    instructions: str | None = Field(None, description="how it was to be done")
    inputs: str | None = Field(None, description="data it takes")
    outputs: str | None = Field(None, description="data it leaves")
    result: str | None = Field(
        None,
        description="what it returned, an object: the names of its fields become `outputs`, what they hold is left out",
    )
    duration_ms: str | None = Field(None, description="working time, milliseconds, where it is stated")
    tokens_in: str | None = Field(None, description="tokens read")
    tokens_out: str | None = Field(None, description="tokens written")
    memory_gb: str | None = Field(None, description="memory held")
    threads: str | None = Field(None, description="threads held")

    @model_validator(mode="after")
    def _one_of_outputs_and_result(self) -> "EventNames":
        if self.outputs is not None and self.result is not None:
            raise ValueError("give outputs or result, because both say what a step leaves")
        return self


class Columns(EventNames, CaseNames):
    """`[columns]`: the columns of CSV files, and the attributes of events and traces in XES."""

    success: str | None = Field(None, description="the case's outcome as a boolean; [success] is for everything else")
    scope: str | None = Field(
        None,
        description="column within which ids of cases are given, such as the client: the same id of `case` under two "
        "of its values is two cases",
    )
    strip_zeros: bool = Field(
        False,
        description="CSV and Parquet: ids of `case` that are numbers are read without leading zeros and .0, so that "
        "0012 in one file and 12 or 12.0 in another are one case",
    )

    @property
    def joined_times(self) -> dict[str, tuple[str, str]]:
        """Returns the columns of day and hour of each time that stands in two, by the name of both together."""
        pairs = [value for value in (self.start, self.end, self.time) if isinstance(value, list)]
        return {" ".join(pair): (pair[0], pair[1]) for pair in pairs}

    @property
    def joined_id(self) -> dict[str, tuple[str, str]]:
        """Returns the two columns that tell the case together, where `scope` is stated, by the name of both."""
        return {f"{self.scope} {self.case}": (self.scope, self.case)} if self.scope and self.case else {}

    @model_validator(mode="after")
    def _names_what_is_stripped(self) -> "Columns":
        if self.strip_zeros and (self.case is None or self.scope):
            raise ValueError(
                "strip_zeros needs case, the column whose ids are numbers with leading zeros, and excludes scope"
            )
        if self.scope and self.case is None:
            raise ValueError("scope needs case, the column of the ids that are given within it")
        return self


def common_name(one: str, other: str) -> str:
    """Returns what the names of two columns have in common at their begin or end: "Check begin", "Check end"."""
    parts, others = (re.split(r"([\s_:./()-]+)", name.strip()) for name in (one, other))
    before = next((n for n, (a, b) in enumerate(zip(parts, others, strict=False)) if a != b), len(parts))
    behind = next((n for n, (a, b) in enumerate(zip(parts[::-1], others[::-1], strict=False)) if a != b), 0)
    if one == other:
        return one
    common = max("".join(parts[:before]), "".join(parts[len(parts) - behind :]), key=len)
    return common.strip(" _:./()-")


class TableLayout(Section):
    """`[table]`: how the tables of files are laid out, where a row is not simply an event."""

    sheet: TextList = Field(
        [], description="Excel: the sheet to read, or several with one header; default: the one that looks like a log"
    )
    steps: TextList = Field(
        [],
        description="columns with the time of a step each, in a table with one row for each case; their names are the "
        "activities",
    )
    ends: TextList = Field(
        [],
        description="columns with the end of each of `steps`, in the same order: those have its begin then, and the "
        "activity is what both names have in common",
    )
    fill: TextList = Field(
        [], description="columns whose empty cells have the value above, as in reports that print an id once"
    )
    names: dict[str, str] = Field(
        {},
        description='the name of each activity that the table states as a code, e.g. names = { "020" = "Send fine" }',
    )
    cases: str | None = Field(
        None, description="path, in the source, of the table with one row for each case and the case's own values"
    )
    key: str | None = Field(None, description="column of `cases` with the id of the case; default: as in the events")

    @model_validator(mode="after")
    def _one_layout(self) -> "TableLayout":
        if self.steps and self.cases:
            raise ValueError("give steps or cases: a table with a column for each step has the values of its cases")
        if self.key and not self.cases:
            raise ValueError("key names a column of cases, the table of the cases; name both")
        if self.ends and not (len(self.ends) == len(self.steps) and all(map(common_name, self.steps, self.ends))):
            raise ValueError("ends has one column for each of steps, and the names of both have words in common")
        return self


class Record(CaseNames):
    """`[record]`: dotted paths in a JSONL record."""

    tasks: str | None = Field(None, description="path of the list of tasks")
    drop_tasks: TextList = Field([], description="names that are no work")
    cost: str | None = Field(None, description="the same as case_cost")
    success: str | None = Field(None, description="the case's outcome as a boolean")


class TaskPaths(EventNames):
    """`[task]`: dotted paths in each element of `[record].tasks`."""

    title: str | None = Field(None, description="the same as task_title")
    description: str | None = Field(None, description="the same as task_description")
    success: str | None = Field(None, description="the same as task_success")
    predecessors: str | None = Field(None, description="list of the places, from 0, of the tasks it directly follows")
    attributes: TextList | None = Field(None, description="the task's other attributes; default: all")


class Success(Section):
    """`[success]`: one rule that decides whether a case succeeded."""

    column: str | None = Field(None, description="with equals: the case succeeded where this column has that value")
    equals: bool | float | str | list[bool | float | str] | None = Field(
        None, description="the value, or any of several"
    )
    last_activity_in: TextList | None = Field(None, description="succeeded when the last task is one of these")
    contains_activity: TextList | None = Field(None, description="succeeded when one of these was done")
    contains_none_of: TextList | None = Field(None, description="succeeded when none of these was done")

    @model_validator(mode="after")
    def _one_rule(self) -> "Success":
        rules = [
            r
            for r in (self.column, self.last_activity_in, self.contains_activity, self.contains_none_of)
            if r is not None
        ]
        if len(rules) > 1:
            raise ValueError(
                "give one rule: column with equals, last_activity_in, contains_activity or contains_none_of"
            )
        if (self.column is None) != (self.equals is None):
            raise ValueError("column and equals go together")
        return self

    @property
    def by_activities(self) -> bool:
        """Returns whether a case succeeds by what was done in it, so that its outcome is no judgement of the work.

        That a rejection is missing (`contains_none_of`) is a judgement: nobody plans the rejection.
        """
        return self.last_activity_in is not None or self.contains_activity is not None


class RowFilter(Section):
    """`[rows]`: which rows of CSV and Parquet are read; the others are counted as no work."""

    only: dict[str, TextList] = Field(
        {}, description='read only rows with these values, e.g. only = { fieldname = ["state"] }'
    )
    without: dict[str, TextList] = Field(
        {}, description='leave out rows with these values, e.g. without = { "Order no." = ["Total"] }'
    )

    filled: TextList = Field([], description="leave out rows without a value in one of these columns, such as sums")

    @property
    def columns(self) -> frozenset[str]:
        """Returns the columns that tell which rows are read."""
        return frozenset((*self.only, *self.without, *self.filled))

    def keeps(self, fields: Mapping[str, Any]) -> bool:
        """Tells whether a row is read, by column name."""
        return all(self.keeps_value(name, fields.get(name)) for name in self.columns)

    def keeps_value(self, name: str, value: Any) -> bool:
        """Tells whether a row with this value in a column is read, as far as that column tells it."""
        written = "" if says_nothing(value) else text(value).strip()
        if name in self.filled and not written:
            return False
        return written in self.only.get(name, (written,)) and written not in self.without.get(name, ())


class Activities(Section):
    """`[activities]`: the kinds of activities that the classification by evidence gets wrong."""

    event: TextList = Field([], description="activities that happen by themselves or outside the office: no work steps")
    outcome: TextList = Field([], description="activities that tell how a case or an attempt ended: no work steps")
    step: TextList = Field([], description="activities that are work steps, whatever their names say")

    @property
    def stated(self) -> dict[str, ActivityKind]:
        """Returns the stated kind by activity name."""
        return {name: kind for kind in KINDS for name in getattr(self, kind)}

    @model_validator(mode="after")
    def _one_kind(self) -> "Activities":
        names = [name for kind in KINDS for name in dict.fromkeys(getattr(self, kind))]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"{', '.join(map(repr, twice))}: stated as two kinds; an activity is an event, an outcome or a step"
            )
        return self


class Events(Section):
    """`[events]`: which records are events of their own."""

    repeated: Literal["keep", "drop"] = Field(
        "keep",
        description="equal records of a case in one file: keep them as separate events, or drop all but one, as for "
        "exports whose joins double rows",
    )


class Transitions(Section):
    """`[transitions]`: what words of the source's life cycle mean, beside those that are known in several languages."""

    start: TextList = Field([], description="words that say that a step begins")
    complete: TextList = Field([], description="words that say that it ends")
    suspend: TextList = Field([], description="words that say that its work rests")
    resume: TextList = Field([], description="words that say that its work goes on")
    abort: TextList = Field([], description="words that say that it ends without success")
    other: TextList = Field([], description="words of what is no work, such as an assignment")
    step: TextList = Field([], description="words whose records are steps of their own, without begin and end")

    @property
    def meanings(self) -> dict[str, list[str]]:
        """Returns the words by meaning, see `raw.MEANINGS`."""
        named = {"abort": "ate_abort", "other": "schedule", "step": ""}
        return {named.get(name, name): words for name, words in self.model_dump().items()}


class OpenCases(Section):
    """`[forecasts]`: which cases of the export still run; without it, that is told from their silence."""

    open_cases: str | None = Field(
        None,
        min_length=1,
        description='"none": the export holds finished cases only; or the attribute that says that a case still runs, '
        'with its value where it is no word for yes, e.g. "status=running"',
    )
    end_activities: TextList = Field([], description="a case in which one of these was done has ended")

    @property
    def stated(self) -> tuple[str, ...]:
        """Returns what is stated, in the form that `OpenRule.of` reads."""
        return (
            *([self.open_cases] if self.open_cases else []),
            *(f"{END_OF_CASE}{name}" for name in self.end_activities),
        )


class Redact(Section):
    """`[redact]`: the attributes that never reach the lake unchanged."""

    drop: TextList = Field([], description="attributes left out")
    hash: TextList = Field([], description="attributes replaced by a hash, keyed with the lake's own key")
    mask: TextList = Field([], description="attributes replaced by ***")
    mask_text: bool = Field(
        True,
        description="mask e-mail addresses, telephone, account and identity numbers in free text and rejected records",
    )
    mask_names: bool = Field(
        False,
        description="mask also names and addresses that a title, a label or a street word tells; it finds a part of "
        "them only",
    )


class SourceSettings(Section):
    """All settings of `source.toml`."""

    industry: str | FromColumn | None = Field(None, description="of every case, or a column")
    client: str | FromColumn | None = Field(None, description="of every case, or a column")
    contract: str | FromColumn | None = Field(None, description="of every case, or a column")
    format: str | None = Field(None, description="where the file name does not tell")
    encoding: TextList = Field(
        [], description='of CSV, e.g. "cp1252"; of several, each line in the first that fits; default: detected'
    )
    delimiter: str | None = Field(None, description="of CSV files: one character; default: detected")
    kind: Literal["executed", "model"] | None = Field(
        None, description="executed or model; default: model for BPMN and n8n, else executed"
    )
    weight: int | FromColumn = Field(1, description="runs that one case stands for, or a column of the case that tells")
    activity: str | None = Field(
        None, description='template of the task key, e.g. "{concept:name} {lifecycle:transition}"'
    )
    timezone: str | None = Field(None, description="of times that state none, e.g. Europe/Amsterdam")
    time_format: TextList = Field(
        [],
        description='strptime formats of times that are written in no usual way, e.g. %d/%m/%Y %H:%M; "excel" reads '
        "days as spreadsheets count them, e.g. 45719.3125",
    )
    object_type: str | None = Field(None, description="OCEL: the type of the objects that are the cases")
    currency: str | None = Field(None, description="of amounts that state none, e.g. EUR; default: USD")
    usd_per_unit: Rates = Field({}, description="dollars a unit of a currency; wins over opus.toml's [currency]")
    decimal: Literal[".", ","] | None = Field(
        None, description="decimal sign of amounts; the other one then groups thousands"
    )
    merge: bool = Field(True, description="false keeps the source's tasks to itself")
    columns: Columns = Columns()
    table: TableLayout = TableLayout()
    record: Record = Record()
    task: TaskPaths = TaskPaths()
    success: Success = Success()
    rates: dict[str, float | TokenPrice] = Field(
        {}, description="$/h by actor or actor kind, $ per million tokens by model"
    )
    redact: Redact = Redact()
    activities: Activities = Activities()
    events: Events = Events()
    transitions: Transitions = Transitions()
    rows: RowFilter = RowFilter()
    forecasts: OpenCases = OpenCases()

    @model_validator(mode="after")
    def _redacts_joined_ids(self) -> "SourceSettings":
        for name, parts in self.columns.joined_id.items():
            for names in (self.redact.drop, self.redact.hash, self.redact.mask):
                names += [name] * (name not in names and not {*parts}.isdisjoint(names))
        return self

    @model_validator(mode="before")
    @classmethod
    def _earlier_name(cls, value: Any) -> Any:
        """Reads `duplicates`, as [events] repeated was called before."""
        if isinstance(value, dict) and "duplicates" in value and "events" not in value:
            return {k: v for k, v in value.items() if k != "duplicates"} | {"events": {"repeated": value["duplicates"]}}
        return value

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str | None) -> str | None:
        known = LOG_FORMATS.names()
        if value is not None and value not in known:
            raise ValueError(f"{value!r} is no format that is read; known are {', '.join(known)}")
        return value

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: list[str]) -> list[str]:
        for name in value:
            try:
                "".encode(name)
            except LookupError:
                raise ValueError(f"{name!r} is no text encoding; write for instance utf-8, cp1252 or utf-16") from None
        return value

    @property
    def stated_format(self) -> str | None:
        """The format that the settings tell of files whose names tell none: a delimiter is one of CSV files."""
        return self.format or ("csv" if self.delimiter else None)

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str | None) -> str | None:
        if value is not None and (len(value) != 1 or value in '\r\n"'):
            raise ValueError(f'{value!r} is no delimiter: one character, for instance ";" or "\\t"')
        return value

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ZoneInfo(value)
            except (KeyError, ValueError, OSError):
                raise ValueError(f"{value!r} is no time zone; did you mean {_nearest_zone(value)}?") from None
        return value

    @field_validator("time_format")
    @classmethod
    def _zones_by_offset(cls, value: list[str]) -> list[str]:
        if any("%Z" in form.replace("%%", "") for form in value):
            raise ValueError(
                "%Z does not tell which zone is meant; %z reads an offset; else write the name itself, and timezone"
            )
        return value

    @field_validator("currency")
    @classmethod
    def _three_letters(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch("[A-Za-z]{3}", value):
            raise ValueError(f"{value!r} is no currency; write its three letters, as in EUR")
        return value and value.upper()

    @field_validator("weight")
    @classmethod
    def _runs(cls, value: int | FromColumn) -> int | FromColumn:
        if isinstance(value, int) and not 1 <= value <= MOST_RUNS:
            raise ValueError(f"{value} is no number of runs: a whole number from 1 to {MOST_RUNS:,}")
        return value

    @field_validator("rates")
    @classmethod
    def _payable(cls, value: dict[str, float | TokenPrice]) -> dict[str, float | TokenPrice]:
        prices = [
            (name, p)
            for name, r in value.items()
            for p in ([r] if isinstance(r, float) else [r.tokens_in, r.tokens_out])
        ]
        bad = list(dict.fromkeys(name for name, price in prices if not 0 <= price <= MOST_USD))
        if bad:
            raise ValueError(f"the rate of {', '.join(bad)} must be a number of dollars from 0 to {MOST_USD:,.0f}")
        return value

    def column_of(self, name: str) -> str | None:
        """Returns the column of `name` (industry, client, contract or weight), or None.

        The column is stated with `{ column = ... }`, or under `[columns]` or `[record]`.
        """
        value = getattr(self, name)
        if isinstance(value, FromColumn):
            return value.column
        return getattr(self.columns, name, None) or getattr(self.record, name, None)

    def constant(self, name: str) -> str | None:
        """Returns the one value of `name` (industry, client or contract) for the whole source, or None."""
        value = getattr(self, name)
        return value if isinstance(value, str) else None


def _nearest_zone(value: str) -> str:
    """Returns the known time zone whose name is most similar.

    It compares the place in other regions, the whole name, and the place alone. It never returns an abbreviation.
    """
    zones = {
        zone.lower(): zone for zone in sorted(available_timezones()) if "/" in zone and not zone.startswith("Etc/")
    } | {"utc": "UTC"}
    places = {zone.rpartition("/")[2]: name for zone, name in zones.items()}
    wanted = value.strip().lower().replace(" ", "_")
    place = wanted.rpartition("/")[2]
    if place in places:
        return places[place]
    near = difflib.get_close_matches(wanted, zones, n=1, cutoff=0.8)
    if not near and len(place) > 4:
        near = difflib.get_close_matches(place, places, n=1, cutoff=0.7)
    return (zones | places)[near[0]] if near else "Europe/Amsterdam, or UTC"


def load_source(folder: Path) -> SourceSettings:
    """Loads the settings of the source in `folder`. Raises SettingsError with the file and the key."""
    path = folder / FILE_NAME
    return parse(SourceSettings, stated_toml(path, folder) or {}, str(path))
