"""Reads DOCX: its text in order, with tables, text boxes, lists and notes.

Inserted text counts; deleted text does not, nor what `intakes.visibility.word_view` finds to be hidden.
"""

from collections import Counter
from typing import Any

from docx.opc.constants import RELATIONSHIP_TYPE as RT
from docx.opc.package import OpcPackage
from docx.oxml.parser import parse_xml
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import Document, DocumentText, counts, front
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS
from opus_pipelines.intakes.documents.office_packages import open_package
from opus_pipelines.intakes.documents.text_layout import Layout
from opus_pipelines.intakes.visibility.office import named, theme_of
from opus_pipelines.intakes.visibility.unseen import Unseen
from opus_pipelines.intakes.visibility.word_view import WordView

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_DELETED = {_W + "del", _W + "moveFrom"}
_CHARACTERS = {_W + "tab": " ", _W + "br": "\n", _W + "cr": "\n", _W + "noBreakHyphen": "-"}
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
    walk = _Walk(_style_names(styles), WordView(styles, colours, page))
    walk.read(body)
    for relation in (RT.FOOTNOTES, RT.ENDNOTES):
        if notes := _related(main, relation):
            walk.read(parse_xml(notes))
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
    return DocumentText(text, (*counts(walk.left_out), *walk.unseen.notes, *walk.notes))


class _Walk:
    """Walks once over a part without recursion; paragraphs may lie in tables inside paragraphs."""

    def __init__(self, styles: dict[str, str], view: WordView) -> None:
        self.layout = Layout()
        self.unseen = Unseen()
        self._view = view
        self.left_out: Counter[str] = Counter()
        self.notes: list[str] = []
        self._styles = styles
        self._paragraphs: list[list[str]] = []
        self._rows: list[list[str]] = []

    def read(self, root: Any) -> None:
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
            self.left_out["picture or drawing"] += 1

    def _close(self, element: Any) -> None:
        if element.tag == _W + "p" and self._paragraphs and not _inside(element, _DELETED | {_FALLBACK}):
            text = "".join(self._paragraphs.pop())
            if self._rows and self._rows[-1]:
                self._rows[-1][-1] += " " + text
            else:
                self.layout.add(text, *self._kind(element))
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
