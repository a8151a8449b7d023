"""Reads the tables of a procedure: which column says what is done, and which says when.

A table is written with bars or with tabs. Its head names the columns. Where the head names a column of actions, that
is the one; otherwise it is the column with the most words. Where the head names a column of situations ("Situation",
"If", "Condition"), each row says what is done in its situation. The words are those of English procedures.
"""

import re
from collections.abc import Iterator, Sequence


def _words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", text.casefold()))


ACTIONS = frozenset({"action", "activity", "measure", "response", "task", "what", "done", "do"})
SITUATIONS = frozenset({"case", "condition", "criterion", "if", "situation", "trigger", "when"})
# words of which the name of a column consists
HEADS = _words_of(
    """
    accountable action activity by case check comment condition criterion date deadline department description details
    do done due duration function id if measure no notes nr number owner person phase position process remark remarks
    response responsibility responsible role rule situation stage status step steps system task team time tool topic
    trigger what when where who
"""
) | _words_of("a be for in is of s the to")
_MARK = re.compile(r"^((?:\(?\d+(?:\.\d+)*[.)]|\(?[A-Za-z][.)]|[*•\-–+◦▪☐☑☒✓]|\[[ xX]?\]))\t+")
_ALWAYS = re.compile(
    r"^(?:all(?: cases)?|always|any|every(?: time)?|in (?:all|any) cases?|n/?a|[-–—*]*)$", re.IGNORECASE
)
_FRAME = re.compile(r"^[\s|:+=-]+$")
_BEGINS_SUBORDINATE = re.compile(r"^(?:if|when|where|in case|unless|otherwise|else|only)\b", re.IGNORECASE)


def with_bars(lines: Sequence[str]) -> list[str]:
    """Returns the lines; those of a table that is written with tabs have bars between their cells instead.

    Two lines behind each other with as many tabs between their cells are rows of such a table; a tab behind the number
    of an item makes no cell.
    """
    bare = [_MARK.sub(r"\1 ", line.strip("\r\n ")) for line in lines]
    tabs = [0 if "|" in line else line.count("\t") for line in bare]
    beside = [count in (*tabs[max(n - 1, 0) : n], *tabs[n + 1 : n + 2]) for n, count in enumerate(tabs)]
    return [
        own.replace("\t", " | ") if count and is_row else line
        for line, own, count, is_row in zip(lines, bare, tabs, beside, strict=True)
    ]


def body(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines; of a table, one line for each row below its head, which begins with a bar."""
    table: list[list[str]] = []
    for line in [*lines, ""]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "|" in line and (not table or len(cells) == len(table[0])):
            table.append(cells)
            continue
        yield from _rows(table)
        table = [cells] if "|" in line else []
        if not table and line.strip():
            yield line
    yield from _rows(table)


def _rows(table: Sequence[Sequence[str]]) -> list[str]:
    is_framed = len(table) > 1 and _is_frame(table[1])
    rows = [row for row in table if not _is_frame(row)]
    if len(rows) < 2:
        return [" ".join(row) for row in rows]
    head, *rest = rows
    if not is_framed and not any((words := _words_of(name)) and words <= HEADS for name in head):
        rest = rows  # nothing shows that the first row names the columns, and what it says must not be lost
    situation, action = _named(head, SITUATIONS), _named(head, ACTIONS)
    if action is None or action == situation:
        others = [n for n in range(len(head)) if n != situation]
        action = max(others, key=lambda n: (sum(len(row[n].split()) for row in rest), -n))
    return [f"|{_in_situation(row[action], row[situation] if situation is not None else '')}" for row in rest]


def _is_frame(row: Sequence[str]) -> bool:
    return all(_FRAME.match(cell) or not cell for cell in row)


def _named(head: Sequence[str], known: frozenset[str]) -> int | None:
    """Returns the only column whose name is or ends with a known word: "Action", "What is to be done"."""
    words = [re.findall(r"[a-z]+", name.casefold()) for name in head]
    found = [n for n, of_name in enumerate(words) if of_name and not known.isdisjoint({of_name[0], of_name[-1]})]
    return found[0] if len(found) == 1 else None


def _in_situation(action: str, situation: str) -> str:
    """Returns a row as a sentence: "If smoke or fire: call the brigade"."""
    told = situation.strip(" .?:;,")
    if not told or _ALWAYS.match(told):
        return action
    condition = told if _BEGINS_SUBORDINATE.match(told) else f"If {told}"
    return f"{condition}: {action.replace(';', ',')}"
