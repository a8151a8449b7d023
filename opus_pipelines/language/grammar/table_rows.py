"""Statements of table rows: one cell names a step, others say when, until when, how often or whether it is done."""

import re

from opus_pipelines.language.grammar.reader import statements_of
from opus_pipelines.language.grammar.statements import ProcedureStatement
from opus_pipelines.language.grammar.verbs import is_base, is_participle, words_in

_OBLIGES = re.compile(
    r"^(?:mandatory|required|obligatory|compulsory|always|yes|must|every time|for every \w+|after every \w+)$", re.I
)
_PERMITS = re.compile(
    r"^(?:optional|voluntary|at (?:\w+ )?discretion|if available|for information|if desired|recommended)$",
    re.I,
)
_FORBIDS = re.compile(r"^(?:(?:is )?(?:prohibited|forbidden|not allowed|not permitted|never)\b)(?P<rest>.*)$", re.I)
_SAME_DAY = re.compile(r"^(?:the )?same day$|^immediately$|^at once$", re.I)
_DUE = re.compile(
    r"^(?:within |max(?:imum|\.)? |at most |up to |not? later than )?(?:an? |\w+[-.,\d]* )(?:working |business "
    r"|calendar )?(?:minute"
    r"|hour|day|week|month)s?(?: at most| maximum)?(?: (?:of|after|from) .+)?$",
    re.I,
)
_ORDER = re.compile(
    r"^(?:only after|only with|only upon|only once|only when|after|before|not before|not until|must follow|once"
    r"|prior to)\b",
    re.I,
)
_CONDITION = re.compile(
    r"^(?:by .+?, )?(?P<c>(?:(?:only|required|mandatory)\s+)?(?:if|for|when|above|over|below|under|where"
    r"|in case of|with)\b.*|[^,]+ (?:above|over|more than|less than|below|exceeding|from) .*\d.*)$",
    re.I,
)
_LIMIT = re.compile(
    r"^(?:at least|at most|max\.?|maximum|min\.?|minimum|up to|no more than)\s.*(?:\d|\b(?:one|two|three|four|five"
    r"|six|ten)\b)",
    re.I,
)
_CHOICE = re.compile(r"\b(?:one of (?:the )?(?:two|both|them)|either|never both)\b", re.I)
_ACTIVITIES = ("activity", "activities", "task", "action", "what", "work step", "process step", "step")
_EMPTY = re.compile(r"^(?:[-–—.]+|n/?a|none|not applicable)$", re.I)
_WHOLE = re.compile(r"\b(?:whole|total|entire|overall|end-to-end|all steps)\b|^process$|^from .+ to ", re.I)


def activity_column(text: str) -> int | None:
    """Return the index of the activity column, where the row is the head of a table: "No. | Activity | Rule"."""
    names = [name.strip().casefold() for name in _split(text)]
    return next((names.index(known) for known in _ACTIVITIES if known in names), None)


def statements_of_row(text: str, column: int | None = None) -> tuple[ProcedureStatement, ...]:
    """Return the statements of a row: `column: value; ...` with column names, `cell | cell` without.

    `column`: the index of the activity column, where the table's head tells it.
    """
    if column is not None and len(parts := _split(text)) > column and words_in(parts[column].casefold()):
        cells = [parts[column], *(p for n, p in enumerate(parts) if n != column)]
        cells = [_named(c) for c in cells if c and not _EMPTY.match(c)]
        return tuple(dict.fromkeys(_of_step(cells[0], cells[1:])))
    cells = _cells(text)
    texts = [cell for cell in cells if len(cell.split()) >= 5 and not _rule_like(cell) and _step_of([cell]) is None]
    long = [statement for cell in texts for statement in statements_of(cell)]
    place = _step_of(cells)
    if place is None:
        return tuple(long)
    rest = [c for n, c in enumerate(cells) if n != place]
    return tuple(dict.fromkeys([*_of_step(cells[place], rest), *long]))


def _cells(text: str) -> list[str]:
    values = map(_named, _split(text))
    return [v for v in values if v and not _EMPTY.match(v)]


def _split(text: str) -> list[str]:
    return [part.strip() for part in (text.split("|") if "|" in text else re.split(r";|\t", text))]


def _named(cell: str) -> str:
    """Return a cell without the name of its column."""
    name, _, value = cell.partition(": ")
    return value.strip() if value and len(name.split()) <= 4 else cell


def _step_of(cells: list[str]) -> int | None:
    """Return the index of the cell that names the step, else None.

    It is the first that begins with a verb, ends in a participle, or is about the whole work.
    """
    order = sorted(range(len(cells)), key=lambda n: (len(words_in(cells[n].casefold())) < 2, n))
    for n in order:
        cell, words = cells[n], words_in(cells[n].casefold())
        if _rule_like(cell) or not words or len(words) > 8:
            continue
        if _WHOLE.search(cell) or (is_base(words[0]) and (len(words) > 1 or cell[:1].isupper()) and n < 3):
            return n
        if len(words) > 1 and is_participle(words[-1]):
            return n
    return None


def _rule_like(cell: str) -> bool:
    return any(p.match(cell) for p in (_OBLIGES, _PERMITS, _FORBIDS, _DUE, _ORDER, _LIMIT, _CONDITION))


def _of_step(step: str, rest: list[str]) -> list[ProcedureStatement]:
    """Return the statements of a step: each other cell is read as the end of a sentence with it."""
    if any(_PERMITS.match(c) for c in rest) and not any(_OBLIGES.match(c) or _ORDER.match(c) for c in rest):
        return []
    if _WHOLE.search(step):
        due = next((c for c in rest if _DUE.match(c)), None)
        return list(statements_of(f"The whole work must be done within {_bare(due)}")) if due else []
    statements: list[ProcedureStatement] = []
    conditions = [c for c in (_condition(c) for c in rest) if c]
    condition = f" if {conditions[0]}" if conditions else ""
    for cell in (part.strip() for c in rest for part in c.split(", ")):
        if _FORBIDS.match(cell) and not _CHOICE.search(" ".join(rest)):
            without = re.match(r"never without (?P<a>.+)$", cell, re.I)
            ending = f" without {without['a']}" if without else _forbidden_for(cell)
            statements += statements_of(f"Do not {_lower(step)}{ending}")
        elif _ORDER.match(cell):
            statements += statements_of(_ordered(step, cell))
        elif _DUE.match(cell) and not _SAME_DAY.match(cell):
            statements += statements_of(f"{_must(step)} within {_bare(cell)}{condition}")
        elif _LIMIT.match(cell):
            noun = " ".join(words_in(step.casefold())[1:]) or step
            statements += statements_of(f"The {noun} must be {re.sub('(?i)^max[a-z.]*', 'at most', cell)}")
    if _CHOICE.search(" ".join(rest)):
        return list(statements_of(f"You must either {_lower(step)}"))
    forbidden = any(s.kind == "absence" for s in statements)
    always = any(_OBLIGES.match(part.strip()) for c in rest for part in c.split(", "))
    obliged = conditions or always or any(s.kind == "limit" for s in statements)
    if obliged and not forbidden and not any(s.kind in ("precedence", "response") for s in statements):
        statements += [s for s in statements_of(f"{_must(step)}{condition}") if s not in statements]
    return statements


def _condition(cell: str) -> str:
    """Return the condition of a cell, in the words of an if-clause."""
    match = _CONDITION.match(cell)
    if not match or _OBLIGES.match(cell) or _ORDER.match(cell) or cell.casefold() in ("on return", "on receipt"):
        return ""
    condition = re.sub(r"^(?:only|required|mandatory)\s+", "", match["c"], flags=re.I)
    return re.sub(r"^(?:if|when|where|for)\s+", "", condition, flags=re.I)


def _forbidden_for(cell: str) -> str:
    match = re.search(r"\bfor (?P<x>.+)$", cell, re.I)
    return f" in case of {match['x']}" if match else ""


def _ordered(step: str, cell: str) -> str:
    if re.match(r"must follow", cell, re.I):
        return f"{step} {cell}"
    if re.match(r"after (?:every|each)\b", cell, re.I):
        return f"{cell}, you must {_lower(step)}"
    if re.match(r"(?:after|once)\b", cell, re.I):
        return f"{_must(step)} only {cell}"
    if re.match(r"not (?:before|until)", cell, re.I):
        return f"Do not {_lower(step)} {cell[4:]}"
    return f"{_must(step)} {cell}"


def _must(step: str) -> str:
    return f"You must {_lower(step)}"


def _lower(step: str) -> str:
    return step[:1].lower() + step[1:]


def _bare(cell: str) -> str:
    return re.sub(
        r"^(?:within|max(?:imum|\.)?|at most|up to|not? later than)\s+|\s+(?:at most|maximum)$", "", cell, flags=re.I
    )
