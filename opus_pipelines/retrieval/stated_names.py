"""Names that a person states and that mean nothing in history: an error with the nearest known ones, never a
constraint without effect.
"""

import difflib
from collections.abc import Collection, Iterable

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Cost
from opus_pipelines.retrieval.task_names import TaskNames
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import Constraints, folded

NEAREST = 3
KINDS = ("human", "model", "code")
BY_NAME = (
    "usd_per_hour",
    "default_cost_usd",
    "default_duration_ms",
)  # tables of prices whose keys are kinds, roles and models


def refuse_unknown_tasks(
    constraints: Constraints, names: TaskNames, titles: Collection[str], new: Iterable[str] = ()
) -> None:
    """Raise SettingsError where a stated constraint names a task that nothing in history, and no new step (`new`),
    goes by.

    `titles`: those that are offered as the nearest.
    """
    own = {folded(title) for title in new}
    stated = {
        "must_contain": constraints.must_contain,
        "must_not_contain": constraints.must_not_contain,
        "before": [name for pair in constraints.before for name in pair],
        "one_of": [name for group in constraints.one_of for name in group],
        "exactly_one_of": [name for group in constraints.exactly_one_of for name in group],
        "deadlines": [name for due in constraints.deadlines for name in (due.step, due.after) if name],
    }
    unknown = [
        f"{kind} names {name!r}, and no task of history is called so; {_near(name, titles)}"
        for kind, found in stated.items()
        for name in found
        if not names.tasks(name) and folded(name) not in own
    ]
    if unknown:
        raise SettingsError("; ".join(unknown))


def refuse_unknown_prices(cost: Cost, graph: WorkGraph) -> None:
    """Raise SettingsError where a price is stated for a name that is no actor kind, and no role and no AI model of
    history.
    """
    known = {
        name
        for task in graph.tasks.values()
        for way in task.ways
        for name in (way.actor_kind, way.model, way.actor_group)
        if name
    }
    folded_names = {name.casefold() for name in known} | set(KINDS)
    unknown = [
        f"{table} states {name!r}, which is no actor kind ({', '.join(KINDS)}) and no role or AI model of history;"
        f" {_near(name, sorted(known - set(KINDS)))}; the price of one person belongs in [rates] of the source's source.toml"
        for table in BY_NAME
        for name in getattr(cost, table)
        if name.casefold() not in folded_names
    ]
    if unknown:
        raise SettingsError("; ".join(unknown))


def _near(name: str, known: Collection[str]) -> str:
    """The nearest known names, those that share a word before those that are spelled alike."""
    wanted = set(folded(name).split())
    by_name = {folded(title): title for title in sorted(known, reverse=True)}
    shared = sorted((t for t in by_name if wanted & set(t.split())), key=lambda t: (-len(wanted & set(t.split())), t))
    alike = difflib.get_close_matches(folded(name), sorted(by_name), n=NEAREST, cutoff=0.4)
    near = list(dict.fromkeys([*(t for t in alike if t in shared), *shared, *alike]))[:NEAREST]
    return (
        f"the nearest: {', '.join(repr(by_name[t]) for t in near)}"
        if near
        else f"history knows {len(known)} names, none of them near"
    )
