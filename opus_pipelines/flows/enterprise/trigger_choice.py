"""Which trigger of the catalogue the words of a requirement name, and which of its conditions are changes."""

import re

from opus_pipelines.flows.enterprise.catalogue_words import CatalogueWords, Condition, words

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

    def __init__(self, found: CatalogueWords) -> None:
        self._words = found
        names = [n for t in found.catalogue.tables.values() for n in (t.label, *t.also)]
        longest = sorted(names, key=len, reverse=True)
        self._tables = re.compile(
            rf"\b(?:{'|'.join(map(re.escape, longest)) or '(?!)'})s?\b(?! to\b|\W*$)", re.IGNORECASE
        )

    def kind(self, text: str) -> str:
        """Returns the trigger that a text names; where it names none, that of a new or changed record."""
        known = self._words.catalogue.triggers
        for kind, pattern in _TRIGGERS:
            if kind in known and pattern.search(text) and not (kind == "email" and self._names_a_change(text)):
                return kind
        preferred = "record_update" if self._is_update(text) else "record_create"
        return preferred if preferred in known else next(iter(known))

    def is_event(self, text: str) -> bool:
        """Returns whether a text says when something starts: it names a time, a mail, or what happens to a record."""
        if any(pattern.search(text) for _, pattern in _TRIGGERS):
            return True
        happens = _IS_CREATED.search(text) or _CREATED.search(text) or _CHANGES.search(text) or _IS_UPDATED.search(text)
        return bool(self._words.tables(text)) and (happens is not None or self._names_a_change(text))

    def table(self, text: str) -> str:
        """Returns the table whose records the trigger is about."""
        found = CHANGE_OF.search(text)
        rest = text[found.end() :] if found else ""
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
