"""Reads presentations as a person sees them.

Colour and size come from the run, its paragraph, the shape's list styles, and the placeholders of layout and master
that it follows (ECMA-376, 19.3 and 21.1). The background is the fill of the shape, else that of the last shape below it
that covers it, else that of the slide, its layout or its master. Pictures count as unknown: text on them is read.

Reads PPTX slide by slide, title first, with tables, without hidden text.

The notes of the speaker stand outside the slide; they are read where the document's `asides` name them.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.oxml import parse_xml
from pptx.util import Emu

from opus_pipelines.intakes.documents.document import MAX_CHARACTERS, MAX_PAGES, Document, DocumentText, Layout, counts
from opus_pipelines.intakes.documents.office import DRAWING as _A
from opus_pipelines.intakes.documents.office import EmbeddedPictures, Theme, drawn, open_package, theme_of
from opus_pipelines.intakes.visibility import unseen
from opus_pipelines.intakes.visibility.unseen import BLACK, LEAST_OPACITY, WHITE, Colour, Unseen, is_like, over

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_LEAST_SIDE = 12_700  # EMU: one point
_FILLS = ("solidFill", "gradFill", "blipFill", "pattFill")
_Box = tuple[int, int, int, int]  # left, top, right, bottom in EMU


class SlideView:
    """One slide: its size, its theme, its background, and the shapes that were passed so far, from back to front."""

    def __init__(self, slide: Any, width: int, height: int, master_theme: Any) -> None:
        self._page: _Box = (0, 0, width, height)
        self._theme = _mapped(theme_of(master_theme), slide)
        self._levels = [slide, slide.slide_layout, slide.slide_layout.slide_master]
        self._ground = next((g for level in self._levels for g in [self._background(level)] if g is not None), (WHITE,))
        self._shapes: list[tuple[_Box, tuple[Colour, ...]]] = []

    def passes(self, shape: Any) -> str | None:
        """Takes the next shape from back to front. Returns why nobody sees any text of it, or None."""
        properties = next(iter(shape.element.iter(f"{_P}cNvPr")), None)
        if properties is not None and properties.get("hidden") in ("1", "true"):
            return unseen.MARKED_AS_HIDDEN
        box = _box(shape)
        if box is None:
            return None
        if min(box[2] - box[0], box[3] - box[1]) < _LEAST_SIDE and not getattr(shape, "has_table", False):
            return unseen.SMALL
        if box[2] <= 0 or box[3] <= 0 or box[0] >= self._page[2] or box[1] >= self._page[3]:
            return unseen.OFF_PAGE
        fill = self._fill(next((part for part in shape.element if str(part.tag).endswith("}spPr")), None))
        if fill is not None:
            self._shapes.append((box, fill))
        return None

    def run_reason(self, run: Any, shape: Any) -> str | None:
        """Returns why nobody sees a run (`a:r`) of a shape, or None."""
        marks = [m for m in self._marks(run, shape) if m is not None]
        size = next((int(m.get("sz")) for m in marks if (m.get("sz") or "").isdigit()), 1800)
        scale = next(
            (
                int(fit.get("fontScale") or 0)
                for fit in shape.element.iter(_A + "normAutofit")
                if (fit.get("fontScale") or "").isdigit()
            ),
            100_000,
        )
        if size / 100 * scale / 100_000 < unseen.SMALLEST_POINTS:
            return unseen.SMALL
        for mark in marks:
            if mark.find(_A + "noFill") is not None:
                return unseen.COLOUR
            if (solid := mark.find(_A + "solidFill")) is not None:
                found = drawn(solid, self._theme)
                break
            if any(mark.find(_A + name) is not None for name in _FILLS):
                return None
        else:
            found = (self._theme.get("dk1", BLACK), 1.0)
        if found is None:
            return None
        colour, alpha = found
        grounds = self._behind(run, shape)
        if alpha < LEAST_OPACITY or (grounds and all(is_like(over(colour, alpha, g), g) for g in grounds)):
            return unseen.COLOUR
        return None

    def _behind(self, run: Any, shape: Any) -> tuple[Colour, ...]:
        """Returns the possible colours behind a run, none where they are not known."""
        cell = next(run.iterancestors(_A + "tc"), None)
        if cell is not None:
            fill = self._fill(cell.find(_A + "tcPr"))
            return fill if fill is not None else ()  # the style of the table decides
        if (mark := next((h for h in run.iter(_A + "highlight")), None)) is not None:
            found = drawn(mark, self._theme)
            return (found[0],) if found else ()
        box = _box(shape)
        for place, fill in reversed(self._shapes):
            if box is None or _covers(place, box):
                return fill
        return self._ground

    def _marks(self, run: Any, shape: Any) -> list[Any]:
        """Returns what may state the look of a run, the nearest first."""
        paragraph = run.getparent()
        level = paragraph.find(_A + "pPr")
        number = int(level.get("lvl")) + 1 if level is not None and (level.get("lvl") or "").isdigit() else 1
        found = [run.find(_A + "rPr")]
        kind = _placeholder(shape.element)
        shapes = [shape.element]
        for above in self._levels[1:] if kind is not None else []:
            shapes += [s for s in above.element.iter(_P + "sp") if _same(_placeholder(s), kind)][:1]
        for one in shapes:
            found += [p.find(f"{_A}lstStyle/{_A}lvl{number}pPr/{_A}defRPr") for p in one.iterchildren(_P + "txBody")]
        style = {"title": "titleStyle", "ctrTitle": "titleStyle"}.get(
            (kind or ("", ""))[0], "bodyStyle" if kind else "otherStyle"
        )
        found.append(self._levels[2].element.find(f"{_P}txStyles/{_P}{style}/{_A}lvl{number}pPr/{_A}defRPr"))
        reference = shape.element.find(f"{_P}style/{_A}fontRef")
        if reference is not None and len(reference):
            holder = reference.makeelement(_A + "rPr", {})
            holder.append(_copied(reference, _A + "solidFill"))
            found.insert(1, holder)
        return found

    def _background(self, level: Any) -> tuple[Colour, ...] | None:
        background = level.element.find(f"{_P}cSld/{_P}bg")
        if background is None:
            return None
        if (stated := background.find(_P + "bgPr")) is not None:
            return self._fill(stated)
        reference = background.find(_P + "bgRef")
        found = drawn(reference, self._theme) if reference is not None and len(reference) else None
        return (found[0],) if found else None

    def _fill(self, properties: Any) -> tuple[Colour, ...] | None:
        """Returns the colours of a fill: none that are known where it is a picture; None where it is not filled."""
        for part in properties if properties is not None else ():
            name = str(part.tag).removeprefix(_A)
            if name == "solidFill":
                found = drawn(part, self._theme)
                return None if found is None or found[1] < 0.5 else (found[0],)
            if name == "gradFill":
                stops = [drawn(stop, self._theme) for stop in part.iter(_A + "gs")]
                return tuple(stop[0] for stop in stops if stop)
            if name in _FILLS:
                return ()
        return None


def _mapped(theme: dict[str, Colour], slide: Any) -> Theme:
    """Returns a theme with the names that the master of a slide maps (`bg1` may be the dark colour)."""
    mapping = slide.slide_layout.slide_master.element.find(_P + "clrMap")
    names = dict(mapping.attrib) if mapping is not None else {}
    plain = {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}
    swapped = {plain[name]: theme[of] for name, of in names.items() if name in plain and of in theme}
    return {**theme, **swapped}


def _box(shape: Any) -> _Box | None:
    left, top, width, height = (getattr(shape, side, None) for side in ("left", "top", "width", "height"))
    if left is None or top is None or width is None or height is None:
        return None
    return Emu(left), Emu(top), Emu(left + width), Emu(top + height)


def _covers(one: _Box, other: _Box) -> bool:
    middle = (other[0] + other[2]) // 2, (other[1] + other[3]) // 2
    return one[0] <= middle[0] <= one[2] and one[1] <= middle[1] <= one[3]


def _placeholder(element: Any) -> tuple[str, str] | None:
    found = next(iter(element.iter(_P + "ph")), None)
    return None if found is None else (found.get("type") or "body", found.get("idx") or "")


def _same(one: tuple[str, str] | None, other: tuple[str, str] | None) -> bool:
    if one is None or other is None:
        return False
    titles = {"title", "ctrTitle"}
    return one == other or (one[0] == other[0] and not one[1]) or (one[0] in titles and other[0] in titles)


def _copied(reference: Any, tag: str) -> Any:
    from copy import deepcopy

    fill = reference.makeelement(tag, {})
    fill.extend(deepcopy(list(reference)))
    return fill


def read(document: Document) -> DocumentText:
    """Returns the text of the visible slides, in their order."""
    stream, names = open_package(document)
    deck = Presentation(stream)
    slides = list(deck.slides)
    layout, left_out, notes, unseen = Layout(), Counter[str](), [], Unseen(document.asides)
    places, pictures = dict[int, str](), EmbeddedPictures(document, unseen)
    shown = [slide for slide in slides if slide.element.get("show") not in ("0", "false")]
    left_out["hidden slide"] = len(slides) - len(shown)
    for number, slide in enumerate(shown):
        if number == MAX_PAGES or layout.length > MAX_CHARACTERS:
            notes.append(f"the last {len(shown) - number:,} of {len(shown):,} slides")
            break
        view = SlideView(slide, deck.slide_width or 0, deck.slide_height or 0, _theme(slide))
        first = layout.lines + (2 if layout.length else 0)
        _Slide(slide, view, unseen, left_out, pictures).read(layout)
        places |= dict.fromkeys(range(first, layout.lines + 1), f"slide {slides.index(slide) + 1}")
    if "ppt/vbaProject.bin" in names:
        notes.append("macros, which are never run")
    if any(name.startswith("ppt/comments/") for name in names):
        notes.append("the comments")
    return DocumentText(
        layout.text, (*counts(left_out), *unseen.notes, *notes, *pictures.notes), places=places, scanned=pictures.read
    )


class _Slide:
    """Reads one slide: first finds from back to front what is seen, then writes it, title first."""

    def __init__(
        self, slide: Any, view: SlideView, unseen: Unseen, left_out: Counter[str], pictures: EmbeddedPictures
    ) -> None:
        self._slide, self._view, self._unseen, self._left_out = slide, view, unseen, left_out
        self._pictures = pictures

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
                text = "" if self._view.passes(shape) else self._pictures.text(_blob(shape))
                self._left_out["picture"] += not text
                layout.add(text)
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


def _blob(shape: Any) -> bytes | None:
    try:
        blob: bytes = shape.image.blob
    except (AttributeError, KeyError, ValueError):  # a picture that is linked, or a film
        return None
    return blob


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
