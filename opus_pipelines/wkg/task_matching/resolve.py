"""Task resolution: decides which raw keys of which sources are one task, and gives tasks permanent ids.

The outcome is a function of names, settings and pins. The id ledger only tells which id each task has.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from opus_pipelines.core.schemas import ALIASES
from opus_pipelines.lake.layout import table_of
from opus_pipelines.wkg.task_matching.id_ledger import Claim, Entry, Ledger, assign
from opus_pipelines.wkg.task_matching.merging import Merges
from opus_pipelines.wkg.task_matching.name_nodes import Identity, Node, Row, normalise, order, winner


@dataclass(frozen=True)
class Resolution:
    """The rows of wkg/task_aliases in order, the titles of tasks by id, and the ledger entries in use."""

    rows: list[dict[str, Any]]
    titles: dict[str, str]
    ids: Ledger

    @cached_property
    def aliases(self) -> pa.Table:
        """The table wkg/task_aliases.

        It is made at the first use, because making an Arrow table imports pandas, which an unchanged rebuild does not
        need.
        """
        return table_of(ALIASES, self.rows)

    @cached_property
    def by_source(self) -> dict[str, list[tuple[str | None, str, str]]]:
        """(industry, task_key, task_id) of each source, in a fixed order."""
        found: dict[str, list[tuple[str | None, str, str]]] = defaultdict(list)
        for row in self.rows:
            found[row["source"]].append((row["industry"], row["task_key"], row["task_id"]))
        return dict(found)

    def of_source(self, source: str) -> list[tuple[str | None, str, str]]:
        """Returns (industry, task_key, task_id) of one source, in a fixed order."""
        return self.by_source.get(source, [])


def identify(nodes: Sequence[Node], merges: Merges, ledger: Mapping[Identity, Entry]) -> Resolution:
    """Gives ids to the tasks that `merges` makes of the names, and returns the published row of each raw key."""
    by_identity = {node.identity: node for node in nodes}
    merged = {identity for group in merges.groups for identity in group}
    groups = [[by_identity[i] for i in group] for group in merges.groups] + [
        [n] for n in nodes if n.identity not in merged
    ]
    groups.sort(key=lambda group: group[0].order)
    claims = [[Claim(node.identity, row.raw, row.weight) for node in group for row in node.rows] for group in groups]
    ids, entries = assign(claims, ledger)
    rows: list[dict[str, Any]] = []
    titles = {}
    for task, group in zip(ids, groups, strict=True):
        votes: Counter[str] = Counter()
        for row in (row for node in group for row in node.rows):
            votes.update(row.titles)
        titles[task] = winner(votes)
        namesake = min(
            (n for n in group if n.normal == normalise(titles[task])), key=_heaviest, default=min(group, key=_heaviest)
        )
        named = _NamedTask(task, titles[task], namesake)
        rows += [_alias(row, node, named, merges, entries) for node in group for row in node.rows]
    rows.sort(key=lambda r: (r["source"], order((r["industry"], r["task_key"]))))
    return Resolution(rows, titles, entries)


@dataclass(frozen=True)
class _NamedTask:
    """A task with its title, and the name that gives it the title."""

    task_id: str
    title: str
    namesake: Node


def _alias(row: Row, node: Node, task: _NamedTask, merges: Merges, entries: Mapping[Identity, Entry]) -> dict[str, Any]:
    """Returns a row of wkg/task_aliases."""
    similarity: float | None
    namesake = task.namesake
    if node.normal == namesake.normal:
        method, similarity = "exact" if row.title == task.title else "normalised", 1.0
    else:
        similarity = merges.similarity(node.identity, namesake.identity)
        method = "pinned" if similarity is None or merges.pinned(node.identity, namesake.identity) else "embedding"
    former = sorted({*entries[node.identity].former, *entries[row.raw].former} - {task.task_id})
    return {
        "source": row.source,
        "industry": row.industry,
        "task_key": row.key,
        "title": row.title,
        "task_id": task.task_id,
        "similarity": similarity,
        "method": method,
        "former_task_ids": former,
    }


def _heaviest(node: Node) -> tuple[int, tuple[bool, str, str]]:
    return -sum(row.weight for row in node.rows), node.order
