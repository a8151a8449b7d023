"""Checks names that a person states: an unknown name is an error, never a constraint without effect."""

import difflib
from collections.abc import Collection, Iterable

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Cost
from opus_pipelines.retrieval.task_names import TaskNames
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import Constraints, folded

NEAREST = 3
KINDS = ("human", "model", "code")
# tables of prices whose keys are kinds, roles and models
PRICE_TABLES = ("usd_per_hour", "default_cost_usd", "default_duration_ms")


def refuse_unknown_tasks(
    constraints: Constraints, names: TaskNames, titles: Collection[str], new: Iterable[str] = ()
) -> None:
    """Raise SettingsError where a stated constraint names no task of history and no new step.

    `new` has the names of new steps, `titles` those that the message may offer as the nearest.
    """
    own = {folded(title) for title in new}
    stated = {
        "must_contain": constraints.must_contain,
        "must_not_contain": constraints.must_not_contain,
        "before": [name for pair in constraints.before for name in pair],
        "one_of": [name for group in constraints.one_of for name in group],
        "exactly_one_of": [name for group in constraints.exactly_one_of for name in group],
        "deadlines": [name for deadline in constraints.deadlines for name in (deadline.step, deadline.after) if name],
    }
    unknown = [
        f"{kind} names {name!r}, and no task of history is called so; {_near(name, titles)}"
        for kind, stated_names in stated.items()
        for name in stated_names
        if not names.tasks(name) and folded(name) not in own
    ]
    if unknown:
        raise SettingsError("; ".join(unknown))


def refuse_unknown_prices(cost: Cost, graph: WorkGraph) -> None:
    """Raise SettingsError where a price names no actor kind, and no role or AI model of history."""
    known = {name for task in graph.tasks.values() for mode in task.execution_modes for name in mode.actor if name}
    folded_names = {name.casefold() for name in known} | set(KINDS)
    unknown = [
        f"{table} states {name!r}, which is no actor kind ({', '.join(KINDS)}) and no role or AI model of history;"
        f" {_near(name, sorted(known - set(KINDS)))};"
        " the price of one person belongs in [rates] of the source's source.toml"
        for table in PRICE_TABLES
        for name in getattr(cost, table)
        if name.casefold() not in folded_names
    ]
    if unknown:
        raise SettingsError("; ".join(unknown))


def _near(name: str, known: Collection[str]) -> str:
    """Return the nearest known names in words: names with a common word first, then names with a similar spelling."""
    wanted = set(folded(name).split())
    by_name = {folded(title): title for title in sorted(known, reverse=True)}
    shared = sorted((t for t in by_name if wanted & set(t.split())), key=lambda t: (-len(wanted & set(t.split())), t))
    similar = difflib.get_close_matches(folded(name), sorted(by_name), n=NEAREST, cutoff=0.4)
    near = list(dict.fromkeys([*(t for t in similar if t in shared), *shared, *similar]))[:NEAREST]
    return (
        f"the nearest: {', '.join(repr(by_name[t]) for t in near)}"
        if near
        else f"history knows {len(known)} names, none of them near"
    )
