"""Reads PPTX slide by slide, title first, with tables, without hidden text (`intakes.visibility.slide_view`).

The notes of the speaker stand outside the slide; they are read where the document's `asides` name them.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.oxml import parse_xml

from opus_pipelines.intakes.documents.document import Document, DocumentText, counts
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS, MAX_PAGES
from opus_pipelines.intakes.documents.office_packages import open_package
from opus_pipelines.intakes.documents.text_layout import Layout
from opus_pipelines.intakes.visibility.slide_view import SlideView
from opus_pipelines.intakes.visibility.unseen import Unseen

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


def read(document: Document) -> DocumentText:
    """Returns the text of the visible slides, in their order."""
    stream, names = open_package(document)
    deck = Presentation(stream)
    slides = list(deck.slides)
    layout, left_out, notes, unseen = Layout(), Counter[str](), [], Unseen(document.asides)
    places: dict[int, str] = {}
    shown = [slide for slide in slides if slide.element.get("show") not in ("0", "false")]
    left_out["hidden slide"] = len(slides) - len(shown)
    for number, slide in enumerate(shown):
        if number == MAX_PAGES or layout.length > MAX_CHARACTERS:
            notes.append(f"the last {len(shown) - number:,} of {len(shown):,} slides")
            break
        view = SlideView(slide, deck.slide_width or 0, deck.slide_height or 0, _theme(slide))
        first = layout.lines + (2 if layout.length else 0)
        _Slide(slide, view, unseen, left_out).read(layout)
        places |= dict.fromkeys(range(first, layout.lines + 1), f"slide {slides.index(slide) + 1}")
    if "ppt/vbaProject.bin" in names:
        notes.append("macros, which are never run")
    if any(name.startswith("ppt/comments/") for name in names):
        notes.append("the comments")
    return DocumentText(layout.text, (*counts(left_out), *unseen.notes, *notes), places=places)


class _Slide:
    """Reads one slide: first finds from back to front what is seen, then writes it, title first."""

    def __init__(self, slide: Any, view: SlideView, unseen: Unseen, left_out: Counter[str]) -> None:
        self._slide, self._view, self._unseen, self._left_out = slide, view, unseen, left_out

    def read(self, layout: Layout) -> None:
        """Adds the slide to a layout."""
        slide = self._slide
        shapes = [(shape, *self._texts(shape)) for shape in _shapes(slide.shapes)]
        title = slide.shapes.title
        is_title = [title is not None and shape.shape_id == title.shape_id for shape, _, _ in shapes]
        for (_, paragraphs, _), first in zip(shapes, is_title, strict=True):
            if first:
                layout.add(" ".join(paragraphs).replace("\v", " "), "heading")
        for (shape, paragraphs, rows), first in zip(shapes, is_title, strict=True):
            if first:
                continue
            if shape.has_text_frame:
                _paragraphs([text.replace("\v", "\n") for text in paragraphs], layout)
            elif getattr(shape, "has_table", False):
                for row in rows:
                    layout.row(row)
            elif shape.element.tag.endswith("}pic"):
                self._left_out["picture"] += 1
            elif shape.element.tag.endswith("}graphicFrame"):
                self._left_out["chart or diagram"] += 1
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            text = notes.text.replace("\v", "\n")
            if text.strip() and self._unseen.keeps("notes", text):
                layout.add(text)

    def _texts(self, shape: Any) -> tuple[list[str], list[list[str]]]:
        """Returns the paragraphs and the rows of a shape that are seen."""
        reason = self._view.passes(shape)
        if shape.has_text_frame:
            return [self._seen(p._p, shape, reason) for p in shape.text_frame.paragraphs], []  # noqa: SLF001  no other way to its runs
        if not getattr(shape, "has_table", False):
            return [], []
        rows = [[cell.text_frame for cell in row.cells] for row in shape.table.rows]
        return [], [
            ["\n".join(self._seen(p._p, shape, reason) for p in frame.paragraphs) for frame in row]  # noqa: SLF001
            for row in rows
        ]

    def _seen(self, paragraph: Any, shape: Any, reason: str | None) -> str:
        parts = []
        for run in paragraph:
            kind = str(run.tag).removeprefix(_A)
            if kind == "br":
                parts.append("\v")
            if kind not in ("r", "fld"):
                continue
            text = "".join(t.text or "" for t in run.iterchildren(_A + "t"))
            why = reason or (self._view.run_reason(run, shape) if text.strip() else None)
            if why is None:
                parts.append(text)
            else:
                self._unseen.hide(why, text or " ")
        return "".join(parts)


def _theme(slide: Any) -> Any:
    """Returns the root of the theme of a slide's master, or None."""
    for relation in slide.slide_layout.slide_master.part.rels.values():
        if relation.reltype == RT.THEME and not relation.is_external:
            return parse_xml(relation.target_part.blob)
    return None


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
