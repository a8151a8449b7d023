"""Reads PPTX slide by slide, title first, with tables and speaker's notes, without hidden slides."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pptx import Presentation

from opus_pipelines.intakes.documents.document import Document, DocumentText, counts
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS, MAX_PAGES
from opus_pipelines.intakes.documents.office_packages import opened
from opus_pipelines.intakes.documents.text_layout import Layout


def read(document: Document) -> DocumentText:
    """Returns the text of the visible slides, in their order."""
    stream, names = opened(document)
    slides = list(Presentation(stream).slides)
    layout, left_out, notes = Layout(), Counter[str](), []
    shown = [slide for slide in slides if slide.element.get("show") not in ("0", "false")]
    left_out["hidden slide"] = len(slides) - len(shown)
    for number, slide in enumerate(shown):
        if number == MAX_PAGES or layout.length > MAX_CHARACTERS:
            notes.append(f"the last {len(shown) - number:,} of {len(shown):,} slides")
            break
        _slide(slide, layout, left_out)
    if "ppt/vbaProject.bin" in names:
        notes.append("macros, which are never run")
    return DocumentText(layout.text, (*counts(left_out), *notes))


def _slide(slide: Any, layout: Layout, left_out: Counter[str]) -> None:
    title = slide.shapes.title
    if title is not None:
        layout.add(title.text_frame.text.replace("\v", " "), "heading")
    for shape in _shapes(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.has_text_frame:
            _paragraphs([p.text.replace("\v", "\n") for p in shape.text_frame.paragraphs], layout)
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                layout.row([cell.text for cell in row.cells])
        elif shape.element.tag.endswith("}pic"):
            left_out["picture"] += 1
        elif shape.element.tag.endswith("}graphicFrame"):
            left_out["chart or diagram"] += 1
    if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
        layout.add(notes.text.replace("\v", "\n"))


def _paragraphs(texts: list[str], layout: Layout) -> None:
    filled = [text for text in texts if text.strip()]
    for text in filled:
        layout.add(text, "item" if len(filled) > 1 else "paragraph")


def _shapes(shapes: Any) -> Iterator[Any]:
    """Yields every shape; the shapes of a group come in its place."""
    stack = list(reversed(list(shapes)))
    while stack:
        shape = stack.pop()
        if hasattr(shape, "shapes"):
            stack += reversed(list(shape.shapes))
        else:
            yield shape
