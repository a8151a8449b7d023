"""Defines the content of a picture before its layout: nodes, edges, groups, and its texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

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
