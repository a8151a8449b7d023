"""What colours, widths and dashes mean, in rows as wide as the picture."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from opus_pipelines.reports.graphs import palette, text
from opus_pipelines.reports.graphs.model import Change, Picture
from opus_pipelines.reports.graphs.palette import CHANGES, OTHER, SIGNS, Colour
from opus_pipelines.reports.graphs.route import line_width
from opus_pipelines.reports.graphs.shapes import Layout

LEGEND_SIZE, SHELF_HEIGHT = 11.0, 19.0
LONGEST = 260.0
CHANGE_WORDS = {Change.ADDED: "added", Change.REMOVED: "removed", Change.MOVED: "its share moved"}


@dataclass(frozen=True)
class Entry:
    """A swatch with its words: of a colour, or of a line."""

    words: str
    colour: Colour | None = None
    line: float = 0.0
    dashes: str = ""

    @property
    def width(self) -> float:
        """Pixels, with the space behind it."""
        return 28 + text.width(self.words, LEGEND_SIZE) + 18


@dataclass
class Shelf:
    """A row of entries."""

    entries: list[Entry] = field(default_factory=list)
    height: float = SHELF_HEIGHT


def entries(picture: Picture, layout: Layout) -> Iterator[Entry]:
    """An entry for each thing that the picture shows, and none else."""
    own = picture.groups[: len(palette.GROUPS)]
    for colour, (_, words) in zip(palette.GROUPS, own, strict=False):
        yield Entry(text.shorten(text.clean(words), LEGEND_SIZE, LONGEST), colour)
    if more := len(picture.groups) - len(own):
        yield Entry(f"{more} more", OTHER)
    for change in picture.changes():
        yield Entry(f"{SIGNS[change]} {CHANGE_WORDS[change]}", CHANGES[change])
    if layout.edges:
        for rest, words in picture.widths:
            yield Entry(words, line=line_width(rest))
    if any(shape.is_back for shape in layout.edges):
        yield Entry("back to an earlier step", line=1.8, dashes="7 3")


def shelves(found: Iterator[Entry], limit: float) -> list[Shelf]:
    """The entries in rows no wider than `limit`."""
    made = [Shelf()]
    used = 0.0
    for entry in found:
        if made[-1].entries and used + entry.width > limit:
            made.append(Shelf())
            used = 0.0
        made[-1].entries.append(entry)
        used += entry.width
    return made

