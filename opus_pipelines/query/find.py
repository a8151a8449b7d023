"""A task or an industry by what a person types: exactly, whatever its case; else an error with the nearest names."""

import difflib
from collections.abc import Iterable

import duckdb

from opus_pipelines.errors import InputError
from opus_pipelines.query.sql import rows

NEAREST = 5


def find_industry(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """The industry's name as the WKG has it; raises InputError with those there are."""
    names = sorted({name for row in rows(connection, "graph_names") for name in row["industries"] or ()})
    found = [name for name in names if name.casefold() == text.casefold()]
    if not found:
        there = ", ".join(nearest(text, names) or names[:NEAREST]) or "none: no source of history states one"
        raise InputError(f"no industry is called {text!r}; there {'is' if len(names) == 1 else 'are'}: {there}")
    return text if text in found else found[0]


def find_task(connection: duckdb.DuckDBPyConnection, text: str, industry: str | None = None) -> str:
    """The id of the task of this id or title, in `industry` where one is named; raises InputError when none or several are meant."""
    tasks = [row for row in rows(connection, "graph_names") if industry is None or industry in (row["industries"] or ())]
    if any(row["task_id"] == text for row in tasks):
        return text
    wanted = " ".join(text.casefold().split())
    found = [row for row in tasks if " ".join((row["title"] or "").casefold().split()) == wanted]
    if len(found) == 1:
        return found[0]["task_id"]
    if found:
        which = ", ".join(f"{row['task_id']} ({' / '.join(row['industries'] or ()) or 'no industry'})" for row in found[:NEAREST])
        more = f" and {len(found) - NEAREST} more" if len(found) > NEAREST else ""
        raise InputError(f"{len(found)} tasks are called {text!r}: {which}{more}; name one by its id")
    titles = [*dict.fromkeys(row["title"] for row in tasks if row["title"])]
    near = nearest(text, titles)
    there = f"the nearest: {', '.join(near)}" if near else f"the most frequent: {', '.join(titles[:NEAREST]) or 'none'}"
    raise InputError(f"no task{f' of {industry}' if industry else ''} is called {text!r}; {there}")


def nearest(text: str, names: Iterable[str]) -> list[str]:
    """At most five of the names: those that hold the text, in their order, then those spelled most like it."""
    known: dict[str, str] = {}
    for name in names:
        known.setdefault(name.casefold(), name)
    wanted = text.casefold()
    inside = [name for folded, name in known.items() if wanted and wanted in folded]
    alike = [known[folded] for folded in difflib.get_close_matches(wanted, known, n=NEAREST, cutoff=0.4)]
    return list(dict.fromkeys([*inside, *alike]))[:NEAREST]
