"""Defines pictures of graphs: nodes, edges and groups, their colours, their texts, and their parts once laid out.

People with a colour vision deficiency can distinguish the colours; each is a pale fill for dark text, and a strong
border. Text is cleaned, measured and wrapped with the widths of DejaVu Sans, the widest of the fonts that browsers use
for `sans-serif`, so it fits in any of them. Boxes and curves are in pixels from the upper left.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from opus_pipelines.core.formatting import clean as clean

Pair = tuple[str, str]
WIDTHS = ((0.5, "γ 0.5"), (0.01, "γ 0.99"), (1e-9, "γ 1 - 10⁻⁹"))  # lines of the legend: 1 - γ, and its words


class Change(StrEnum):
    """What happened to a node or an edge since an earlier state of the graph."""

    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"


@dataclass(frozen=True)
class PictureNode:
    """A box: its title (wrapped), a line of figures, and a tooltip with all of them.

    `group` names its colour; a `focus` is the subject of the picture.
    """

    key: str
    title: str
    figures: str = ""
    tooltip: str = ""
    group: str | None = None
    focus: bool = False
    change: Change = Change.SAME


@dataclass(frozen=True)
class PictureEdge:
    """An arrow between two nodes of the picture.

    `one_minus_gamma` = exp(−λ·|ξ|), unrounded, determines its width.
    """

    src: str
    dst: str
    one_minus_gamma: float
    label: str = ""
    tooltip: str = ""
    change: Change = Change.SAME

    @property
    def pair(self) -> Pair:
        """Its key, (src, dst)."""
        return self.src, self.dst


@dataclass(frozen=True)
class Picture:
    """A whole picture.

    `edges` come strongest first: that order decides which direction is forward. `groups` are (group, text of the
    legend) and `widths` (1 − γ, text of the legend). Raises ValueError where a node or an edge occurs twice, or an edge
    ends outside.
    """

    title: str
    subtitle: str
    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...]
    groups: tuple[tuple[str, str], ...] = ()
    widths: tuple[tuple[float, str], ...] = WIDTHS

    def __post_init__(self) -> None:
        keys = {node.key for node in self.nodes}
        if len(keys) != len(self.nodes) or len({edge.pair for edge in self.edges}) != len(self.edges):
            raise ValueError("a node or an edge stands twice in the picture")
        if lost := [edge.pair for edge in self.edges if not {edge.src, edge.dst} <= keys]:
            raise ValueError(f"edges end outside the picture: {lost[:3]}")

    def changes(self) -> Iterator[Change]:
        """Returns the kinds of change that it shows, in a fixed order."""
        shown = {node.change for node in self.nodes} | {edge.change for edge in self.edges}
        return (change for change in Change if change in shown and change is not Change.SAME)


INK, QUIET, PAPER, LINE = "#1c2430", "#4d5866", "#ffffff", "#66707d"


@dataclass(frozen=True)
class Colour:
    """A fill for text, and a border that is visible on white."""

    fill: str
    border: str


# Found by search: the least distance of two of them, as seen with full and with no red, green or blue cones
# (Machado, Oliveira, Fernandes 2009), is the largest of 400 starts; the tests hold them to what that gave.
GROUPS = (
    Colour("#8dc6d9", "#008ab8"),
    Colour("#eda28a", "#b82e00"),
    Colour("#d0f7da", "#13802e"),
    Colour("#d0aef2", "#5c00b8"),
    Colour("#f2aebf", "#591b2a"),
    Colour("#d0daf7", "#1b2a59"),
    Colour("#70fa93", "#1b592a"),
)
OTHER = Colour("#e9ebee", "#6b7480")
CHANGES = {
    Change.ADDED: Colour("#c3ecdf", "#00805d"),
    Change.REMOVED: Colour("#fad4cf", "#c22f1e"),
    Change.MOVED: Colour("#cfe6f5", "#0072b2"),
}
SIGNS = {Change.ADDED: "+", Change.REMOVED: "−", Change.MOVED: "Δ", Change.SAME: ""}


def colours(groups: tuple[tuple[str, str], ...]) -> dict[str, Colour]:
    """Returns a colour for each group. Groups beyond the palette share one colour."""
    return {group: GROUPS[i] if i < len(GROUPS) else OTHER for i, (group, _) in enumerate(groups)}


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


ELLIPSIS = "…"
_WIDTHS = {  # in em, by DejaVu Sans
    0.28: "ijl'",
    0.32: " .,",
    0.34: ":;|",
    0.36: "fI-/\\",
    0.40: "tr()[]!",
    0.45: '"',
    0.53: "csz_",
    0.56: "kvxyJ",
    0.60: "eao*?",
    0.64: "bdghnpqu0123456789$FL\u2013",
    0.70: "ABCEPRSTVXYZK",
    0.78: "DGHNUOQ",
    0.84: "w+=<>~#&×→·" + ELLIPSIS,
    0.88: "M",
    0.98: "mW%@",
}
_WIDTH = {char: width for width, chars in _WIDTHS.items() for char in chars}
_UNSEEN = ("Mn", "Me", "Cf")
_PLACES = re.compile(r"(?<=[_\-/.:,;|])(?=\w)|(?<=[a-z])(?=[A-Z][a-z])")


def width(text: str, size: float) -> float:
    """Returns the width of `text` in pixels, at a font size of `size` pixels."""
    return size * sum(_em(char) for char in text)


def wrap(text: str, size: float, limit: float, lines: int) -> list[str]:
    """Returns at most `lines` lines, none wider than `limit` pixels.

    Lines are broken between words, else after _ - / and similar signs, else anywhere.
    """
    wrapped: list[str] = []
    line = ""
    for space, piece in _pieces(clean(text), size, limit):
        joined = line + space + piece if line else piece
        if width(joined, size) <= limit:
            line = joined
            continue
        wrapped.append(line)
        line = piece
    wrapped.append(line)
    if len(wrapped) > lines:
        wrapped = [*wrapped[: lines - 1], shorten(f"{wrapped[lines - 1]} {wrapped[lines]}", size, limit)]
    return wrapped


def shorten(text: str, size: float, limit: float) -> str:
    """Returns `text`, cut with an ellipsis where it is wider than `limit` pixels."""
    if width(text, size) <= limit:
        return text
    cut = text
    while cut and width(cut.rstrip() + ELLIPSIS, size) > limit:
        cut = cut[:-1]
    return cut.rstrip() + ELLIPSIS


def _em(char: str) -> float:
    if char in _WIDTH:
        return _WIDTH[char]
    if unicodedata.category(char) in _UNSEEN:
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    return 1.3 if ord(char) > 0x1_0000 else 0.8


def _pieces(text: str, size: float, limit: float) -> list[tuple[str, str]]:
    """Returns pieces of the text, none wider than `limit`, each with what joins it to the piece before."""
    pieces: list[tuple[str, str]] = []
    for word in text.split(" "):
        parts = (
            [word]
            if width(word, size) <= limit
            else [cut for part in _PLACES.split(word) for cut in _cut(part, size, limit)]
        )
        pieces += [(" " if i == 0 else "", part) for i, part in enumerate(parts)]
    return pieces


def _cut(word: str, size: float, limit: float) -> list[str]:
    """Splits a word that is too wide for a line; combining marks stay with their letter."""
    parts, line = [], ""
    for char in word:
        if line and width(line + char, size) > limit and unicodedata.category(char) not in _UNSEEN:
            parts.append(line)
            line = ""
        line += char
    return [*parts, line] if line else parts
