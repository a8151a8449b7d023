"""Defines the parts of a laid out picture: boxes of nodes and curves of edges, in pixels from the upper left."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opus_pipelines.reporting.graphs.model import PictureEdge, PictureNode

Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def touches(self, other: "Box", gap: float = 0.0) -> bool:
        """Returns whether the two boxes are nearer to each other than `gap`."""
        separate = (
            self.x + self.width + gap <= other.x
            or other.x + other.width + gap <= self.x
            or self.y + self.height + gap <= other.y
            or other.y + other.height + gap <= self.y
        )
        return not separate

    def holds(self, point: Point, margin: float = 0.0) -> bool:
        """Returns whether the point lies in the box, or within `margin` of it."""
        x, y = point
        return (
            self.x - margin < x < self.x + self.width + margin and self.y - margin < y < self.y + self.height + margin
        )

    def moved(self, dx: float, dy: float) -> "Box":
        """Returns the same box at another place."""
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True)
class NodeShape:
    """A node's box and the lines of its title."""

    node: PictureNode
    box: Box
    lines: tuple[str, ...]


@dataclass(frozen=True)
class EdgeShape:
    """An edge as cubic curves.

    `points` are a start, then three points for each curve: two control points and its end. `ahead` is the direction of
    the arrow.
    """

    edge: PictureEdge
    points: tuple[Point, ...]
    ahead: Point
    width: float
    is_back: bool = False
    label: Box | None = None

    @property
    def tip(self) -> Point:
        """The middle of the arrow's head."""
        half = 0.5 * (5.0 + 1.5 * self.width)
        return self.points[-1][0] + half * self.ahead[0], self.points[-1][1] + half * self.ahead[1]

    def samples(self, step: float = 4.0) -> Iterator[Point]:
        """Yields points along the edge, about `step` pixels apart."""
        for i in range(0, len(self.points) - 1, 3):
            a, b, c, d = self.points[i : i + 4]
            length = abs(d[0] - a[0]) + abs(d[1] - a[1]) + abs(b[1] - a[1])
            for k in range(count := max(2, int(length / step))):
                yield _cubic(a, b, c, d, k / count)
        yield self.points[-1]


@dataclass(frozen=True)
class Layout:
    """The shapes and the size of a part of a picture, or of all of it."""

    nodes: list[NodeShape] = field(default_factory=list)
    edges: list[EdgeShape] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def moved(self, dx: float, dy: float) -> "Layout":
        """Returns the same shapes at another place; the size stays."""
        nodes = [replace(n, box=n.box.moved(dx, dy)) for n in self.nodes]
        edges = [
            replace(
                e, points=tuple((x + dx, y + dy) for x, y in e.points), label=e.label.moved(dx, dy) if e.label else None
            )
            for e in self.edges
        ]
        return Layout(nodes, edges, self.width, self.height)


def _cubic(a: Point, b: Point, c: Point, d: Point, t: float) -> Point:
    u = 1 - t
    wa, wb, wc, wd = u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t
    return wa * a[0] + wb * b[0] + wc * c[0] + wd * d[0], wa * a[1] + wb * b[1] + wc * c[1] + wd * d[1]
