"""The second stage: the inputs of each step, from its annotation and what the catalogue has: tables, columns, values.

An input that nothing states stays out, unless it is mandatory and the steps before it leave one value. What is not
sound for the catalogue is taken out again.
"""

import re
from dataclasses import replace

from opus_pipelines.flows.enterprise.catalogue import USERS, Catalogue, Slot, Step
from opus_pipelines.flows.enterprise.catalogue_words import DATE, CatalogueWords, Condition, TriggerChoice, words
from opus_pipelines.flows.enterprise.documents import (
    DOUNTIL,
    ELSEIF,
    FOREACH,
    IF,
    Component,
    FlowDocument,
    Input,
    Trigger,
)
from opus_pipelines.flows.enterprise.validation import structure_errors
from opus_pipelines.flows.enterprise.values import EncodedQuery, PillValue, Scopes, Term, column_pill, query_text

_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]")
_CHANNEL = re.compile(r"#[\w-]+")
_NUMBERS = {"one": 1, "a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "twelve": 12}
_DURATION = re.compile(rf"\b(\d+|{'|'.join(_NUMBERS)})\s+(second|minute|min|hour|hr|day|week)s?\b", re.IGNORECASE)
_TIME = re.compile(r"\b(\d\d?:\d\d)\b|\b(\d\d?)\s?([ap]m)\b|\b(noon|midnight)\b", re.IGNORECASE)
_DATE = re.compile(DATE, re.IGNORECASE)
_INTO = re.compile(r"\b(?:in)?to ([A-Z]\w+)")
_LICENSE = re.compile(r"\blicen[sc]es? (?:for |of )?([A-Z]\w+)|\b([A-Z]\w+) licen[sc]e")
_SET = re.compile(r"\b(?:set|update|close|change|put|move)\s+(?:its|the)\s+(.*)", re.IGNORECASE)
_DAY = re.compile(r"\b((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)s?\b", re.IGNORECASE)
_DAY_OF_MONTH = re.compile(r"\b(?:day (\d{1,2})|(first)|(\d{1,2})(?:st|nd|rd|th))\b", re.IGNORECASE)
_CONTENT = ("message", "body", "note", "notification", "summary")
_REJECTED = re.compile(r"\b(?:reject\w*|declin\w*|den(?:y|ied)|refus\w*|not approved|no)\b", re.IGNORECASE)
_APPROVED = re.compile(r"\b(?:approv\w*|accept\w*|yes|agree\w*)\b", re.IGNORECASE)


class InputComposer:
    """Fills the inputs of outlines."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue, self._words = catalogue, CatalogueWords(catalogue)
        self._triggers = TriggerChoice(self._words)

    def populate(self, outline: FlowDocument) -> FlowDocument:
        """Returns the outline with inputs; whatever is not sound for the catalogue is left out."""
        flow = outline
        if outline.trigger is not None:
            flow = replace(flow, triggers=(self._trigger(outline.trigger),))
        for place in range(len(flow.components)):
            component = flow.components[place]
            entry = self._catalogue.step(component)
            if entry is None:
                continue
            given = _Step(self._catalogue, self._words, flow, place).inputs(entry)
            components = list(flow.components)
            components[place] = replace(component, inputs=given)
            flow = replace(flow, components=tuple(components))
        return without_unsound_inputs(flow, self._catalogue)

    def _trigger(self, trigger: Trigger) -> Trigger:
        entry, text = self._catalogue.triggers.get(trigger.type), trigger.annotation
        if entry is None:
            return trigger
        values: dict[str, str] = {}
        if "table" in entry.inputs:
            table = values["table"] = self._triggers.table(text) or next(iter(self._catalogue.tables))
            stated = self._words.conditions(text, table) + self._words.related(text, table)
            changes = self._triggers.changes(text, stated) if trigger.type == "record_update" else set()
            stated = [replace(c, operator="CHANGESTO") if c.place in changes else c for c in stated]
            column = self._triggers.changed_column(text, table) if trigger.type == "record_update" else ""
            if stated:
                values["condition"] = stated_query(stated, "=")
            elif column:
                values["condition"] = f"{column}VALCHANGES"
        times = {"day": _DAY.search(text), "every": _DURATION.search(text), "at": _DATE.search(text)}
        if trigger.type == "monthly":
            times["day"] = _DAY_OF_MONTH.search(text)
        for name, match in times.items():
            if name in entry.inputs and match is not None:
                values[name] = _duration(match) if name == "every" else _shown(next(g for g in match.groups() if g))
        if "time" in entry.inputs and (time := _TIME.search(text)):
            values["time"] = _clock(time)
        if "every" in entry.inputs:
            values.setdefault("every", "1 hour")
        return replace(trigger, inputs=tuple(Input(n, values[n]) for n in entry.inputs if values.get(n)))


class _Step:
    """One step where it stands in its flow."""

    def __init__(self, catalogue: Catalogue, catalogue_words: CatalogueWords, flow: FlowDocument, place: int) -> None:
        self._catalogue, self._words, self._flow = catalogue, catalogue_words, flow
        self._own = flow.components[place]
        self._before = flow.components[:place]
        self._scopes = Scopes(flow, catalogue)
        self._text = self._own.annotation

    def inputs(self, entry: Step) -> tuple[Input, ...]:
        """Returns the inputs that the annotation states, in the order of the catalogue."""
        self._entry = entry
        self._table = self._words.table(self._text) if "table" in entry.inputs else ""
        if "table" in entry.inputs and not self._table:
            start = self._flow.trigger.annotation if self._flow.trigger else ""
            self._table = self._record_table() or self._words.table(start) or self._nearest_table()
        values = {slot.name: self._value(slot) for slot in entry.inputs.values()}
        return tuple(Input(name, value) for name, value in values.items() if value)

    def _nearest_table(self) -> str:
        """The table that the steps before use last, or the first one that a later step names."""
        before = [t for c in self._before if (t := self._scopes.table_of(c))]
        later = [t for c in self._flow.components if (t := self._words.table(c.annotation))]
        return before[-1] if before else next(iter(later), "")

    def _value(self, slot: Slot) -> str:
        if self._own.is_logic:
            return self._items() if self._own.name == FOREACH else self._condition()
        if slot.type == "table":
            return self._table
        if slot.type == "query":
            table = self._table or self._record_table()
            stated = self._words.conditions(self._text, table)
            return stated_query(stated, "=") or (self._link(table) if slot.name == "conditions" else "")
        if slot.type == "fields":
            return self._fields(self._table or self._record_table())
        if slot.type == "record":
            return self._user() if slot.name == "user" else self._record(slot)
        if slot.type == "duration":
            found = _DURATION.search(self._text)
            return _duration(found) if found else "1 hour" if slot.is_mandatory else ""
        return self._free_text(slot) if slot.type == "text" else ""

    def _free_text(self, slot: Slot) -> str:
        quoted = _QUOTED.search(self._text)
        if slot.name in _CONTENT and quoted:
            return quoted[1].strip()
        if slot.name == "channel":
            found = _CHANNEL.search(self._text)
            return found[0] if found else ""
        if slot.name in ("to", "approver", "signer"):
            return self._person(slot)
        if slot.name == "group":
            return self._group()
        if slot.name in ("file", "document"):
            return self._pill_of("generate_pdf", "file")
        if slot.name == "message" and slot.is_mandatory:
            return self._text[:200]
        if slot.name == "text":
            return self._text_of_record()
        if slot.name in ("language", "license"):
            found = (_INTO if slot.name == "language" else _LICENSE).search(self._text)
            return next((group for group in found.groups() if group), "") if found else ""
        return ""

    def _text_of_record(self) -> str:
        """The text that a step reads: a column of the record in hand that the words name, or the mail."""
        if self._flow.trigger and self._flow.trigger.type == "email":
            return "{{email.body}}"
        table = self._record_table()
        columns = self._catalogue.columns(table)
        named = [m.name for m in self._words.columns(self._text, table) if columns[m.name].type in ("string", "text")]
        return column_pill(self._current(), named[0]) if named and self._current() else ""

    def _person(self, slot: Slot) -> str:
        record = self._current()
        path = self._words.person(self._text, self._record_table())
        if path and record:
            return column_pill(record, path)
        if group := self._group():
            return group
        pill = self._pill_of("get_on_call", "user")
        if pill and slot.name == "to":
            return pill
        if self._flow.trigger is not None and self._flow.trigger.type == "email" and slot.name == "to":
            return "{{email.from_user}}"
        if not slot.is_mandatory or not record:
            return "Service Desk" if slot.is_mandatory else ""
        people = self._catalogue.people(self._record_table())
        return column_pill(record, people[0]) if people else "Service Desk"

    def _group(self) -> str:
        """The label of a group that the text names; groups are values of the catalogue."""
        column = self._catalogue.column("sys_user_group", "name")
        labels = column.choices.values() if column else ()
        own = " ".join(words(self._text))
        return next((label for label in labels if " ".join(words(label)) in own), "")

    def _user(self) -> str:
        record, table = self._current(), self._record_table()
        text = re.sub(r"(?i)\bmanager\b", "", self._text) if self._entry.name == "look_up_manager" else self._text
        text = text.partition(" ")[2]  # the verb of "assign a license" names no person
        path = self._words.person(text, table)
        if record and path and table != USERS:
            return column_pill(record, path)
        if table == USERS:
            return record
        if self._flow.trigger is not None and self._flow.trigger.type == "email":
            return "{{email.from_user}}"
        people = self._catalogue.people(table)
        named = [c for c in people if any(self._mentioned(c, step) for step in self._before)]
        chosen = next(iter(named), people[0] if people else "")
        return column_pill(record, chosen) if record and chosen else ""

    def _mentioned(self, column: str, step: Component) -> bool:
        return any(f".{column}" in str(given.value) for given in step.inputs)

    def _record(self, slot: Slot) -> str:
        if slot.name in ("article", "vendor", "invoice"):
            pill = self._pill_of("create_record", "record")
            if pill:
                return pill
        look_up = next((c for c in reversed(self._before) if c.definition == "look_up_record"), None)
        if look_up is not None and self._scopes.sees(self._own, look_up):
            return "{{look_up_record.record}}"
        return self._set_reference() or self._current()

    def _set_reference(self) -> str:
        """The record that the one in hand refers to, where the words set that: "set its request item to Closed"."""
        found, table = _SET.search(self._text), self._record_table()
        if found is None or self._entry.name != "update_record":
            return ""
        named = next((m for m in self._words.columns(found[1], table) if m.start == 0), None)
        column = self._catalogue.column(table, named.name) if named else None
        target = column.reference if column else ""
        if named is None or not target or target == USERS or not self._words.conditions(found[1], target):
            return ""
        return column_pill(self._current(), named.name)

    def _pill_of(self, definition: str, output: str) -> str:
        step = next((c for c in reversed(self._before) if c.definition == definition), None)
        return f"{{{{{definition}.{output}}}}}" if step is not None and self._scopes.sees(self._own, step) else ""

    def _current(self) -> str:
        """The record in hand: the item of the loop around the step, or the record of the trigger."""
        loops = [c for c in self._before if c.name == FOREACH and c.is_logic]
        if any(self._scopes.sees(self._own, loop) for loop in loops):
            return "{{foreach.item}}"
        return self._trigger_record()[0]

    def _trigger_record(self) -> tuple[str, str]:
        """The record of the trigger and its table; empty where it has none."""
        trigger = self._flow.trigger
        entry = self._catalogue.triggers.get(trigger.type) if trigger else None
        output = next((s.name for s in entry.outputs.values() if s.type == "record"), None) if entry else None
        if trigger is None or output is None:
            return "", ""
        found = self._scopes.resolve(f"{trigger.type}.{output}", self._own)
        return f"{{{{{trigger.type}.{output}}}}}", found.table if isinstance(found, PillValue) else ""

    def _record_table(self) -> str:
        current = self._current()
        record = self._scopes.resolve(current[2:-2], self._own) if current else None
        return record.table if isinstance(record, PillValue) else ""

    def _fields(self, table: str) -> str:
        """Values to set: what the text says of columns, or a group to which the record is assigned."""
        target = self._set_reference()
        if target:
            table = self._catalogue.tables[table].columns[target[2:-2].rpartition(".")[2]].reference
        stated = self._words.conditions(self._text, table)
        if self._entry.name == "create_record":
            stated = [c for c in stated if c.operator == "="]
        if stated:
            return stated_query([replace(c, operator="=") for c in stated], "=")
        if ended := self._words.ended(self._text, table):
            return stated_query([ended], "=")
        group, columns = self._group(), self._catalogue.columns(table)
        if group and "assignment_group" in columns:
            return f"assignment_group={group.lower().replace(' ', '_')}"
        path = self._words.person(re.sub(r"(?i)\bassign(?:ed)? to\b", "to", self._text), table)
        record, start = self._trigger_record()
        linked = any(f"={record}" in str(given.value) for step in self._before for given in step.inputs if record)
        if (
            start == USERS
            and linked
            and "assigned_to" in columns
            and re.search(r"(?i)\bassign.*\bmanager\b", self._text)
        ):
            return f"assigned_to={column_pill(record, 'manager')}"  # that of the person whose records these are
        if path and "assigned_to" in columns and re.search(r"(?i)\b(?:re)?assign", self._text) and self._current():
            return f"assigned_to={column_pill(self._current(), path)}"
        return ""

    def _link(self, table: str) -> str:
        """The column of a table that refers to the record in hand, where the text points to that record."""
        own = set(words(self._text))
        trigger, start = self._trigger_record()
        column = self._catalogue.column(table, self._words.person(self._text, table))
        if start and own & {"where", "whose", "that", "which"} and column and column.reference == start:
            return f"{column.name}={trigger}"  # "incidents where the user is the assignee"
        if not own & {"it", "its", "their", "this", "that", "belonging", "related", "them"} or not self._current():
            return ""
        target = self._record_table()
        columns = self._catalogue.columns(table).values()
        reference = next((c.name for c in columns if c.reference and c.reference == target), "")
        return f"{reference}={self._current()}" if reference else ""

    def _items(self) -> str:
        lists = [c for c in self._before if c.definition == "look_up_records" and self._scopes.sees(self._own, c)]
        return "{{look_up_records.records}}" if lists else self._pill_of("get_attachments", "attachments")

    def _condition(self) -> str:
        if self._own.name not in (IF, ELSEIF, DOUNTIL):
            return ""
        asked = self._pill_of("ask_for_approval", "approved")
        record, table = self._current(), self._record_table()
        stated = self._words.conditions(self._text, table)
        is_approval = _APPROVED.search(self._text) or _REJECTED.search(self._text)
        if asked and is_approval and not any(c.column in words(self._text) for c in stated):
            return f"{asked}={'false' if _REJECTED.search(self._text) else 'true'}"
        if stated and record:
            terms = [Term(column_pill(record, c.column), c.operator, c.value) for c in stated]
            return query_text(EncodedQuery(tuple(terms)))
        signed = self._pill_of("create_document_for_signature", "signed")
        if signed and "signed" in words(self._text):
            return f"{signed}=true"
        return f"{asked}=true" if asked else ""


def stated_query(stated: list[Condition], operator: str) -> str:
    """Returns conditions as an encoded query; `operator` replaces the plain =."""
    terms = [Term(c.column, operator if c.operator == "=" else c.operator, c.value) for c in stated]
    return query_text(EncodedQuery(tuple(terms)))


def without_unsound_inputs(flow: FlowDocument, catalogue: Catalogue) -> FlowDocument:
    """Returns the flow without the inputs that a structure error names; what is mandatory stays as an error."""
    wrong = {e.element for e in structure_errors(flow, catalogue) if ", input " in e.element}
    if not wrong:
        return flow

    def sound(owner: str, given: tuple[Input, ...]) -> tuple[Input, ...]:
        return tuple(i for i in given if f"{owner}, input {i.name}" not in wrong)

    return replace(
        flow,
        triggers=tuple(replace(t, inputs=sound("trigger", t.inputs)) for t in flow.triggers),
        components=tuple(replace(c, inputs=sound(c.element, c.inputs)) for c in flow.components),
    )


def _duration(match: re.Match[str]) -> str:
    number = match[1].lower()
    count = _NUMBERS.get(number) or int(number)
    unit = {"min": "minute", "hr": "hour"}.get(match[2].lower(), match[2].lower())
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _clock(match: re.Match[str]) -> str:
    """A time of the day as hours and minutes: "6 pm" is 18:00."""
    written, hour, half, word = match.groups()
    if written:
        return str(written)
    if word:
        return "12:00" if word.lower() == "noon" else "00:00"
    return f"{int(hour) % 12 + (12 if half.lower() == 'pm' else 0):02}:00"


def _shown(text: str) -> str:
    return "1" if text.lower() == "first" else text
