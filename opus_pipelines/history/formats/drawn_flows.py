"""Converts drawn flows to cases: tasks in order, each with the tasks that it directly follows.

Nodes are positions in a list, in the order of the file. Nodes that are no work (gateways, events, disabled steps) are
folded: what follows them follows their predecessors. A link that leads back is removed, so that a loop occurs once, and
is stored as an attribute of the task where it starts. All formats that draw a flow share this module.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from opus_pipelines.history.records.column_mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.records.money import Money
from opus_pipelines.history.records.raw import Case
from opus_pipelines.history.records.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.records.values import BadValueError, TimeParser

CONNECTIONS_LOST = "connections_lost"  # the attribute of a model with the number of its links that lead to nothing
LINKS = 500_000  # folding n branches into m makes n * m links: a file of a few megabytes could ask for billions


class TooManyLinksError(ValueError):
    """The flow with folded gateways has more links than any process that people work by."""


@dataclass(frozen=True)
class UnrolledFlow:
    """A flow without cycles.

    `order` has the nodes that are work, `before` the nodes that each directly follows, and `loops` the nodes to which
    it may lead back.
    """

    order: list[int]
    before: dict[int, list[int]]
    loops: dict[int, list[int]]


def unroll(is_work: Sequence[bool], links: Iterable[tuple[int, int]]) -> UnrolledFlow:
    """Returns the flow without gateways and without cycles. Raises TooManyLinksError."""
    after: list[list[int]] = [[] for _ in is_work]
    for src, dst in dict.fromkeys(links):
        after[src].append(dst)
    back = _back_links(after)
    forward = [[dst for dst in ends if (src, dst) not in back] for src, ends in enumerate(after)]
    behind: list[list[int]] = [[] for _ in is_work]
    for src, ends in enumerate(forward):
        for dst in ends:
            behind[dst].append(src)
    order = _sorted(forward, behind)
    before = _nearest(is_work, behind, order)
    ahead = _nearest(is_work, forward, reversed(order)) if back else []
    loops: defaultdict[int, set[int]] = defaultdict(set)
    for src, dst in back:
        for last in {src} if is_work[src] else before[src]:
            loops[last] |= {dst} if is_work[dst] else ahead[dst]
    work = [node for node in order if is_work[node]]
    return UnrolledFlow(work, {n: sorted(before[n]) for n in work}, {n: sorted(to) for n, to in loops.items() if to})


def _back_links(after: list[list[int]]) -> set[tuple[int, int]]:
    """Returns the links that close a cycle, by depth-first search from the start nodes.

    The search is iterative because drawn chains may be longer than Python's stack.
    """
    entered = {dst for ends in after for dst in ends}
    roots = [n for n in range(len(after)) if n not in entered]
    state = [0] * len(after)  # 0 unvisited, 1 on the current path, 2 finished
    back = set()
    for root in (*roots, *range(len(after))):
        path = [] if state[root] else [(root, iter(after[root]))]
        state[root] = state[root] or 1
        while path:
            node, ends = path[-1]
            dst = next(ends, None)
            if dst is None:
                state[node] = 2
                path.pop()
            elif state[dst] == 1:
                back.add((node, dst))
            elif not state[dst]:
                state[dst] = 1
                path.append((dst, iter(after[dst])))
    return back


def _sorted(forward: list[list[int]], behind: list[list[int]]) -> list[int]:
    """Returns a topological order that prefers the order of the file."""
    missing = [len(nodes) for nodes in behind]
    ready = [n for n, count in enumerate(missing) if not count]
    order = []
    while ready:
        node = heappop(ready)
        order.append(node)
        for dst in forward[node]:
            missing[dst] -= 1
            if not missing[dst]:
                heappush(ready, dst)
    return order


def _nearest(is_work: Sequence[bool], towards: list[list[int]], order: Iterable[int]) -> list[set[int]]:
    """Returns, for every node, the nearest work nodes in one direction, through nodes that are no work."""
    nearest: list[set[int]] = [set() for _ in towards]
    links = 0
    for node in order:
        for neighbour in towards[node]:
            work = {neighbour} if is_work[neighbour] else nearest[neighbour]
            nearest[node] |= work
            links += len(work)
        if links > LINKS:
            raise TooManyLinksError(f"with its gateways folded it has more than {LINKS:,} links between tasks")
    return nearest


LOOP_BACK = "loop_back_to"
_CASE = {"title": "name", "description": "documentation"}
_STEP = {
    "activity": "key",
    "task_title": "name",
    "task_description": "documentation",
    "instructions": "instructions",
    "actor": "actor",
    "actor_kind": "actor_kind",
    "actor_group": "lane",
    "model": "model",
    "inputs": "inputs",
    "outputs": "outputs",
    "predecessors": "predecessors",
}


class ModelMap:
    """Builds a case of a flow.

    The raw keys are those of `_CASE` and `_STEP` unless `[columns]` says otherwise. All other keys are attributes.
    """

    def __init__(self, settings: SourceSettings, money: Money) -> None:
        stated = {k: v for k, v in settings.columns.model_dump(exclude_none=True).items() if isinstance(v, str)}
        names = case_names(
            settings, _CASE | {k: v for k, v in stated.items() if k in CaseNames.model_fields and k != "case"}
        )
        self._case_map = CaseMap(names, settings.columns.attributes, money)
        of_steps = _STEP | {k: v for k, v in stated.items() if k in EventNames.model_fields}
        self._events = EventMap(
            of_steps, CaseMap({}, [], money), settings, TimeParser(settings.timezone, settings.time_format)
        )

    def case(
        self, case_id: str, own: Mapping[str, Any], steps: list[dict[str, Any] | None], links: Iterable[tuple[int, int]]
    ) -> Case:
        """Builds the case of a flow.

        `steps` are raw records, or None for a node that is no work. Raises BadValueError.
        """
        try:
            flow = unroll([step is not None for step in steps], links)
        except TooManyLinksError as error:
            raise BadValueError("too_many_links", str(error)) from None
        fields: dict[str, Any] = {}
        self._case_map.collect(fields, own)
        self._case_map.collect_attributes(fields, own)
        place = {node: n for n, node in enumerate(flow.order)}
        events = []
        for node in flow.order:
            raw: dict[str, Any] = (steps[node] or {}) | {"predecessors": [place[n] for n in flow.before[node]]}
            if node in flow.loops:
                raw[LOOP_BACK] = "; ".join(str((steps[n] or {}).get("name", "")) for n in flow.loops[node])
            events.append(self._events.event(raw, place[node]))
        return Case(case_id, fields, events)
