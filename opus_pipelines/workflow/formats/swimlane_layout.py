"""Lays out a directed acyclic graph in swimlanes: the rank, lane and track of each vertex, and the paths of long edges.

*Along* is the direction of time, *across* the direction from lane to lane. A picture may run from left to right or from
top to bottom.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

Vertex = str
_Edge = tuple[Vertex, Vertex]
Track = tuple[int, int]  # lane, place inside the lane
Bend = tuple[float, float]  # along, across

GAP, SLOT = 36.0, 9.0
THIN, BETWEEN, LANE_PADDING = 14.0, 16.0, 14.0


@dataclass(frozen=True)
class Size:
    """The size of a vertex in pixels, along and across, and the space that stays free behind it, across."""

    along: float
    across: float
    behind: float = 0.0
    room: float = 0.0  # along, where it needs more than it fills


@dataclass
class Grid:
    """The rank and track of every vertex; `passing` is the track of an edge that skips ranks."""

    rank: dict[Vertex, int]
    track: dict[Vertex, Track] = field(default_factory=dict)
    passing: dict[_Edge, Track] = field(default_factory=dict)
    tracks: dict[int, int] = field(default_factory=dict)
    _busy: set[tuple[Track, int]] = field(default_factory=set)

    def free(self, track: Track, ranks: range) -> bool:
        """Returns whether nothing is in the track at these ranks."""
        return all((track, rank) not in self._busy for rank in ranks)

    def take(self, track: Track, ranks: range) -> None:
        """Occupies the track at these ranks."""
        self._busy.update((track, rank) for rank in ranks)
        self.tracks[track[0]] = max(self.tracks.get(track[0], 0), track[1] + 1)


@dataclass(frozen=True)
class Geometry:
    """The centres of vertices, the points of edges and the extents of lanes, as (along, across) from 0."""

    middle: dict[Vertex, Bend]
    routes: dict[_Edge, list[Bend]]
    lanes: list[tuple[float, float]]  # where each begins and ends, across
    length: float
    ranks: list[float]  # the middle of each rank, along


def grid(order: Sequence[Vertex], edges: Sequence[_Edge], lane_of: Callable[[Vertex], int], lanes: int) -> Grid:
    """Returns the places of vertices in topological `order`; deterministic, and no two share a place."""
    parents: dict[Vertex, list[Vertex]] = {v: [] for v in order}
    for src, dst in edges:
        parents[dst].append(src)
    rank: dict[Vertex, int] = {}
    for v in order:
        rank[v] = max((rank[u] + 1 for u in parents[v]), default=0)
    placed = Grid(rank, tracks=dict.fromkeys(range(lanes), 1))
    for v in sorted(order, key=lambda v: rank[v]):
        lane = lane_of(v)
        wanted = [placed.track[u] for u in parents[v] if placed.track[u][0] == lane]
        at = range(rank[v], rank[v] + 1)
        placed.track[v] = next(t for t in chain(wanted, _all_tracks(lane)) if placed.free(t, at))
        placed.take(placed.track[v], at)
    for edge in sorted(
        (e for e in edges if rank[e[1]] - rank[e[0]] > 1), key=lambda e: (rank[e[1]] - rank[e[0]], rank[e[0]], e)
    ):
        placed.passing[edge] = _passage(placed, edge)
    return placed


def geometry(
    placed: Grid, edges: Sequence[_Edge], size: Mapping[Vertex, Size], above: Mapping[Vertex, float] | None = None
) -> Geometry:
    """Returns the grid in pixels: each rank as wide as its content, and edge bends side by side between two ranks.

    `above`: the space that a vertex needs between the last bend and itself, for text at the end of its edges.
    """
    slots = _slots(placed, edges)
    wanted = above or {}
    extra: dict[int, float] = {}
    for v, rank in placed.rank.items():
        extra[rank] = max(extra.get(rank, 0.0), wanted.get(v, 0.0) - GAP / 2)
    along, ends = _along(placed, size, slots, extra)
    across, lanes = _across(placed, size)
    middle = {v: (along[placed.rank[v]], across[t]) for v, t in placed.track.items()}
    turns = {(rank, key): ends[rank] + GAP / 2 + SLOT * i for rank, here in slots.items() for key, i in here.items()}
    coordinates = _Coordinates(middle, size, across, turns)
    paths = {e: coordinates.points(e, placed) for e in edges}
    return Geometry(middle, paths, lanes, ends[-1] if ends else 0.0, along)


def _all_tracks(lane: int) -> Iterator[Track]:
    place = 0
    while True:
        yield lane, place
        place += 1


def _passage(placed: Grid, edge: _Edge) -> Track:
    """Returns a track that is free between the edge's ends: one of its own, one of its lanes, or a new one."""
    between = range(placed.rank[edge[0]] + 1, placed.rank[edge[1]])
    own = [placed.track[v] for v in edge]
    known = [
        (lane, place) for lane in dict.fromkeys(t[0] for t in reversed(own)) for place in range(placed.tracks[lane])
    ]
    track = next(t for t in chain(own, known, _all_tracks(own[1][0])) if placed.free(t, between))
    placed.take(track, between)
    return track


def _slots(placed: Grid, edges: Sequence[_Edge]) -> dict[int, dict[Hashable, int]]:
    """Returns the edges that bend behind each rank; those that leave one vertex there bend together."""
    slots: dict[int, dict[Hashable, int]] = {}
    for src, dst in sorted(edges, key=lambda e: (placed.rank[e[0]], placed.track[e[1]], e)):
        bends = [(placed.rank[src], ("from", src))]
        if (src, dst) in placed.passing:
            bends.append((placed.rank[dst] - 1, ("to", dst)))
        for rank, key in bends:
            here = slots.setdefault(rank, {})
            here.setdefault(key, len(here))
    return slots


def _along(
    placed: Grid, size: Mapping[Vertex, Size], slots: Mapping[int, Mapping[Hashable, int]], extra: Mapping[int, float]
) -> tuple[list[float], list[float]]:
    """Returns the centre of each rank, and where it ends."""
    at, middles, ends = 0.0, [], []
    for rank in range(max(placed.rank.values(), default=-1) + 1):
        extent = max(max(s.along, s.room) for v, s in size.items() if placed.rank[v] == rank)
        middles.append(at + extent / 2)
        ends.append(at + extent)
        at += extent + GAP + SLOT * max(0, len(slots.get(rank, ())) - 1) + extra.get(rank + 1, 0.0)
    return middles, ends


def _across(placed: Grid, size: Mapping[Vertex, Size]) -> tuple[dict[Track, float], list[tuple[float, float]]]:
    inside: dict[Track, list[Size]] = {}
    for v, track in placed.track.items():
        inside.setdefault(track, []).append(size[v])
    at = 0.0
    middle: dict[Track, float] = {}
    lanes = []
    for lane, count in sorted(placed.tracks.items()):
        begins = at
        at += LANE_PADDING
        for place in range(count):
            held = inside.get((lane, place), [])
            before = max((s.across / 2 for s in held), default=THIN / 2)
            middle[lane, place] = at + before
            at += before + max((s.across / 2 + s.behind for s in held), default=THIN / 2) + BETWEEN
        at += LANE_PADDING - BETWEEN
        lanes.append((begins, at))
    return middle, lanes


@dataclass(frozen=True)
class _Coordinates:
    """What the points of an edge are made of: centres and sizes of vertices, centres of tracks, and bend positions."""

    middle: Mapping[Vertex, Bend]
    size: Mapping[Vertex, Size]
    across: Mapping[Track, float]
    turns: Mapping[tuple[int, Hashable], float]

    def points(self, edge: _Edge, placed: Grid) -> list[Bend]:
        """Returns the points of an edge from the border of its source to the border of its target."""
        src, dst = edge
        (a0, c0), (a1, c1) = self.middle[src], self.middle[dst]
        points = [(a0 + self.size[src].along / 2, c0)]
        if edge in placed.passing:
            through = self.across[placed.passing[edge]]
            first = self.turns[placed.rank[src], ("from", src)]
            last = self.turns[placed.rank[dst] - 1, ("to", dst)]
            points += [(first, c0), (first, through), (last, through), (last, c1)]
        elif c0 != c1:
            first = self.turns[placed.rank[src], ("from", src)]
            points += [(first, c0), (first, c1)]
        return _plain([*points, (a1 - self.size[dst].along / 2, c1)])


def _plain(points: Sequence[Bend]) -> list[Bend]:
    """Returns the points without those on a straight line; the ends stay."""
    kept = [points[0]]
    for here, after in pairwise(points[1:]):
        straight = kept[-1][0] == here[0] == after[0] or kept[-1][1] == here[1] == after[1]
        if here != kept[-1] and not straight:
            kept.append(here)
    return [*kept, points[-1]]
