"""The search behind `paths.k_best`: best first over partial paths, led by a lower bound of what is still to pay.

A state is a node and which of the guiding groups a path has met by then. The bound is the exact cost to go over these states, plus
the least that meeting each further group can cost.
"""

import heapq
from collections.abc import Iterator

from opus_pipelines.wfg.algorithm1 import INPUT, OUTPUT

# Up to 2^groups states a node: groups beyond these bounds do not guide the search, a path is only held against them.
MAX_GUIDING = 16
MAX_STATES = 50_000

Group = frozenset[str]
# Integers of 1e-12 dollars, then of how little trodden.
Cost = tuple[int, int]
State = tuple[str, int]
Steps = dict[str, dict[str, Cost]]
Found = dict[tuple[str, ...], Cost]
# Nodes, cost so far, groups met.
Partial = tuple[tuple[str, ...], Cost, int]


def reverse(steps: Steps) -> Steps:
    """The steps into each node."""
    back: Steps = {n: {} for n in steps}
    for src, targets in steps.items():
        for dst, cost in targets.items():
            back[dst][src] = cost
    return back


def plus(a: Cost, b: Cost) -> Cost:
    """The sum, part by part."""
    return a[0] + b[0], a[1] + b[1]


class Search:
    """Best first over partial paths, led by the exact cost to go over (node, guiding groups met)."""

    def __init__(self, steps: Steps, groups: list[Group]) -> None:
        self.steps = steps
        self.bits: dict[str, int] = dict.fromkeys(steps, 0)
        for bit, group in enumerate(groups):
            for node in group:
                self.bits[node] |= 1 << bit
        self.full = (1 << len(groups)) - 1
        self.guide, states = self._guided(len(groups))
        self.least, self.counted = self._least(groups[self.guide.bit_count():])
        self.to_go = self._costs_to_go(states)

    def _guided(self, groups: int) -> tuple[int, set[State]]:
        """As many groups, first ones first, as keep the states within MAX_STATES; and the states that the input leads to."""
        for guiding in range(min(groups, MAX_GUIDING), 0, -1):
            guide = (1 << guiding) - 1
            states = self._states(guide, MAX_STATES)
            if len(states) <= MAX_STATES:
                return guide, states
        return 0, self._states(0, len(self.steps))

    def _states(self, guide: int, limit: int) -> set[State]:
        found: set[State] = {(INPUT, 0)}
        frontier = list(found)
        while frontier and len(found) <= limit:
            node, met = frontier.pop()
            new = {(other, met | self.bits[other] & guide) for other in self.steps.get(node, ())} - found
            found |= new
            frontier.extend(new)
        return found

    def _least(self, unguided: list[Group]) -> tuple[list[int], dict[str, int]]:
        """What meeting each unguided group costs at least, and what was counted of each node's cost for that: none is counted twice.

        A path pays it once for every group that it has not met. Without it, partial paths that leave a needed task out look cheap.
        """
        entry = {v: min((cost for cost, _ in back.values()), default=0) for v, back in reverse(self.steps).items()}
        counted = dict.fromkeys(self.steps, 0)
        least = []
        for group in unguided:
            least.append(min(entry[v] - counted[v] for v in group))
            for node in group:
                counted[node] += least[-1]
        return least, counted

    def _ahead(self, node: str, met: int) -> Cost | None:
        """A lower bound of what is still to pay from a node on; None where nothing fits."""
        known = self.to_go.get((node, met & self.guide))
        if known is None or not self.least:
            return known
        first = self.guide.bit_count()
        return known[0] + sum(cost for i, cost in enumerate(self.least) if not met >> (first + i) & 1), known[1]

    def _costs_to_go(self, states: set[State]) -> dict[State, Cost]:
        """Dijkstra backwards from the output with all guiding groups met."""
        back = reverse(self.steps)
        found: dict[State, Cost] = {}
        heap: list[tuple[Cost, State]] = [((0, 0), (OUTPUT, self.guide))]
        while heap:
            cost, state = heapq.heappop(heap)
            if state in found:
                continue
            found[state] = cost
            node, met = state
            for earlier in _less(self.bits[node] & self.guide, met):
                for other, more in back[node].items():
                    if (other, earlier) in states and (other, earlier) not in found:
                        less = (more[0] - self.counted[node], more[1])
                        heapq.heappush(heap, (plus(cost, less), (other, earlier)))
        return found

    def run(self, k: int, max_expansions: int, greedy: bool = False) -> tuple[Found, bool]:
        """Up to k paths with their costs, and whether the bound left it alone.

        Partial paths go by cost so far plus cost to go (greedy: by groups missing, then by cost to go), equal ones by their nodes.
        """
        paths: Found = {}
        heap: list[tuple[Cost, tuple[str, ...], Cost, int]] = [((0, 0), (INPUT,), (0, 0), 0)] if (INPUT, 0) in self.to_go else []
        expansions = 0
        while heap and len(paths) < k:
            if expansions == max_expansions:
                return paths, False
            expansions += 1
            _, nodes, cost, met = heapq.heappop(heap)
            if nodes[-1] == OUTPUT:
                if met == self.full:
                    paths[nodes] = cost
                continue
            for partial, ahead in self._longer(nodes, cost, met):
                _, so_far, now = partial
                key = ((self.full & ~now).bit_count(), ahead[0]) if greedy else plus(so_far, ahead)
                heapq.heappush(heap, (key, *partial))
        return paths, True

    def _longer(self, nodes: tuple[str, ...], cost: Cost, met: int) -> Iterator[tuple[Partial, Cost]]:
        """The partial paths that are one loopless step longer, each with what is ahead of it."""
        for other, more in self.steps[nodes[-1]].items():
            now = met | self.bits[other]
            ahead = self._ahead(other, now)
            if ahead is not None and other not in nodes:
                yield ((*nodes, other), plus(cost, more), now), ahead


def _less(own: int, met: int) -> Iterator[int]:
    """What may have been met before a node that itself meets `own`: `met` less every part of `own`."""
    part = own
    while True:
        yield met & ~part
        if not part:
            return
        part = (part - 1) & own
