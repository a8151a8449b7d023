"""Task resolution: decides which raw keys of which sources are one task, and gives tasks permanent ids.

The outcome is a function of names, settings and pins. The id ledger only tells which id each task has.

Decides which names are one task: by pins first, then by equal names, then by duplicate detection. The outcome is
stored, so that an unchanged rebuild does not compute it again.

Task resolution in a rebuild: reuses the stored outcome when nothing changed, else calls the encoder.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import ALIASES
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import versions_of
from opus_pipelines.lake.layout import Lake, read_json, table_of, write_json
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.wkg.task_matching.duplicate_detection import DuplicateDetector, components_of, tasks_of
from opus_pipelines.wkg.task_matching.id_ledger import Claim, Entry, Ledger, assign, read_ledger
from opus_pipelines.wkg.task_matching.names import (
    Identity,
    Node,
    Row,
    SourceNames,
    evidence_of,
    names_of,
    names_place,
    nodes_of,
    normalise,
    order,
    winner,
)
from opus_pipelines.wkg.task_matching.pins import Pins, read_pins

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.ingest import SourceState


MERGES = "merges.json"  # among what is kept


@dataclass(frozen=True)
class Merges:
    """Groups of names that are one task each.

    `similarities` has the pairs of a group that are similar in themselves, `pins` the names that pins join.
    """

    groups: tuple[tuple[Identity, ...], ...] = ()
    similarities: Mapping[frozenset[Identity], float] = field(default_factory=dict)
    pins: tuple[tuple[Identity, ...], ...] = ()

    def similarity(self, one: Identity, other: Identity) -> float | None:
        """Returns the similarity of two names of a group; None when only a pin or a third name joins them."""
        return self.similarities.get(frozenset((one, other)))

    def pinned(self, one: Identity, other: Identity) -> bool:
        """Tells whether a pin, or a chain of pins, joins two names."""
        return any(one in group and other in group for group in self.pins)


def merges_of(nodes: Sequence[Node], pins: Pins, across: bool, detector: DuplicateDetector | None = None) -> Merges:
    """Returns the groups of two or more names. The order of `nodes` does not matter.

    Without a `detector`, only pins and equal names join names.
    """
    equal = dict.fromkeys(_equal(nodes, across), 1.0)
    same = list(_pinned_same(nodes, pins))
    pinned_apart = _pinned_apart(nodes, pins)

    def similarity(one: int, other: int) -> float | None:
        pair = min(one, other), max(one, other)
        return equal.get(pair) or (detector.similarity(one, other) if detector else None)

    def apart(one: int, other: int) -> bool:
        if pinned_apart(one, other):
            return True
        return (
            detector is not None
            and (min(one, other), max(one, other)) not in equal
            and detector.named_separately(one, other)
        )

    similar = {
        pair: value for pair in (detector.candidates if detector else ()) if (value := similarity(*pair)) is not None
    } | equal
    pinned = components_of(len(nodes), ((group[0], other) for group in same for other in group[1:]))
    groups = [group for group in tasks_of(pinned, similar, similarity, apart) if len(group) > 1]
    pairs = (pair for group in groups for pair in combinations(group, 2))
    return Merges(
        tuple(tuple(nodes[i].identity for i in group) for group in groups),
        {
            frozenset((nodes[i].identity, nodes[j].identity)): value
            for i, j in pairs
            if (value := similarity(i, j)) is not None
        },
        tuple(tuple(nodes[i].identity for i in group) for group in pinned if len(group) > 1),
    )


def read_merges(path: Path, inputs: str) -> Merges | None:
    """Returns the stored outcome for the same inputs, else None."""
    kept = read_json(path)
    if kept is None or kept.get("inputs") != inputs:
        return None
    pairs = {frozenset(((a[0], a[1]), (b[0], b[1]))): value for a, b, value in kept["similarities"]}
    groups, pins = (tuple(tuple((i, d) for i, d in group) for group in kept[name]) for name in ("groups", "pins"))
    return Merges(groups, pairs, pins)


def keep_merges(path: Path, inputs: str, merges: Merges) -> None:
    """Stores the outcome for later rebuilds with these inputs."""
    pairs = [[*sorted(map(list, pair), key=repr), value] for pair, value in merges.similarities.items()]
    kept: dict[str, Any] = {
        "inputs": inputs,
        "groups": merges.groups,
        "pins": merges.pins,
        "similarities": sorted(pairs, key=repr),
    }
    write_json(path, kept)


def _equal(nodes: Sequence[Node], across: bool) -> Iterator[tuple[int, int]]:
    """Yields pairs of free names that are equal after normalisation.

    Such names are two where their industries differ and settings merge across industries, or where a pin separates one
    of them from a third.
    """
    by_name: dict[tuple[str | None, str], list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        if node.free:
            by_name[None if across else node.identity[0], node.normal].append(i)
    for names in by_name.values():
        yield from combinations(names, 2)


def _pinned_same(nodes: Sequence[Node], pins: Pins) -> Iterable[list[int]]:
    """Yields for each pin the names that it joins.

    They are joined per industry when one industry has them all, else across industries.
    """
    numbers: dict[str, dict[str | None, set[int]]] = defaultdict(lambda: defaultdict(set))
    for i, node in enumerate(nodes):
        for row in node.rows:
            numbers[f"{row.source}/{row.key}"][row.industry].add(i)
    for pin in pins.same:
        named = [numbers[task] for task in pin.tasks if task in numbers]
        shared = set.intersection(*map(set, named)) if named else set()
        for industry in sorted(shared, key=repr):
            yield sorted({i for task in named for i in task[industry]})
        if named and not shared:
            yield sorted({i for task in named for ids in task.values() for i in ids})


def _pinned_apart(nodes: Sequence[Node], pins: Pins) -> Callable[[int, int], bool]:
    tasks = [{f"{row.source}/{row.key}" for row in node.rows} & pins.kept_apart for node in nodes]

    def apart(one: int, other: int) -> bool:
        return any(frozenset((a, b)) in pins.pairs_apart for a in tasks[one] for b in tasks[other])

    return apart


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


logger = logging.getLogger("opus_pipelines.rebuild")


@dataclass(frozen=True)
class NightlyResolution:
    """The inputs of task resolution: the lake, the settings and the sources of history."""

    lake: Lake
    settings: Settings
    sources: "Sequence[SourceState]"

    def resolution(self, encoder: Callable[[], TextEncoder]) -> Resolution:
        """Returns the task of every raw key.

        `encoder` is called only when the outcome is not stored and there are names to compare.
        """
        for line in self.pins.unknown(f"{row.source}/{row.key}" for node in self._nodes for row in node.rows):
            logger.warning("%s", line)
        merges = read_merges(self._file, self._inputs)
        if merges is None:
            merges = self._merges(encoder)
            keep_merges(self._file, self._inputs, merges)
        return identify(self._nodes, merges, read_ledger(self.lake.kept / "ids.parquet"))

    @property
    def is_known(self) -> bool:
        """Tells whether the outcome is stored already."""
        return read_merges(self._file, self._inputs) is not None

    @cached_property
    def pins(self) -> Pins:
        """The pins that a person set in pins.toml."""
        return read_pins(self.settings.paths.history)

    def _merges(self, encoder: Callable[[], TextEncoder]) -> Merges:
        wkg = self.settings.wkg
        if wkg.merge != "embedding":
            return merges_of(self._nodes, self.pins, wkg.merge_across_industries)
        evidence = {s.source: evidence_of(self.lake, s.source, s.content) for s in self.sources}
        detector = DuplicateDetector(self._nodes, evidence, encoder, wkg.merge_threshold, wkg.merge_across_industries)
        return merges_of(self._nodes, self.pins, wkg.merge_across_industries, detector)

    @cached_property
    def _nodes(self) -> list[Node]:
        names = [
            SourceNames(s.source, s.merge, _counts(names_of(self.lake, s.source, s.content, s.folder)))
            for s in self.sources
        ]
        return nodes_of(names, self.settings.wkg.merge, self.pins, self.settings.wkg.merge_across_industries)

    @property
    def _file(self) -> Path:
        return self.lake.kept / MERGES

    @cached_property
    def _inputs(self) -> str:
        """The hash of all inputs of the outcome; the id ledger is not one of them."""
        settings = self.settings.wkg.model_dump(
            mode="json", include={"merge", "merge_threshold", "merge_across_industries"}
        )
        encoder = self.settings.encoder.model_dump(mode="json", exclude={"batch_size"})
        sources = sorted((s.source, s.merge, names_place(self.lake, s.source, s.content).name) for s in self.sources)
        return digest(sources, settings, encoder, self.pins.model_dump(mode="json"), versions_of("resolution"))


def _counts(names: Any) -> dict[tuple[str | None, str, str], int]:
    columns = (names[c].to_pylist() for c in ("industry", "task_key", "title", "count"))
    return {(industry, key, title): count for industry, key, title, count in zip(*columns, strict=True)}
