"""The id ledger: the current and the former ids of each identity. A published id stays with its task.

Two identities stand for every raw key: its normalised name in its industry, shared by all sources with that name, and
`source//key` itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import make_id
from opus_pipelines.wkg.task_matching.names import Identity, order

LEDGER_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("industry", "identity", "task_id")),
        ("former", pa.list_(pa.string())),
        ("in_use", pa.bool_()),
    ]
)
Strength = tuple[int, int, int, int]


@dataclass(frozen=True)
class Entry:
    """The id of an identity, and its history.

    `former` are the ids before a merge or a split, sorted. `in_use` tells whether the last snapshot had the identity.
    """

    task_id: str
    former: tuple[str, ...] = ()
    in_use: bool = True

    def now(self, task_id: str) -> "Entry":
        """Returns the entry with this id; the present id joins the former ones."""
        return Entry(task_id, tuple(sorted({*self.former, self.task_id} - {task_id})))


Ledger = dict[Identity, Entry]


@dataclass(frozen=True)
class Claim:
    """The part of a raw key in a task: its two identities and how often it was carried out."""

    name: Identity
    raw: Identity
    weight: int


def assign(tasks: Sequence[Sequence[Claim]], ledger: Mapping[Identity, Entry]) -> tuple[list[str], Ledger]:
    """Returns an id for each task, and the entries of all identities in use.

    An id goes to the task with the strongest claim: the weight of its raw keys that had it in the last snapshot and
    keep their name, then of those that had it then, then of those that ever had it. A task that wins several ids keeps
    its strongest; one that wins none gets a new id, derived from the first of its identities. A second call with these
    entries added changes nothing.
    """
    claims = [_claims(task, ledger) for task in tasks]
    first = [min(order(c.name) for c in task) for task in tasks]
    claimants: dict[str, list[int]] = defaultdict(list)
    for number, claimed in enumerate(claims):
        for task_id in claimed:
            claimants[task_id].append(number)
    won: dict[int, list[str]] = defaultdict(list)
    for task_id, numbers in claimants.items():
        won[min(numbers, key=lambda n: (_weakness(claims[n][task_id]), first[n]))].append(task_id)
    taken = {task_id for entry in ledger.values() for task_id in (entry.task_id, *entry.former)}
    ids = []
    for number, task in enumerate(tasks):
        best = min(won[number], key=lambda task_id: (_weakness(claims[number][task_id]), task_id), default=None)
        ids.append(best or _new(min((c.name for c in task), key=order), taken))
    entries: Ledger = {}
    for task_id, task in zip(ids, tasks, strict=True):
        for identity in {identity for c in task for identity in (c.name, c.raw)}:
            entries[identity] = ledger[identity].now(task_id) if identity in ledger else Entry(task_id)
    return ids, entries


def _claims(task: Iterable[Claim], ledger: Mapping[Identity, Entry]) -> dict[str, Strength]:
    """Returns, for each id that the identities of a task hold, the weight of the raw keys that hold it.

    The four weights are: now and by name, now, by name, ever.
    """
    weights: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for claim in task:
        name, raw = ledger.get(claim.name), ledger.get(claim.raw)
        for task_id in {entry.task_id for entry in (name, raw) if entry}:
            by_name, by_key = (entry is not None and entry.task_id == task_id for entry in (name, raw))
            now = by_key and raw is not None and raw.in_use
            for place, holds in enumerate((now and by_name, now, by_key and by_name, True)):
                weights[task_id][place] += claim.weight * holds
    return {task_id: (a, b, c, d) for task_id, (a, b, c, d) in weights.items()}


def _weakness(strength: Strength) -> Strength:
    a, b, c, d = strength
    return -a, -b, -c, -d


def _new(identity: Identity, taken: set[str]) -> str:
    task_id, turn = make_id("t", *identity), 1
    while task_id in taken:
        task_id, turn = make_id("t", *identity, turn), turn + 1
    taken.add(task_id)
    return task_id


def read_ledger(path: Path) -> Ledger:
    """Returns the id ledger; it is empty before the first rebuild.

    A ledger of an older version has no former ids. Raises LakeError when the file is broken.
    """
    if not path.exists():
        return {}
    try:
        rows = pq.ParquetFile(path).read().to_pylist()
        ledger = {
            (row["industry"], row["identity"]): Entry(
                row["task_id"], tuple(row.get("former") or ()), row.get("in_use", True)
            )
            for row in rows
        }
    except (pa.ArrowException, KeyError) as error:
        raise LakeError(f"{path} is not an id ledger ({error}); restore it from a backup") from None
    if len(ledger) != len(rows) or not all(identity and entry.task_id for (_, identity), entry in ledger.items()):
        raise LakeError(f"{path}: the id ledger gives an identity two ids, or none; restore it from a backup")
    return ledger


def added(ledger: Mapping[Identity, Entry], entries: Mapping[Identity, Entry]) -> Ledger:
    """The ledger after a snapshot of these entries: what it lacks stays, out of use."""
    return {identity: replace(entry, in_use=False) for identity, entry in ledger.items()} | dict(entries)


def ledger_rows(ledger: Mapping[Identity, Entry]) -> list[dict[str, Any]]:
    """Entries as rows, in a fixed order."""
    entries = ((identity, ledger[identity]) for identity in sorted(ledger, key=order))
    return [{"industry": i, "identity": d, **vars(entry), "former": list(entry.former)} for (i, d), entry in entries]


def ledger_table(ledger: Mapping[Identity, Entry]) -> pa.Table:
    """The rows as they are kept."""
    return pa.Table.from_pylist(ledger_rows(ledger), schema=LEDGER_SCHEMA)
