"""Finds names of `[rates]` that no actor in a source has, because such a price has no effect.

The message names the nearest names that the source has.
"""

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.event_logs.costing import GROUP_ATTRIBUTES, NO_GROUP, PARTS, model_names

NEAREST = 3


def unknown_rates(rates: Iterable[str], folder: Path) -> list[str]:
    """Returns a message for each name that is no person, role, group, AI model or kind of actor in `folder`."""
    left = [name for name in rates if name not in PARTS]
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
