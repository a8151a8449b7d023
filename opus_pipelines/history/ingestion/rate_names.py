"""Finds prices of `[rates]` that have no effect.

No actor in the source has the name, and the message names the nearest names that the source has; or the price is one of
a kind of actor (human, model, code), and nothing tells the kind.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.history.records.costing import COST_PARTS, GROUP_ATTRIBUTES, NO_GROUP, model_names
from opus_pipelines.history.records.source_settings import TokenPrice

NEAREST = 3
TELL_THE_KIND = (
    "name the column or field that says human, model or code with actor_kind under [columns] or [task], or state "
    "prices by person or role"
)


@dataclass(frozen=True)
class UnpricedSteps:
    """Steps that the hourly prices by kind of actor do not reach.

    `kinds` are the kinds with a stated price an hour. Of the source's `steps`, `of_kinds` have one of these kinds, and
    `unknown` have a working time and no cost, because nothing tells their kind.
    """

    kinds: tuple[str, ...]
    steps: int
    of_kinds: int
    unknown: int

    def __str__(self) -> str:
        return (
            f"[rates] {', '.join(self.kinds)}: no price of a kind of actor reaches {self.unknown:,} of {self.steps:,} "
            f"occurrences with a working time, because nothing says what kind of actor did them; {TELL_THE_KIND}"
        )


def unknown_rates(rates: Iterable[str], folder: Path) -> list[str]:
    """Returns a message for each name that is no person, role, group, AI model or kind of actor in `folder`."""
    left = [name for name in rates if name not in COST_PARTS]
    if not left:
        return []
    known = set(_names(folder))
    models = {model_names(name)[0] for name in known}
    return [
        (
            f"[rates] states {name!r}, and no person, role, AI model or kind of actor of the source is called so; "
            f"{_near(name, known)}"
        )
        for name in left
        if name not in known and model_names(name)[0] not in models
    ]


def unpriced_steps(rates: Mapping[str, float | TokenPrice], folder: Path) -> UnpricedSteps | None:
    """Returns the steps without a cost that a stated price of a kind would reach if their kind were known, or None."""
    kinds = tuple(name for name, rate in rates.items() if name in COST_PARTS and isinstance(rate, float))
    steps = of_kinds = unknown = 0
    columns = [f"tasks.list.element.{name}" for name in ("actor_kind", "duration_ms", "cost_usd")]
    for file in sorted(folder.glob("*.parquet")) if kinds else ():
        for batch in pq.ParquetFile(file).iter_batches(columns=columns):
            tasks = pc.list_flatten(batch["tasks"])
            kind, time, cost = (pc.struct_field(tasks, name) for name in ("actor_kind", "duration_ms", "cost_usd"))
            steps += len(tasks)
            of_kinds += pc.sum(pc.is_in(kind, pa.array(kinds))).as_py() or 0
            without = pc.and_(pc.and_(pc.is_null(kind), pc.is_null(cost)), pc.is_valid(time))
            unknown += pc.sum(without).as_py() or 0
    return UnpricedSteps(kinds, steps, of_kinds, unknown) if unknown else None


def _names(folder: Path) -> Iterator[str]:
    """Yields every actor name of the source, at least once."""
    columns = [f"tasks.list.element.{name}" for name in ("actor", "actor_kind", "model", "attributes")]
    for file in sorted(folder.glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=columns):
            steps = pc.list_flatten(batch["tasks"])
            for name in ("actor", "actor_kind", "model"):
                yield from (value for value in pc.unique(pc.struct_field(steps, name)).to_pylist() if value)
            attributes = pc.struct_field(steps, "attributes")
            groups = attributes.items.filter(pc.is_in(attributes.keys, pa.array(GROUP_ATTRIBUTES)))
            yield from (
                value for value in pc.unique(groups).to_pylist() if value and value.strip().lower() not in NO_GROUP
            )


def _near(name: str, known: set[str]) -> str:
    folded = {k.casefold(): k for k in sorted(known, reverse=True)}
    near = difflib.get_close_matches(name.casefold(), sorted(folded), n=NEAREST, cutoff=0.4)
    names = [folded[k] for k in near] or sorted(known)[:NEAREST]
    return (
        f"the nearest: {', '.join(map(repr, names))}"
        if near
        else f"it has: {', '.join(map(repr, names)) or 'no names at all'}"
    )
