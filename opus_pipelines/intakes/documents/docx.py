"""Reads Word documents as a person sees them.

The look of a run comes from the defaults, the styles of its paragraph and of itself, and its own marks (ECMA-376,
17.7.2).
Shades of a table style count as possible backgrounds of every cell, because which part of the table a cell is in is not
followed. Pictures and shapes that lie over a text are not followed either.

Reads DOCX: its text in order, with tables, text boxes, lists and notes.

Inserted text counts; deleted text does not, nor hidden text.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.opc.package import OpcPackage
from docx.oxml.parser import parse_xml
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import MAX_CHARACTERS, Document, DocumentText, Layout, counts, front
from opus_pipelines.intakes.documents.office import DRAWING as _A
from opus_pipelines.intakes.documents.office import EmbeddedPictures, Theme, drawn, named, open_package, theme_of
from opus_pipelines.intakes.visibility import unseen
from opus_pipelines.intakes.visibility.unseen import WHITE, Colour, Unseen, is_like, tinted

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_OFF = {"0", "false", "off", "none"}
_SMALLEST_HALF_POINTS = 2 * unseen.SMALLEST_POINTS
_FAR_TWIPS = -8_000.0  # of 1,440 an inch: left of every page
_FAR_EMU = 914_400  # an inch, by which a shape lies wholly outside the page
_LARGEST_EMU = 21_000_000.0  # above the longest side of A2
_LEAST_TWIPS = 40.0  # height of a row or a line: 2 points


@dataclass(frozen=True)
class Look:
    """The look of a run. `colour` None: automatic, which is always seen. `fill`: its own background."""

    hidden: bool = False
    colour: Colour | None = None
    half_points: float = 22.0
    width: float = 100.0
    fill: Colour | None = None
    alpha: float = 1.0


class WordView:
    """The styles of one document. `styles`: the root of its styles part, or None."""

    def __init__(self, styles: Any, theme: Theme, background: Colour | None = None) -> None:
        self._theme, self._page = theme, background or WHITE
        found = styles.iter(_W + "style") if styles is not None else ()
        self._styles = {style.get(_W + "styleId") or "": style for style in found}
        self._defaults = [
            s
            for s in self._styles.values()
            if s.get(_W + "type") == "paragraph" and (s.get(_W + "default") or "0").lower() not in _OFF
        ]
        default = styles.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr") if styles is not None else None
        self._base = self._marked(Look(), default)
        self._last: tuple[Any, Look, tuple[Colour, ...], str | None] | None = None

    def reason(self, run: Any) -> str | None:
        """Returns why nobody sees a run (`w:r`), or None."""
        paragraph = next(run.iterancestors(_W + "p"), None)
        look, grounds, reason = self._paragraph(paragraph)
        if reason is not None:
            return reason
        own = run.find(_W + "rPr")
        style = _value(own, "rStyle")
        look = self._marked(self._styled(look, style) if style else look, own)
        if look.hidden:
            return unseen.MARKED_AS_HIDDEN
        if look.half_points < _SMALLEST_HALF_POINTS or look.width < 10:
            return unseen.SMALL
        if look.alpha < 0.08:
            return unseen.COLOUR
        grounds = (look.fill,) if look.fill is not None else grounds
        if look.colour is not None and all(is_like(look.colour, ground) for ground in grounds):
            return unseen.COLOUR
        return None

    def _paragraph(self, paragraph: Any) -> tuple[Look, tuple[Colour, ...], str | None]:
        if paragraph is None:
            return self._base, (self._page,), None
        if self._last is None or self._last[0] is not paragraph:
            marks = paragraph.find(_W + "pPr")
            look = self._base
            style = _value(marks, "pStyle")
            for one in [style] if style in self._styles else [s.get(_W + "styleId") or "" for s in self._defaults]:
                look = self._styled(look, one or "")
            self._last = (
                paragraph,
                replace(look, fill=None),
                self._grounds(paragraph, marks, style),
                _displaced(paragraph, marks),
            )
        return self._last[1], self._last[2], self._last[3]

    def _styled(self, look: Look, name: str) -> Look:
        """Returns a look with a style and those that it is based on."""
        chain: list[Any] = []
        while name in self._styles and self._styles[name] not in chain:
            chain.append(self._styles[name])
            name = _value(chain[-1], "basedOn") or ""
        for style in reversed(chain):
            look = self._marked(look, style.find(_W + "rPr"))
        return look

    def _marked(self, look: Look, marks: Any) -> Look:
        """Returns a look with the marks of a `w:rPr`."""
        for mark in marks if marks is not None else ():
            if not isinstance(mark.tag, str):
                continue
            name, value = mark.tag.rpartition("}")[2], mark.get(_W + "val")
            if name in ("vanish", "webHidden"):
                look = replace(look, hidden=_on(value))
            elif name == "color":
                look = replace(look, colour=self._coloured(mark))
            elif name == "sz":
                look = replace(look, half_points=_number(value, look.half_points))
            elif name == "w":
                look = replace(look, width=_number((value or "").rstrip("%"), look.width))
            elif name == "highlight":
                look = replace(look, fill=named(value, self._theme))
            elif name == "shd":
                look = replace(look, fill=self._shade(mark) or look.fill)
            elif name == "textFill" and len(mark):
                look = replace(look, alpha=_alpha(mark))
        return look

    def _coloured(self, mark: Any) -> Colour | None:
        """Returns the colour of `w:color`, None for the automatic one."""
        by_theme = named(mark.get(_W + "themeColor"), self._theme)
        if by_theme is None:
            return named(mark.get(_W + "val"), self._theme)
        if (tint := mark.get(_W + "themeTint")) is not None:
            return tinted(by_theme, 1 - _hex(tint))
        shade = mark.get(_W + "themeShade")
        return tinted(by_theme, _hex(shade) - 1) if shade is not None else by_theme

    def _shade(self, mark: Any) -> Colour | None:
        if mark is None:
            return None
        if mark.get(_W + "val") == "solid":
            return named(mark.get(_W + "color"), self._theme)
        return named(mark.get(_W + "themeFill"), self._theme) or named(mark.get(_W + "fill"), self._theme)

    def _grounds(self, paragraph: Any, marks: Any, style: str | None) -> tuple[Colour, ...]:
        """Returns the backgrounds that a paragraph may have: its own shade, that of its cell, its box, or the page."""
        shades = [marks.find(_W + "shd") if marks is not None else None]
        name, seen = style or "", set[str]()
        while name in self._styles and name not in seen:
            seen.add(name)
            shades.append(self._styles[name].find(f"{_W}pPr/{_W}shd"))
            name = _value(self._styles[name], "basedOn") or ""
        for shade in shades:
            if (colour := self._shade(shade)) is not None:
                return (colour,)
        possible: list[Colour] = []
        for above in paragraph.iterancestors(_W + "tc", _W + "tbl", _W + "txbxContent"):
            kind = above.tag.rpartition("}")[2]
            shade = above.find(f"{_W}{kind}Pr/{_W}shd")
            if kind == "txbxContent":
                box = self._box(above)
                return (*possible, box if box is not None else self._page)
            if (colour := self._shade(shade)) is not None:
                return (*possible, colour)
            if (
                kind == "tbl"
                and (table := self._styles.get(_value(above.find(_W + "tblPr"), "tblStyle") or "")) is not None
            ):
                found = [self._shade(shade) for shade in table.iter(_W + "shd")]
                possible += [colour for colour in found if colour is not None]
        return (*possible[:8], self._page)

    def _box(self, content: Any) -> Colour | None:
        """Returns the fill of the text box that holds a content, or None where it has none."""
        shape = next(
            (a for a in content.iterancestors() if str(a.tag).rpartition("}")[2] in ("wsp", "shape", "rect")), None
        )
        if shape is None:
            return None
        if str(shape.tag).endswith("}wsp"):
            fill = next(
                (f for part in shape if str(part.tag).endswith("}spPr") for f in part.iterchildren(_A + "solidFill")),
                None,
            )
            found = drawn(fill, self._theme) if fill is not None else None
            return found[0] if found else None
        return named((shape.get("fillcolor") or "").split(" ")[0], self._theme)


def _displaced(paragraph: Any, marks: Any) -> str | None:
    """Returns why nobody sees any of a paragraph, by where it stands and how high its line or row is."""
    frame = marks.find(_W + "framePr") if marks is not None else None
    if frame is not None and min(_number(frame.get(_W + "x"), 0), _number(frame.get(_W + "y"), 0)) <= _FAR_TWIPS:
        return unseen.OFF_PAGE
    indent = marks.find(_W + "ind") if marks is not None else None
    if indent is not None:
        sides = [_number(indent.get(_W + side), 0.0) for side in ("left", "start", "firstLine", "right", "end")]
        if min(sides) <= _FAR_TWIPS or _number(indent.get(_W + "hanging"), 0) >= -_FAR_TWIPS:
            return unseen.OFF_PAGE
    spacing = marks.find(_W + "spacing") if marks is not None else None
    if (
        spacing is not None
        and spacing.get(_W + "lineRule") == "exact"
        and _number(spacing.get(_W + "line"), 240) <= _LEAST_TWIPS
    ):
        return unseen.CLIPPED
    for above in paragraph.iterancestors():
        kind = str(above.tag).rpartition("}")[2]
        if kind == "tr":
            if _on_mark(above.find(f"{_W}trPr/{_W}hidden")):
                return unseen.MARKED_AS_HIDDEN
            height = above.find(f"{_W}trPr/{_W}trHeight")
            if (
                height is not None
                and height.get(_W + "hRule") == "exact"
                and _number(height.get(_W + "val"), 300) <= _LEAST_TWIPS
            ):
                return unseen.CLIPPED
        elif kind in ("anchor", "inline"):
            if reason := _anchored(above):
                return reason
        elif kind in ("shape", "rect") and (reason := _vml(above.get("style") or "")):
            return reason
    return None


def _anchored(anchor: Any) -> str | None:
    """Returns why nobody sees a text box of DrawingML: hidden, without size, or outside the page."""
    size = next((child for child in anchor if str(child.tag).endswith("}extent")), None)
    width, height = (_number(size.get(side) if size is not None else None, 1e6) for side in ("cx", "cy"))
    if _on(anchor.get("hidden") or "0") or any(
        str(c.tag).endswith("}docPr") and _on(c.get("hidden") or "0") for c in anchor
    ):
        return unseen.MARKED_AS_HIDDEN
    if min(width, height) < 20_000:
        return unseen.SMALL
    for child in anchor:
        kind = str(child.tag).rpartition("}")[2]
        if kind in ("positionH", "positionV"):
            offset = _number(next((p.text for p in child if str(p.tag).endswith("}posOffset")), None), 0.0)
            if offset <= -((width if kind == "positionH" else height) + _FAR_EMU) or offset >= _LARGEST_EMU:
                return unseen.OFF_PAGE
    return None


def _vml(style: str) -> str | None:
    from opus_pipelines.intakes.visibility.html import pixels

    parts = {
        name.strip().lower(): value.strip() for name, _, value in (part.partition(":") for part in style.split(";"))
    }
    if parts.get("visibility") == "hidden" or parts.get("display") == "none":
        return unseen.MARKED_AS_HIDDEN
    sizes = [pixels(parts[name]) for name in ("width", "height") if name in parts]
    if any(size is not None and size < 2 for size in sizes):
        return unseen.SMALL
    places = [pixels(parts[name]) for name in ("left", "top", "margin-left", "margin-top") if name in parts]
    return unseen.OFF_PAGE if any(place is not None and place <= -900 for place in places) else None


def _value(marks: Any, name: str) -> str | None:
    mark = marks.find(_W + name) if marks is not None else None
    return mark.get(_W + "val") if mark is not None else None


def _on(value: str | None) -> bool:
    return (value or "1").lower() not in _OFF


def _on_mark(mark: Any) -> bool:
    return mark is not None and _on(mark.get(_W + "val"))


def _alpha(mark: Any) -> float:
    """Returns the opacity of `w14:textFill`; there, `alpha` counts what shines through."""
    alphas = [_number(a.get(next(iter(a.keys()), "")), 0) for a in mark.iter() if str(a.tag).endswith("}alpha")]
    return 1 - alphas[0] / 100_000 if alphas else 0.0 if str(mark[0].tag).endswith("}noFill") else 1.0


def _hex(text: str) -> float:
    try:
        return int(text, 16) / 255
    except ValueError:
        return 1.0


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text is not None else default
    except ValueError:
        return default


_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DELETED = {_W + "del", _W + "moveFrom"}
_CHARACTERS = {_W + "tab": " ", _W + "br": "\n", _W + "cr": "\n", _W + "noBreakHyphen": "-"}
_EMBED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}embed"
_PICTURES = {_W + "drawing", _W + "pict", _W + "object"}


def read(document: Document) -> DocumentText:
    """Returns the text of the body, then of the notes.

    python-docx opens the package; its own `text` would lose insertions, text boxes and content controls. Raises
    InputError on a broken package.
    """
    stream, names = open_package(document)
    try:
        main = OpcPackage.open(stream).main_document_part
    except KeyError:
        raise InputError("it is a package without a document in it: broken, or no Word document") from None
    styles, theme = (_parsed(_related(main, relation)) for relation in (RT.STYLES, RT.THEME))
    body = main.element if hasattr(main, "element") else parse_xml(main.blob)
    ground = body.find(_W + "background")
    colours = theme_of(theme)
    page = named(ground.get(_W + "color"), colours) if ground is not None else None
    walk = _Walk(_style_names(styles), WordView(styles, colours, page), document)
    walk.read(body, main.rels)
    for relation in (RT.FOOTNOTES, RT.ENDNOTES):
        if notes := _related(main, relation):
            walk.read(parse_xml(notes), {})
    text = walk.layout.text
    if walk.layout.length > MAX_CHARACTERS:
        text, beyond = front(text)
        walk.notes.append(beyond)
    for name, thing in (
        ("word/vbaProject.bin", "macros, which are never run"),
        ("word/comments.xml", "the comments in the margin"),
    ):
        if name in names:
            walk.notes.append(thing)
    if any(_has_text(part.blob) for part in _headers_and_footers(main)):
        walk.notes.append("the page headers and footers")
    left_out = (*counts(walk.left_out), *walk.unseen.notes, *walk.notes, *walk.pictures.notes)
    return DocumentText(text, left_out, scanned=walk.pictures.read)


class _Walk:
    """Walks once over a part without recursion; paragraphs may lie in tables inside paragraphs."""

    def __init__(self, styles: dict[str, str], view: WordView, document: Document) -> None:
        self.layout = Layout()
        self.unseen = Unseen()
        self.pictures = EmbeddedPictures(document, self.unseen)
        self._shown: list[str] = []  # texts of the pictures of the open paragraph, which come behind it
        self._view = view
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []
        self._styles = styles
        self._paragraphs: list[list[str]] = []
        self._rows: list[list[str]] = []

    def read(self, root: Any, related: Any) -> None:
        """Reads a part; `related` has the parts that it names, such as its pictures, by their ids."""
        self._related = related
        walker = etree.iterwalk(root, events=("start", "end"))
        for event, element in walker:
            if self.layout.length > MAX_CHARACTERS:
                return
            if event == "end":
                self._close(element)
            elif self._skips(element):
                walker.skip_subtree()
            else:
                self._open(element)

    def _skips(self, element: Any) -> bool:
        tag = element.tag
        # A fallback repeats its alternative; a separator is the line above footnotes.
        if tag == _FALLBACK or (element.get(_W + "type") or "").endswith("eparator"):
            return True
        if tag in _DELETED:
            self.left_out["deleted passage"] += 1
            return True
        if tag == _W + "altChunk":
            self.left_out["document inside it"] += 1
            return True
        if tag == _W + "r" and (reason := self._view.reason(element)) is not None:
            self.unseen.hide(reason, "".join(t.text or "" for t in element.iter(_W + "t")) or " ")
            return True
        return False

    def _open(self, element: Any) -> None:
        tag = element.tag
        if tag == _W + "p":
            self._paragraphs.append([])
        elif tag == _W + "tr":
            self._rows.append([])
        elif tag == _W + "tc" and self._rows:
            self._rows[-1].append("")
        elif self._paragraphs and tag == _W + "t":
            self._paragraphs[-1].append(element.text or "")
        elif self._paragraphs and tag in _CHARACTERS and element.getparent().tag == _W + "r":
            self._paragraphs[-1].append(_CHARACTERS[tag])
        elif tag in _PICTURES and element.find(f".//{_W}t") is None:
            text = self.pictures.text(self._blob(element))
            if text and self._rows and self._rows[-1]:
                self._rows[-1][-1] += " " + text.replace("\n", " ")
            elif text:
                self._shown.append(text)
            else:
                self.left_out["picture or drawing"] += 1

    def _blob(self, drawing: Any) -> bytes | None:
        """Returns the picture of a drawing; None where it has none inside the document, or several."""
        ids = {blip.get(_EMBED) for blip in drawing.iter(_A + "blip")} - {None}
        related = self._related.get(ids.pop()) if len(ids) == 1 else None
        blob: bytes | None = None if related is None or related.is_external else related.target_part.blob
        return blob

    def _close(self, element: Any) -> None:
        if element.tag == _W + "p" and self._paragraphs and not _inside(element, _DELETED | {_FALLBACK}):
            text = "".join(self._paragraphs.pop())
            if self._rows and self._rows[-1]:
                self._rows[-1][-1] += " " + text
            else:
                self.layout.add(text, *self._kind(element))
            for shown in self._shown:
                self.layout.add(shown)
            self._shown.clear()
        elif element.tag == _W + "tr" and self._rows:
            cells = self._rows.pop()
            if self._rows and self._rows[-1]:
                self._rows[-1][-1] += " " + " ".join(cells)
            else:
                self.layout.row(cells)

    def _kind(self, paragraph: Any) -> tuple[str, int]:
        """Returns heading with its level, item, or paragraph, from the name of the style.

        Style names are English in documents of every language.
        """
        style = paragraph.find(f"{_W}pPr/{_W}pStyle")
        name = self._styles.get(style.get(_W + "val") or "", "") if style is not None else ""
        if name == "title":
            return "heading", 1
        if name.startswith("heading "):
            level = name.split()[1]
            return "heading", int(level) if level.isdecimal() and len(level) < 3 else 1
        is_item = name.startswith("list") or paragraph.find(f"{_W}pPr/{_W}numPr") is not None
        return ("item" if is_item else "paragraph"), 1


def _inside(element: Any, tags: set[str]) -> bool:
    return element.getparent() is not None and element.getparent().tag in tags


def _parsed(blob: bytes | None) -> Any:
    return parse_xml(blob) if blob else None


def _style_names(styles: Any) -> dict[str, str]:
    found = styles.iter(_W + "style") if styles is not None else ()
    names = ((s.get(_W + "styleId") or "", s.find(_W + "name")) for s in found)
    return {ident: (name.get(_W + "val") or "").lower() for ident, name in names if name is not None}


def _related(main: Any, relation: str) -> bytes | None:
    targets = sorted(
        (r.target_part.partname, r.target_part.blob)
        for r in main.rels.values()
        if r.reltype == relation and not r.is_external
    )
    return targets[0][1] if targets else None


def _headers_and_footers(main: Any) -> list[Any]:
    return [r.target_part for r in main.rels.values() if r.reltype in (RT.HEADER, RT.FOOTER) and not r.is_external]


def _has_text(blob: bytes) -> bool:
    return any((t.text or "").strip() for t in parse_xml(blob).iter(_W + "t"))
