"""Defines colours that people with a colour vision deficiency can distinguish.

Each is a pale fill for dark text, and a strong border.
"""

from dataclasses import dataclass

from opus_pipelines.reporting.graphs.model import Change

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
