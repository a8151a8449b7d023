"""Maps raw records (flat, attribute name to value) to events and case values by the column map of a source, and
decides by the rule of the source whether a case succeeded.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from opus_pipelines.history.records import values
from opus_pipelines.history.records.money import UNRATED, Money
from opus_pipelines.history.records.raw import Event, Task
from opus_pipelines.history.records.source_settings import SourceSettings, Success
from opus_pipelines.history.records.values import BadValueError, TimeParser, TransitionMeanings

CASE_PREFIXES = ("case:", "(case)_")  # how pm4py and Disco mark a case's attributes in a flat table
OUTCOME = "outcome"  # the raw value that [success].column names
LAST_WINS = frozenset({"success", OUTCOME})
_UNIQUE = ("activity", "start", "end", "time", "transition", "instance", "task_title", "event_id", "order")
ATTRIBUTE, KNOWN, OF_CASE = 1, 2, 3

Parse = Callable[[Any], Any]


AMOUNTS = {
    "cost": "cost_usd",
    "cost_compute": "cost_compute_usd",
    "cost_model": "cost_model_usd",
    "cost_human": "cost_human_usd",
}


def _parsers(decimal: str | None) -> dict[str, tuple[str, Parse]]:
    """Returns, by event-level name, the field of Task and the parser of its value, without the `AMOUNTS` of money."""
    amount, count = partial(values.amount, decimal=decimal), partial(values.count, decimal=decimal)
    return {
        "task_description": ("description", values.text),
        "instructions": ("instructions", values.instructions),
        "actor": ("actor", values.text),
        "actor_kind": ("actor_kind", values.actor_kind),
        "model": ("model", values.text),
        "task_success": ("success", values.boolean),
        "inputs": ("inputs", values.texts),
        "outputs": ("outputs", values.texts),
        "result": ("outputs", values.field_names),
        "duration_ms": ("duration_ms", partial(values.duration, decimal=decimal)),
        "tokens_in": ("tokens_in", count),
        "tokens_out": ("tokens_out", count),
        "memory_gb": ("memory_gb", amount),
        "threads": ("threads", amount),
        "predecessors": ("predecessors", values.places),
    }


def _as_stated(value: Any) -> Any:
    """Returns a value with its type unchanged, because a rule compares it."""
    values.text(value)
    return value


def _case_parsers() -> dict[str, Parse]:
    plain = dict.fromkeys(
        ("case", "title", "description", "process_context", "industry", "client", "contract"), values.text
    )
    rest = {"expected_outcome": values.boolean, "success": values.boolean, "weight": values.weight, OUTCOME: _as_stated}
    return {**plain, **rest}


def case_names(settings: SourceSettings, stated: Mapping[str, str]) -> dict[str, str]:
    """Returns the raw key of each case-level name.

    It takes the names that the settings state and adds industry, client, contract, weight and the column of the success
    rule.
    """
    names = dict(stated)
    for name in ("industry", "client", "contract", "weight"):
        if settings.constant(name) is not None:
            names.pop(name, None)
        elif column := settings.column_of(name):
            names[name] = column
    if settings.success.column:
        names[OUTCOME] = settings.success.column
    return names


class CaseMap:
    """Collects the values of a case from its own record or from its events.

    `fields` has (name, key, parser) of each value; `cost_key` and `currency_key` are the keys of cost and currency.
    """

    def __init__(self, names: Mapping[str, str], attributes: list[str] | None, money: Money) -> None:
        parsers = _case_parsers()
        self.fields = [(name, key, parsers[name]) for name, key in names.items() if name in parsers]
        self.cost_key, self.currency_key = names.get("case_cost"), names.get("currency")
        of_cost = (self.cost_key, self.currency_key) if self.cost_key else ()
        self.keys = frozenset(key for key in (*(key for _, key, _ in self.fields), *of_cost) if key)
        self.attributes = attributes
        self.money = money

    def currency(self, raw: Mapping[str, Any]) -> Any:
        """Returns the currency that the record states for its amounts, or None if it states none."""
        return raw.get(self.currency_key) if self.currency_key else None

    def collect(self, fields: dict[str, Any], raw: Mapping[str, Any]) -> None:
        """Copies from `raw` the values that `fields` lacks.

        The last stated outcome replaces earlier ones. Raises BadValueError.
        """
        for name, key, parse in self.fields:
            value = raw.get(key)
            if value is not None and value != "" and (name not in fields or name in LAST_WINS):
                fields[name] = _parsed(key, parse, value)
        if self.cost_key and "case_cost" not in fields and (value := raw.get(self.cost_key)) not in (None, ""):
            amount = _parsed(
                self.cost_key, partial(self.money.read, record_currency=self.currency(raw), column=self.cost_key), value
            )
            fields["case_cost"] = amount.usd
            fields.setdefault("attributes", {}).update(amount.attributes("cost"))

    def collect_attributes(self, fields: dict[str, Any], raw: Mapping[str, Any]) -> None:
        """Copies the attributes of a case's own record.

        These are the ones listed in the settings, or all that have no other meaning.
        """
        kept = fields.setdefault("attributes", {})
        for key, value in raw.items():
            if value is not None and value != "" and self.wanted(key):
                kept.setdefault(key, _parsed(key, values.text, value))

    def wanted(self, key: str) -> bool:
        """Tells whether a key of a case's own record is one of the case's attributes."""
        if self.attributes is None:
            return key not in self.keys
        return any(key == name or key.startswith(f"{name}.") for name in self.attributes)


class EventMap:
    """Builds an event from each raw record.

    `keys` are the keys by name, `fields` (field of Task, parser, key) of each field, `amounts` (name, field, key) of
    each amount, and `currency` and `group` the keys of the currency and of the group of an actor. `interval`: a record
    states start and end itself. `template`: the task key is put together from several attributes. `meaning` tells what
    a transition means.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        case_map: CaseMap,
        settings: SourceSettings,
        times: TimeParser,
        attributes: list[str] | None = None,
    ) -> None:
        parsers = _parsers(settings.decimal)
        self.keys = {name: names.get(name, "") for name in _UNIQUE}
        if self.keys["start"] and not self.keys["end"]:
            self.keys["end"], self.keys["time"] = self.keys["time"], ""
        self.interval = bool(self.keys["start"] or self.keys["end"])
        self.fields = [(*parsers[name], key) for name, key in names.items() if name in parsers]
        self.amounts = [(name, AMOUNTS[name], key) for name, key in names.items() if name in AMOUNTS]
        self.currency = names.get("currency") if self.amounts else None
        self._money = case_map.money
        self.template = settings.activity
        self.group = names.get("actor_group")
        self.times = times
        self.meaning = TransitionMeanings(settings.transitions.meanings)
        self._case_map = case_map
        self._listed = attributes
        known = {key for name, key in names.items() if name != "currency" or self.amounts}
        self._kinds = dict.fromkeys(known | case_map.keys, KNOWN)

    def event(
        self, raw: Mapping[str, Any], position: int, case_fields: dict[str, Any] | None = None, currency: Any = None
    ) -> Event:
        """Builds the event of a raw record and copies case values to `case_fields`.

        `currency` applies to amounts without their own currency; with None the settings decide. Raises BadValueError.
        """
        key = self._task_key(raw)
        task = Task(task_key=key, title=key)
        for field, parse, column in self.fields:
            value = raw.get(column)
            if value is not None and value != "":
                setattr(task, field, _parsed(column, parse, value))
        if title := raw.get(self.keys["task_title"]):
            task.title = values.name(title)
        if task.model and task.actor_kind is None:
            task.actor_kind = "model"
        event = self._timed(Event(position, task, None), raw)
        if case_fields is not None:
            self._case_map.collect(case_fields, raw)
        self._sort_attributes(task, raw, case_fields)
        if self.group and (group := raw.get(self.group)) not in (None, ""):
            task.attributes["actor_group"] = _parsed(self.group, values.text, group)
        if self.amounts:
            self._pay(task, raw, currency)
        return event

    @property
    def combines(self) -> bool:
        """Tells whether several attributes of an event are combined into one value."""
        return self.interval or self.template is not None or self.group is not None or bool(self.keys["order"])

    def role(self, key: str) -> int:
        """Returns ATTRIBUTE for an attribute of the task, OF_CASE for one of the case, or KNOWN for any other key."""
        return self._kinds.get(key) or self._classify(key)

    def _pay(self, task: Task, raw: Mapping[str, Any], currency: Any) -> None:
        """Sets the amounts in dollars.

        Amounts of another currency are also kept as attributes. An amount without an exchange rate is marked as
        unknown.
        """
        own = raw.get(self.currency) if self.currency else None
        for name, field, key in self.amounts:
            value = raw.get(key)
            if value is None or value == "":
                continue
            read = partial(self._money.read, record_currency=currency if own in (None, "") else own, column=key)
            amount = _parsed(key, read, value)
            setattr(task, field, amount.usd)
            task.attributes |= amount.attributes(name)
            if amount.usd is None:
                task.cost_basis = UNRATED

    def _task_key(self, raw: Mapping[str, Any]) -> str:
        if self.template is not None:
            key = values.name(re.sub(r"\{([^{}]+)\}", lambda m: values.name(raw.get(m[1], "")), self.template))
        else:
            activity = raw.get(self.keys["activity"])
            key = "" if activity is None else _parsed(self.keys["activity"], values.name, activity)
        if not key.strip():
            raise BadValueError(
                "no_activity", f"the record names no activity (looked for {self.template or self.keys['activity']})"
            )
        return key

    def _timed(self, event: Event, raw: Mapping[str, Any]) -> Event:
        moment = self._time(raw, "time")
        transition, instance = raw.get(self.keys["transition"]), raw.get(self.keys["instance"])
        event.transition = self.meaning(values.text(transition)) if transition else None
        event.instance = values.text(instance) if instance else None
        event_id = raw.get(self.keys["event_id"])
        event.event_id = values.text(event_id) if event_id not in (None, "") else None
        if self.interval:
            event.interval = True
            event.time = _spread(event.task, self._time(raw, "start"), self._time(raw, "end"), moment)
        else:
            event.time = moment
        event.order = self._order(raw)
        return event

    def _order(self, raw: Mapping[str, Any]) -> float:
        """Returns what orders events of the same time: the column for it, else the nanoseconds of the time."""
        if key := self.keys["order"]:
            value = raw.get(key)
            return math.inf if value in (None, "") else float(_parsed(key, values.number, value))
        times = (raw.get(self.keys[name]) for name in ("start", "end", "time"))
        return next((values.nanoseconds(time) for time in times if time not in (None, "")), 0)

    def _time(self, raw: Mapping[str, Any], name: str) -> int | None:
        value = raw.get(self.keys[name])
        if value is None or value == "":
            return None
        return int(_parsed(self.keys[name], self.times, value))

    def _sort_attributes(self, task: Task, raw: Mapping[str, Any], case_fields: dict[str, Any] | None) -> None:
        attributes = task.attributes
        for key, value in raw.items():
            if value is None or value == "":
                continue
            kind = self._kinds.get(key) or self._classify(key)
            if kind == ATTRIBUTE:
                attributes[key] = _parsed(key, values.text, value)
            elif kind == OF_CASE and case_fields is not None:
                case_fields.setdefault("attributes", {}).setdefault(unprefixed(key), _parsed(key, values.text, value))

    def _classify(self, key: str) -> int:
        """Decides whether an unmapped attribute belongs to the task, to the case, or to neither.

        The answer is cached because every event asks for it.
        """
        of_case = self._case_map.attributes
        if self._listed is not None:
            kind = ATTRIBUTE if any(key == name or key.startswith(f"{name}.") for name in self._listed) else KNOWN
        elif key in of_case if of_case is not None else key.startswith(CASE_PREFIXES):
            kind = OF_CASE
        else:
            kind = ATTRIBUTE
        self._kinds[key] = kind
        return kind


def unprefixed(key: str) -> str:
    """Removes the prefix that marks an attribute of the case in a flat table."""
    for prefix in CASE_PREFIXES:
        key = key.removeprefix(prefix)
    return key


def _parsed(column: str, parse: Parse, value: Any) -> Any:
    try:
        return parse(value)
    except BadValueError as error:
        raise BadValueError(error.code, f"{column}: {error.reason}") from None


def _spread(task: Task, start: int | None, end: int | None, moment: int | None) -> int | None:
    """Sets start, end and duration of a record that states them itself, and returns the time that orders the record."""
    if start is not None and end is not None:
        if end < start:
            raise BadValueError("negative_duration", f"it ends {(start - end) / 1e6:,.0f} s before it starts")
        task.duration_ms = (end - start) / 1000 if task.duration_ms is None else task.duration_ms
    task.started_at = next((t for t in (start, end, moment) if t is not None), None)
    task.ended_at = end if start is not None or end is not None else moment
    return task.started_at


def succeeded(rule: Success, fields: dict[str, Any], stated: Any, tasks: list[Task]) -> bool | None:
    """Returns the outcome of a case: by the rule, else by its own `success` value in `fields`.

    `stated` is the value of the rule's column. A rule about tasks cannot decide a case without tasks.
    """
    if rule.column is not None:
        return None if stated is None else _equals(stated, rule.equals)
    done = [t.task_key for t in tasks]
    if rule.last_activity_in is not None:
        return done[-1] in rule.last_activity_in if done else None
    if rule.contains_activity is not None:
        return not set(done).isdisjoint(rule.contains_activity) if done else None
    if rule.contains_none_of is not None:
        return set(done).isdisjoint(rule.contains_none_of) if done else None
    return fields.get("success")


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_equals(value, w) for w in wanted)
    try:
        if isinstance(wanted, bool):
            return values.boolean(value) == wanted
        if isinstance(wanted, float):
            return values.number(value) == wanted
    except BadValueError:
        return False
    return bool(values.text(value).strip() == wanted.strip())
