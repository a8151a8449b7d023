"""Writes a picture as Mermaid text, for places that draw it themselves: a README, an issue, a wiki."""

from collections.abc import Iterator

from opus_pipelines.core.formatting import mermaid_comment, mermaid_text
from opus_pipelines.reporting.graphs import model
from opus_pipelines.reporting.graphs.layout import line_width
from opus_pipelines.reporting.graphs.model import CHANGES, LINE, OTHER, SIGNS, Change, Picture, PictureNode


def mermaid(picture: Picture) -> str:
    """Returns a flowchart from left to right, with width by γ and colour by group. Equal pictures give equal text."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    names = {node.key: f"n{i}" for i, node in enumerate(picture.nodes)}
    yield f"%% {mermaid_comment(picture.title)}"
    yield from (f"%% {mermaid_comment(line)}" for line in picture.subtitle.splitlines())
    yield "flowchart LR"
    for node in picture.nodes:
        yield f"    {names[node.key]}[{_box(node)}]"
    for edge in picture.edges:
        arrow = "-.->" if edge.change is Change.REMOVED else "-->"
        label = f"|{mermaid_text(edge.label)}|" if edge.label else ""
        yield f"    {names[edge.src]} {arrow}{label} {names[edge.dst]}"
    colours = model.colours(picture.groups)
    groups = {
        node.key: node.change if node.change in CHANGES else node.group if node.group in colours else None
        for node in picture.nodes
    }
    for i, group in enumerate(dict.fromkeys(groups.values())):
        colour = CHANGES[group] if isinstance(group, Change) else colours.get(group or "", OTHER)
        yield f"    classDef c{i} {f'fill:{colour.fill},stroke:{colour.border},color:{model.INK}'}"
        yield f"    class {','.join(names[key] for key, of in groups.items() if of == group)} c{i}"
    for i, edge in enumerate(picture.edges):
        stroke = CHANGES[edge.change].border if edge.change in CHANGES else LINE
        yield f"    linkStyle {i} stroke:{stroke},stroke-width:{line_width(edge.one_minus_gamma):.1f}px"


def _box(node: PictureNode) -> str:
    sign = f"{SIGNS[node.change]} " if SIGNS[node.change] else ""
    figures = f"<br/>{mermaid_text(node.figures)[1:-1]}" if node.figures else ""
    return f'"{sign}{mermaid_text(node.title)[1:-1]}{figures}"'
