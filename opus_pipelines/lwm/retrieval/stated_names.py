"""Checks names that a person states: a misspelt name is an error, and a demand that nobody can meet a reason."""

import difflib
from collections.abc import Collection, Iterable

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Cost
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import Constraints, folded

_NEAREST = 3
MISSPELT = 0.8  # similarity of spelling from which an unknown name is taken for a mistake (difflib)
KINDS = ("human", "model", "code")
# tables of prices whose keys are kinds, roles and models
PRICE_TABLES = ("usd_per_hour", "default_cost_usd", "default_duration_ms")


def refuse_misspelt_tasks(
    constraints: Constraints, names: TaskNames, titles: Collection[str], new: Iterable[str] = ()
) -> None:
    """Raise SettingsError where a stated constraint names no task of history and no new step, but nearly one of them.

    `new` has the names of new steps, `titles` those of history. A name that is like none of them is not misspelt:
    where a task is demanded `unknown_demands` says it, and any other constraint holds for every workflow.
    """
    known = {*map(folded, titles), *map(folded, new)}
    misspelt = [
        f"{kind} names {name!r}, and no task of history is called so; {_near(name, titles)}"
        for kind, name in _unknown(constraints, names, new)
        if difflib.get_close_matches(folded(name), known, n=1, cutoff=MISSPELT)
    ]
    if misspelt:
        raise SettingsError("; ".join(misspelt))


def unknown_demands(
    constraints: Constraints, names: TaskNames, titles: Collection[str], new: Iterable[str] = ()
) -> str | None:
    """Return why no workflow can do what the constraints demand, None where the demanded tasks are known.

    Demanded are the tasks of `must_contain`, and one task of each group of `one_of` and `exactly_one_of`.
    """
    unknown = {name for _, name in _unknown(constraints, names, new)}
    lacking = [f"must_contain demands {name!r}" for name in constraints.must_contain if name in unknown]
    groups = [(kind, group) for kind in ("one_of", "exactly_one_of") for group in getattr(constraints, kind)]
    lacking += [
        f"{kind} demands {' or '.join(map(repr, group))}" for kind, group in groups if unknown.issuperset(group)
    ]
    if not lacking:
        return None
    nearest = "; ".join(f"to {name!r} {_near(name, titles)}" for name in sorted(unknown))
    return (
        f"{'; '.join(lacking)}, and no task of history and no step of the procedure is called so ({nearest}); name a "
        "known task in contract.toml or intake.toml, or take the demand out"
    )


def _unknown(constraints: Constraints, names: TaskNames, new: Iterable[str]) -> list[tuple[str, str]]:
    """Return the kind and the name of every stated task that neither history nor the new steps know."""
    own = {folded(title) for title in new}
    stated = {
        "must_contain": constraints.must_contain,
        "must_not_contain": constraints.must_not_contain,
        "before": [name for pair in constraints.before for name in pair],
        "one_of": [name for group in constraints.one_of for name in group],
        "exactly_one_of": [name for group in constraints.exactly_one_of for name in group],
        "deadlines": [name for deadline in constraints.deadlines for name in (deadline.step, deadline.after) if name],
    }
    return [
        (kind, name)
        for kind, stated_names in stated.items()
        for name in stated_names
        if not names.tasks(name) and folded(name) not in own
    ]


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
    similar = difflib.get_close_matches(folded(name), sorted(by_name), n=_NEAREST, cutoff=0.4)
    near = list(dict.fromkeys([*(t for t in similar if t in shared), *shared, *similar]))[:_NEAREST]
    return (
        f"the nearest: {', '.join(repr(by_name[t]) for t in near)}"
        if near
        else f"history knows {len(known)} names, none of them near"
    )
