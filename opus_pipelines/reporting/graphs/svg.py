"""Writes a picture as one standalone SVG file: no script, no style sheet, nothing external, every text escaped.

A legend explains colours, widths and dashes, in rows as wide as the picture.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from opus_pipelines.reporting.graphs import model
from opus_pipelines.reporting.graphs.layout import (
    FIGURES_LINE,
    FIGURES_SIZE,
    LABEL_SIZE,
    PADDING,
    TITLE_LINE,
    TITLE_SIZE,
    arrow_length,
    lay_out,
    line_width,
)
from opus_pipelines.reporting.graphs.model import (
    CHANGES,
    INK,
    LINE,
    OTHER,
    PAPER,
    QUIET,
    SIGNS,
    Box,
    Change,
    Colour,
    EdgeShape,
    Layout,
    NodeShape,
    Picture,
    PictureEdge,
    Point,
)

LEGEND_SIZE, LEGEND_ROW_HEIGHT = 11.0, 19.0
_LONGEST = 260.0
CHANGE_WORDS = {Change.ADDED: "added", Change.REMOVED: "removed", Change.MOVED: "its share moved"}


@dataclass(frozen=True)
class Entry:
    """A legend entry: a colour or a line, with its text."""

    words: str
    colour: Colour | None = None
    line: float = 0.0
    dashes: str = ""

    @property
    def width(self) -> float:
        """Its width in pixels, with the space after it."""
        return 28 + model.width(self.words, LEGEND_SIZE) + 18


@dataclass
class LegendRow:
    """A row of legend entries."""

    entries: list[Entry] = field(default_factory=list)
    height: float = LEGEND_ROW_HEIGHT


def entries(picture: Picture, layout: Layout) -> Iterator[Entry]:
    """Yields a legend entry for each kind of thing that the picture shows."""
    own = picture.groups[: len(model.GROUPS)]
    for colour, (_, words) in zip(model.GROUPS, own, strict=False):
        yield Entry(model.shorten(model.clean(words), LEGEND_SIZE, _LONGEST), colour)
    if more := len(picture.groups) - len(own):
        yield Entry(f"{more} more", OTHER)
    for change in picture.changes():
        yield Entry(f"{SIGNS[change]} {CHANGE_WORDS[change]}", CHANGES[change])
    if layout.edges:
        for rest, words in picture.widths:
            yield Entry(words, line=line_width(rest))
    if any(shape.is_back for shape in layout.edges):
        yield Entry("back to an earlier step", line=1.8, dashes="7 3")


def legend_rows(legend_entries: Iterator[Entry], limit: float) -> list[LegendRow]:
    """Returns the entries in rows no wider than `limit` pixels."""
    rows = [LegendRow()]
    used = 0.0
    for entry in legend_entries:
        if rows[-1].entries and used + entry.width > limit:
            rows.append(LegendRow())
            used = 0.0
        rows[-1].entries.append(entry)
        used += entry.width
    return rows


FONT = "Inter, 'Segoe UI', Helvetica, Arial, 'Noto Sans', 'DejaVu Sans', sans-serif"
MARGIN, LEAST_WIDTH = 24.0, 720.0
HEAD_SIZE, SUB_SIZE, SUB_LINE = 17.0, 12.0, 16.0


def svg(picture: Picture, tooltips: bool = True) -> str:
    """Returns the text of the SVG file; equal pictures give equal bytes.

    Without `tooltips` it is smaller, for places without a pointer.
    """
    layout = lay_out(picture)
    width = max(LEAST_WIDTH, layout.width) + 2 * MARGIN
    words = [
        line for part in picture.subtitle.split("\n") for line in model.wrap(part, SUB_SIZE, width - 2 * MARGIN, 3)
    ]
    top = MARGIN + HEAD_SIZE + SUB_LINE * len(words) + 14
    legend = legend_rows(entries(picture, layout), width - 2 * MARGIN)
    bottom = top + layout.height + 22
    height = bottom + sum(row.height for row in legend) + MARGIN - 8
    body = [
        *_head(picture, words, width),
        *_graph(layout.moved(MARGIN + max(0.0, (LEAST_WIDTH - layout.width) / 2), top), picture, tooltips),
        *_legend(legend, bottom),
    ]
    return document(picture.title, width, height, body)


def document(title: str, width: float, height: float, body: Iterable[str], more: str = "") -> str:
    """Returns a standalone SVG file with a white ground; `more`: further attributes of its root."""
    size = f'width="{number(width)}" height="{number(height)}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" {size} role="img" '
        f'font-family={quoteattr(FONT)} fill="{INK}"{more}>',
        f"<title>{svg_text(title)}</title>",
        f'<rect {size} fill="{PAPER}"/>',
        *body,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def text_at(x: float, y: float, words: str, size: float, more: str = "") -> str:
    """Returns one line of text at a place; `more`: further attributes."""
    return f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}"{more}>{svg_text(words)}</text>'


def rectangle(box: Box, more: str) -> str:
    """Returns a rectangle; `more`: further attributes."""
    place = f'x="{number(box.x)}" y="{number(box.y)}" width="{number(box.width)}" height="{number(box.height)}"'
    return f"<rect {place}{more}/>"


def _head(picture: Picture, words: Sequence[str], width: float) -> Iterator[str]:
    title = model.shorten(model.clean(picture.title), HEAD_SIZE, (width - 2 * MARGIN) * 0.94)
    yield text_at(MARGIN, MARGIN + 13, title, HEAD_SIZE, ' font-weight="600"')
    for i, line in enumerate(words):
        yield text_at(MARGIN, MARGIN + HEAD_SIZE + SUB_LINE * (i + 1), line, SUB_SIZE, f' fill="{QUIET}"')


def _graph(layout: Layout, picture: Picture, tooltips: bool) -> Iterator[str]:
    colours = model.colours(picture.groups)
    for shape in reversed(layout.edges):  # the strongest last, on top
        yield from _group(_edge(shape), shape.edge.tooltip if tooltips else "", "edge")
    for node in layout.nodes:
        colour = CHANGES.get(node.node.change) or colours.get(node.node.group or "", OTHER)
        yield from _group(_node(node, colour), node.node.tooltip if tooltips else "", "node")
    for shape in layout.edges:
        if shape.label:
            yield from _label(shape.edge, shape.label)


def _group(parts: Iterable[str], tooltip: str, kind: str) -> Iterator[str]:
    yield f'<g class="{kind}">'
    if tooltip:
        yield "<title>" + "\n".join(map(svg_text, tooltip.splitlines())) + "</title>"
    yield from parts
    yield "</g>"


def _edge(shape: EdgeShape) -> Iterator[str]:
    colour = _line(shape.edge.change, LINE)
    dashed = (
        ' stroke-dasharray="2 3"'
        if shape.edge.change is Change.REMOVED
        else ' stroke-dasharray="7 3"'
        if shape.is_back
        else ""
    )
    yield f'<path d="{path(shape.points)}" fill="none" stroke="{colour}" stroke-width="{number(shape.width)}"{dashed}/>'
    yield f'<path d="{_arrow(shape)}" fill="{colour}"/>'


def _label(edge: PictureEdge, box: Box) -> Iterator[str]:
    x, y = box.x + box.width / 2, box.y + box.height - 2.5
    yield rectangle(box, f' rx="3" fill="{PAPER}" fill-opacity="0.92"')
    more = f' text-anchor="middle" fill="{_line(edge.change, INK)}"'
    text = text_at(x, y, edge.label, LABEL_SIZE, more)
    yield f'<text class="label"{text.removeprefix("<text")}'


def _line(change: Change, otherwise: str) -> str:
    return CHANGES[change].border if change in CHANGES else otherwise


def _arrow(shape: EdgeShape) -> str:
    (x, y), (dx, dy) = shape.points[-1], shape.ahead
    long, half = arrow_length(shape.width), 2.6 + 0.8 * shape.width
    tip, one, two = (x + dx * long, y + dy * long), (x - dy * half, y + dx * half), (x + dy * half, y - dx * half)
    return f"M{_p(tip)}L{_p(one)}L{_p(two)}Z"


def _node(shape: NodeShape, colour: Colour) -> Iterator[str]:
    box, node = shape.box, shape.node
    dashed = ' stroke-dasharray="4 3"' if node.change is Change.REMOVED else ""
    stroke = f'stroke="{colour.border}" stroke-width="{3 if node.focus else 1.5}"{dashed}'
    yield rectangle(box, f' rx="6" fill="{colour.fill}" {stroke}')
    words = TITLE_LINE * len(shape.lines) + (FIGURES_LINE if node.figures else 0)
    x, y = box.x + box.width / 2, box.y + (box.height - words) / 2
    for i, line in enumerate(shape.lines):
        yield text_at(x, y + TITLE_LINE * i + 11.5, line, TITLE_SIZE, ' font-weight="500" text-anchor="middle"')
    if node.figures:
        figures = model.shorten(model.clean(node.figures), FIGURES_SIZE, box.width - PADDING)
        yield text_at(x, y + words - 3.5, figures, FIGURES_SIZE, ' text-anchor="middle"')


def _legend(legend: Sequence[LegendRow], top: float) -> Iterator[str]:
    y = top
    for row in legend:
        x = MARGIN
        for entry in row.entries:
            yield from _entry(entry, x, y)
            x += entry.width
        y += row.height


def _entry(entry: Entry, x: float, y: float) -> Iterator[str]:
    if entry.colour:
        look = f' rx="3" fill="{entry.colour.fill}" stroke="{entry.colour.border}" stroke-width="1.5"'
        yield rectangle(Box(x, y, 20, 12), look)
    else:
        dashed = f' stroke-dasharray="{entry.dashes}"' if entry.dashes else ""
        look = f'fill="none" stroke="{LINE}" stroke-width="{number(entry.line)}"{dashed}'
        yield f'<path d="M{number(x)} {number(y + 6)}h22" {look}/>'
    yield text_at(x + 28, y + 10, entry.words, LEGEND_SIZE, f' fill="{QUIET}"')


def path(points: Sequence[Point]) -> str:
    """Returns the `d` attribute of the cubic curves through `points`."""
    curves = (" ".join(map(_p, points[i : i + 3])) for i in range(1, len(points), 3))
    return f"M{_p(points[0])}" + "".join(f"C{curve}" for curve in curves)


def svg_text(words: str) -> str:
    """Returns one line of text as it stands between tags."""
    return escape(model.clean(words))


def _p(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


def number(value: float) -> str:
    """Formats a coordinate to a tenth of a pixel."""
    text = f"{value:.1f}".removesuffix(".0")
    return text.replace("-0", "0") if abs(value) < 0.05 else text
