"""Which entries of the catalogue a text names, and where: tables, columns, values, people, triggers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from opus_pipelines.flows.enterprise.catalogue import USERS, Catalogue, Column
from opus_pipelines.language.word_stems import stem

_WORD = re.compile(r"[^\W_]+(?:'s)?")
_VALUE_CUES = frozenset(
    ("is", "are", "was", "to", "as", "becomes", "become", "gets", "get", "moves", "in", "into", "still", "with")
) | {"been", "state", "status", "now", "being", "about", "reaches", "reached"}
_MORE = frozenset(("above", "over", "exceed", "exceeds", "more", "greater", "beyond"))
_LESS = frozenset(("below", "under", "less", "fewer"))
_WINDOW = 5  # words between a column and its value
_SHORT = {  # abbreviations of the trade
    "mgr": ("manager",),
    "grp": ("group",),
    "inc": ("incident",),
    "prio": ("priority",),
    "sev": ("severity",),
    "dept": ("department",),
    "emp": ("employee",),
    "acct": ("account",),
    "secops": ("security", "operations"),
    "netops": ("network", "operations"),
    "dbas": ("database", "team"),
}
# Who a record is about comes before who works on it.
_ABOUT = ("caller", "requested_for", "requested_by", "subject_person", "employee", "affected_user", "account")


@dataclass(frozen=True)
class NamedSpan:
    """A name that stands at the words `start` to `end` of a text."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Condition:
    """A column with an operator and a value that a text states, and the word at which it does."""

    column: str
    operator: str
    value: str
    place: int


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """Returns the words of a text in lower case, possessives cut, abbreviations of the trade written out."""
    written = (word.casefold().removesuffix("'s") for word in _WORD.findall(text.replace("’", "'")))
    return tuple(part for word in written for part in _SHORT.get(word, (word,)))


@lru_cache(maxsize=8192)
def word_stems(text: str) -> tuple[str, ...]:
    """Returns the stems of all words of a text, those without a meaning of their own included."""
    return tuple(stem(word) for word in words(text))


def named_spans(text: Sequence[str], names: Sequence[tuple[str, tuple[str, ...]]]) -> list[NamedSpan]:
    """Returns where names stand in the stems of a text; a mention inside a longer one is left out."""
    spans = [
        NamedSpan(start, start + len(parts), name)
        for name, parts in names
        if parts
        for start in range(len(text) - len(parts) + 1)
        if tuple(text[start : start + len(parts)]) == parts
    ]
    longest = sorted(spans, key=lambda m: (m.start - m.end, m.start))
    outer: list[NamedSpan] = []
    for one in longest:
        inside = any(o.start <= one.start and one.end <= o.end and o.end - o.start > one.end - one.start for o in outer)
        if not inside:
            outer.append(one)
    return sorted(outer, key=lambda m: m.start)


class CatalogueWords:
    """The words of one catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    @cached_property
    def _tables(self) -> list[tuple[str, tuple[str, ...]]]:
        return [
            (table.name, word_stems(name))
            for table in self.catalogue.tables.values()
            for name in (table.label, *table.also, table.name.replace("_", " "), *_initials(table.label))
        ]

    def tables(self, text: str) -> list[NamedSpan]:
        """Returns the tables that a text names, in its order."""
        return named_spans(word_stems(text), self._tables)

    def table(self, text: str) -> str:
        """Returns the first table that a text names, "" where it names none."""
        tables = self.tables(text)
        return tables[0].name if tables else ""

    def longest_table(self, text: str) -> str:
        """Returns the table with the longest name in a text, the first of equal ones; "" where there is none."""
        return max(self.tables(text), key=lambda m: m.end - m.start, default=NamedSpan(0, 0, "")).name

    def columns(self, text: str, table: str) -> list[NamedSpan]:
        """Returns the columns of a table that a text names."""
        columns = self._of(table)
        return named_spans(word_stems(text), [(c.name, word_stems(c.label)) for c in columns])

    def conditions(self, text: str, table: str) -> list[Condition]:
        """Returns what a text says of the columns of a table, one condition for each column, in the text's order."""
        given, own = word_stems(text), words(text)
        columns = self.columns(text, table)
        sure_conditions: list[Condition] = []
        doubtful: list[Condition] = []  # words that name the column itself: "the operational status", "its approval"
        names = [(f"{c.name}={v}", word_stems(label)) for c in self._of(table) for v, label in c.choices.items()]
        spans: dict[tuple[int, int], list[str]] = {}
        named = {n for m in self.tables(text) for n in range(m.start, m.end)}
        taken = {n for m in self.tables(text) if m.end - m.start > 1 for n in range(m.start, m.end)}
        for mention in named_spans(given, names):
            if taken.issuperset(range(mention.start, mention.end)):
                continue  # "requested items" is a table, and no value
            spans.setdefault((mention.start, mention.end), []).append(mention.name)
        for (start, end), stated in spans.items():
            near = {m.name for m in columns if -_WINDOW <= m.start - end <= 2 and (start - m.end <= _WINDOW)}
            pairs = [pair.partition("=")[::2] for pair in stated]
            chosen = next((pair for pair in pairs if pair[0] in near), None)
            if chosen is None and self._is_stated(own, start, end, table):
                chosen = pairs[0]
            if chosen is not None:
                is_column = named.issuperset(range(start, end)) or any(
                    m.name == chosen[0] and m.start <= start and end <= m.end for m in columns
                )
                (doubtful if is_column else sure_conditions).append(Condition(chosen[0], "=", chosen[1], start))
        sure = {condition.column for condition in sure_conditions}
        sure_conditions += [c for c in doubtful[::-1] if c.column not in sure][:1]
        sure_conditions += self._flags(own, table, text)
        sure_conditions += self._codes(own, columns, table)
        sure_conditions += self._numbers(own, columns, table)
        first: dict[str, Condition] = {}
        for condition in sorted(sure_conditions, key=lambda c: c.place):
            first.setdefault(condition.column, condition)
        return list(first.values())

    def _of(self, table: str) -> list[Column]:
        return list(self.catalogue.columns(table).values())

    def _is_stated(self, own: Sequence[str], start: int, end: int, table: str) -> bool:
        """Whether words that may be a value are one: after "is" and its like, or right before the table's name."""
        if end - start > 1 or _VALUE_CUES & set(own[max(0, start - 2) : start]):
            return True
        before = " ".join(own[:start])
        if end == len(own) and any(m.end == start for m in self.tables(before)):
            return True  # "ticket closed"
        after = " ".join(own[end : end + 2])
        return own[start] not in ("new", "open") and any(m.start == 0 for m in self.tables(after))

    def _flags(self, own: Sequence[str], table: str, text: str) -> list[Condition]:
        conditions = []
        for column in self._of(table):
            if column.type != "boolean":
                continue
            for mention in named_spans(word_stems(text), [(column.name, word_stems(column.label))]):
                negated = {"not", "no", "non"} & set(own[max(0, mention.start - 2) : mention.start])
                conditions.append(Condition(column.name, "=", "false" if negated else "true", mention.start))
            if f"in{column.name}" in own:
                conditions.append(Condition(column.name, "=", "false", own.index(f"in{column.name}")))
        return conditions

    def is_stated_value(self, text: str) -> bool:
        """Returns whether a text is a column with one of its values and nothing more: "category Network"."""
        own = tuple(stem(word) for word in words(text) if word not in ("is", "to", "the"))
        return own in self._stated

    def ended(self, text: str, table: str) -> Condition | None:
        """Returns the state that the verb of a text brings a record to: "close it", "cancel the change"."""
        given = word_stems(text)[:1]
        for column in self._of(table):
            if column.name.endswith(("state", "status")):
                labels = [(value, word_stems(label)) for value, label in column.choices.items()]
                states = [(len(stems), value) for value, stems in labels if given and stems[:1] == given]
                if states:
                    return Condition(column.name, "=", min(states)[1], 0)
        return None

    def is_value(self, text: str) -> bool:
        """Returns whether a text is the name of a value of two words or more, and nothing else."""
        own = word_stems(text)
        return len(own) > 1 and own in self._labels

    @cached_property
    def _labels(self) -> set[tuple[str, ...]]:
        columns = [c for table in self.catalogue.tables.values() for c in table.columns.values()]
        return {word_stems(label) for c in columns for label in c.choices.values()}

    @cached_property
    def _stated(self) -> set[tuple[str, ...]]:
        columns = [c for table in self.catalogue.tables.values() for c in table.columns.values()]
        return {word_stems(f"{c.label} {label}") for c in columns for label in c.choices.values()}

    def related(self, text: str, table: str) -> list[Condition]:
        """Returns what a text says of records that one of `table` refers to: "by a VIP" is `caller.vip=true`."""
        given, by_column = word_stems(text), dict[str, Condition]()
        columns = {c.name for c in self._of(table)}
        references = [c for c in self._of(table) if c.reference and c.reference != table]
        references.sort(key=lambda c: _ABOUT.index(c.name) if c.name in _ABOUT else len(_ABOUT))
        for reference in references:
            for column in self._of(reference.reference):
                if column.name in columns or column.name in by_column or column.name == "active":
                    continue
                named = named_spans(given, [(column.name, word_stems(column.label))])
                if column.type == "boolean" and named:
                    by_column[column.name] = Condition(f"{reference.name}.{column.name}", "=", "true", named[0].start)
                values = named_spans(given, [(v, word_stems(label)) for v, label in column.choices.items()])
                near = [v for v in values for m in named if abs(v.start - m.start) <= _WINDOW]
                if near:
                    by_column[column.name] = Condition(
                        f"{reference.name}.{column.name}", "=", near[0].name, near[0].start
                    )
        return list(by_column.values())

    def _codes(self, own: Sequence[str], columns: Sequence[NamedSpan], table: str) -> list[Condition]:
        """Values that stand as their numbers: "P1", "sev 1", "severity is 2"."""
        conditions = []
        for column in self._of(table):
            codes = {code for code in column.choices if code.isdigit()}
            letter = column.label[:1].lower()
            for place, word in enumerate(own):
                if word[:1] == letter and word[1:] in codes and column.name in ("priority", "severity"):
                    conditions.append(Condition(column.name, "=", word[1:], place))
            for mention in columns:
                after = next((n for n, w in enumerate(own[mention.end : mention.end + 2]) if w in codes), None)
                if mention.name == column.name and after is not None and not column.name.endswith("state"):
                    conditions.append(Condition(column.name, "=", own[mention.end + after], mention.end + after))
        return conditions

    def _numbers(self, own: Sequence[str], columns: Sequence[NamedSpan], table: str) -> list[Condition]:
        conditions = []
        types = {c.name: c.type for c in self._of(table)}
        for mention in columns:
            if types[mention.name] != "integer":
                continue
            after = own[mention.end : mention.end + 6]
            number = next((word for word in after if word.isascii() and word.isdigit()), None)
            if number is not None:
                before = set(after[: after.index(number)])
                operator = ">" if before & _MORE else "<" if before & _LESS else "="
                conditions.append(Condition(mention.name, operator, number, mention.start))
        amounts = [name for name, kind in types.items() if kind == "integer"]
        place = next((n for n, word in enumerate(own) if word in _MORE | _LESS), None)
        if not conditions and len(amounts) == 1 and place is not None:
            number = next((w for w in own[place : place + 4] if w.isascii() and w.isdigit()), None)
            if number is not None:
                conditions.append(Condition(amounts[0], "<" if own[place] in _LESS else ">", number, place))
        return conditions

    def person(self, text: str, table: str) -> str:
        """Returns the path to the person that a text names, such as `caller.manager`; "" where there is none.

        A person is a column that refers to users, or the manager of one, or of a group.
        """
        references = [c for c in self._of(table) if c.reference]
        names = [(c.name, word_stems(c.label)) for c in references]
        names += [(c.name, word_stems(c.label.removesuffix(" to").removesuffix(" by"))) for c in references]
        if any(c.name == "assigned_to" for c in references):
            names += [("assigned_to", word_stems(word)) for word in ("assignee", "it is assigned to", "assigned to")]
        employee = next((c.name for c in references if c.name in ("subject_person", "employee", "requested_for")), None)
        if employee:
            names += [(employee, word_stems(word)) for word in ("employee", "requester", "person")]
        own = words(text)
        spans = named_spans(word_stems(text), names)
        has_manager = any(word in ("manager", "managers", "boss") for word in own)
        for mention in spans:
            column = self.catalogue.column(table, mention.name)
            users = column is not None and column.reference == USERS
            if (
                has_manager
                and "manager" not in mention.name
                and self.catalogue.column(table, f"{mention.name}.manager")
            ):
                return f"{mention.name}.manager"
            if users:
                return mention.name
        if has_manager:
            return next((f"{c.name}.manager" for c in references if c.reference == USERS), "")
        return ""


def _initials(label: str) -> tuple[str, ...]:
    parts = label.split()
    return ("".join(part[0] for part in parts),) if len(parts) > 1 else ()


_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = r"(?:january|february|march|april|may|june|july|august|september|october|november|december)"
_UNIT = r"(?:hours?|hrs?|minutes?|mins?|days?|weeks?)"
DATE = rf"\b(?:on )?(\d{{1,2}}(?:st|nd|rd|th)? {_MONTH} \d{{4}}|\d{{4}}-\d\d-\d\d)\b"
_MAIL = (
    r"\b(?:in(?:bound|coming) (?:e-?)?mail|(?:e-?mail|mail)\b.*\b(?:arrives?|received|comes? in)|(?:via|by) e-?mail|"
    r"sends?\b.*\b(?:e-?)?mail|e-?mails us|new (?:e-?)?mail)\b"
)
_PATTERNS = (
    ("service_catalog", r"\b(?:service catalog|catalog(?:ue)? item|(?:in|from) the catalog(?:ue)?)\b(?! request)"),
    ("sla_task", r"\b(?:sla|service level)\b"),
    ("rest_async", r"\b(?:rest|external (?:system|monitoring|tool)|webhook|api|endpoint)\b"),
    ("metric", r"\bmetric\b"),
    ("monthly", r"\b(?:month|monthly)\b"),
    ("weekly", rf"\b(?:weekly|{_DAY}s|(?:every|each)\s+(?:week|{_DAY}))\b"),
    ("daily", r"\b(?:daily|nightly|once a day|(?:every|each)\s+(?:day|morning|night|evening))\b"),
    ("repeat", rf"\b(?:every|each)\s+(?:\w+\s+)?{_UNIT}\b|\b(?:hourly|once an hour)\b"),
    ("run_once", rf"\b(?:run once|only once|one time)\b|{DATE}"),
    ("email", _MAIL),
    (
        "record_create_or_update",
        r"\b(?:created|opened|added|new|creation|insert(?:ed|ion)?) or (?:was |is |gets )?"
        r"(?:updated?|changed?|modified|modification)\b",
    ),
)
_TRIGGERS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)
_IS_UPDATED = re.compile(r"\b(?:updated?|modified|edited|changed(?! to)|changes?(?! to| request))\b", re.IGNORECASE)
# "a change to a production server": it is the server that changes, whatever else is called a change.
CHANGE_OF = re.compile(r"\b(?:an?|any|every|the)?\s*changes? (?:to|of|on|in) (?=(?:an?|any|the|its)\b)", re.IGNORECASE)
_TO_VALUE = re.compile(r"\b(?:raised|lowered|increased|decreased|reduced|bumped|escalated)\b.*\bto\b", re.IGNORECASE)
_IS_CREATED = re.compile(
    r"\b(?:is|are|was|were|gets?|been|on)\s+(?:\w+\s+)?"
    r"(?:created|opened|added|submitted|logged|raised|reported|filed|inserted|recorded|registered|put in)\b|"
    r"\b(?:up)?on (?:the )?(?:creation|submission|arrival)\b|\b(?:record|\w+) (?:inserted|created|logged|raised)\s*$",
    re.IGNORECASE,
)
_CREATED = re.compile(
    r"\b(?:creat\w*|opene?[ds]?|opens|new|logg?(?:ed|s)|raise[ds]?|submit\w*|report(?:s|ed)|comes? in|show up|"
    r"add(?:ed|s)|file[ds]|insert(?:ed|s))\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:chang(?:e[ds]?|ing)|becomes?|became|moves?|moved|set to|goes|went|turn(?:s|ed)|reach(?:es|ed)|gets to|"
    r"put (?:on|in|into|to)|switch(?:es|ed)|now|after)\b|->",
    re.IGNORECASE,
)


class TriggerChoice:
    """Chooses triggers of one catalogue."""

    def __init__(self, catalogue_words: CatalogueWords) -> None:
        self._words = catalogue_words
        names = [n for t in catalogue_words.catalogue.tables.values() for n in (t.label, *t.also)]
        longest = sorted(names, key=len, reverse=True)
        self._tables = re.compile(
            rf"\b(?:{'|'.join(map(re.escape, longest)) or '(?!)'})s?\b(?! to\b|\W*$)", re.IGNORECASE
        )

    def kind(self, text: str) -> str:
        """Returns the trigger that a text names; where it names none, that of a new or changed record."""
        triggers = self._words.catalogue.triggers
        for kind, pattern in _TRIGGERS:
            if kind in triggers and pattern.search(text) and not (kind == "email" and self._names_a_change(text)):
                return kind
        preferred = "record_update" if self._is_update(text) else "record_create"
        return preferred if preferred in triggers else next(iter(triggers))

    def is_event(self, text: str) -> bool:
        """Returns whether a text says when something starts: it names a time, a mail, or what happens to a record."""
        if any(pattern.search(text) for _, pattern in _TRIGGERS):
            return True
        happens = _IS_CREATED.search(text) or _CREATED.search(text) or _CHANGES.search(text) or _IS_UPDATED.search(text)
        return bool(self._words.tables(text)) and (happens is not None or self._names_a_change(text))

    def table(self, text: str) -> str:
        """Returns the table whose records the trigger is about."""
        change = CHANGE_OF.search(text)
        rest = text[change.end() :] if change else ""
        return (self._words.longest_table(rest) if rest else "") or self._words.longest_table(text)

    def changes(self, text: str, stated: list[Condition]) -> set[int]:
        """Returns the places of those conditions that hold from the change on: "moves to Closed", not "updated and
        closed". Where several stand together, a value right before the record ("a normal change") is no change.
        """
        plain = self._tables.sub(" ", text)
        is_updated = _IS_UPDATED.search(plain) is not None and not re.search(r"(?i)\bto\b", plain)
        if CHANGE_OF.search(text) or is_updated:
            return set()
        tables = [m.start for m in self._words.tables(text)]
        own = [c for c in stated if c.operator == "="]
        if len(own) == 1:
            return {own[0].place}
        return {c.place for c in own if not any(0 < start - c.place <= 2 for start in tables)}

    def changed_column(self, text: str, table: str) -> str:
        """Returns the column that a text says to change, without a value: "whenever the assignee changes"."""
        if not re.search(r"(?i)\bchang(?:es|ed)\b", text):
            return ""
        taken = {n for m in self._words.tables(text) for n in range(m.start, m.end)}
        named = [m.name for m in self._words.columns(text, table) if m.start not in taken]
        person = self._words.person(text, table)
        return next(iter(named), person if "." not in person else "")

    def _names_a_change(self, text: str) -> bool:
        table = self.table(text)
        stated = self._words.conditions(text, table)
        return bool(table) and any(c.operator == "=" for c in stated) and _IS_CREATED.search(text) is None

    def _is_update(self, text: str) -> bool:
        if CHANGE_OF.search(text) or _TO_VALUE.search(text):
            return True
        if _IS_CREATED.search(text):
            return False
        plain = self._tables.sub(" ", text)
        if _IS_UPDATED.search(plain) or _CHANGES.search(plain):
            return True
        if _CREATED.search(plain) and not re.search(r"\bgets? (?!created|opened|added)\w+ed\b", plain):
            return False
        return self._is_state(text)

    def _is_state(self, text: str) -> bool:
        """Whether a value is what the sentence says of the record: "ticket closed", and not "with priority High"."""
        stated = [c for c in self._words.conditions(text, self.table(text)) if c.operator == "="]
        own = words(text)
        return any(
            c.column.endswith(("state", "status", "approval")) or c.value in ("true", "false") or _is_said(own, c.place)
            for c in stated
        )


def _is_said(own: tuple[str, ...], place: int) -> bool:
    return bool({"is", "are", "was", "been", "becomes", "gets", "reaches"} & set(own[max(0, place - 4) : place]))
