"""Reads HTML as a browser shows it: without scripts, comments, and what its styles hide.

Nothing is run or fetched. `intakes.visibility.html` says of each element whether a person sees it.
"""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import (
    MAX_CHARACTERS,
    MAX_SPACES,
    MAX_TREE_BYTES,
    Document,
    DocumentText,
    Layout,
    counted,
    decode,
    front,
)
from opus_pipelines.intakes.visibility.html import Styles, View, view_of
from opus_pipelines.intakes.visibility.unseen import ASIDES, REASONS, Unseen
from opus_pipelines.language.word_stems import word_set

_UNREAD = {
    "script": "script",
    "style": "style sheet",
    "template": "template",
    "noscript": "text for browsers without scripts",
    "iframe": "embedded page",
    "frame": "embedded page",
    "object": "embedded object",
    "embed": "embedded object",
    "applet": "embedded object",
    "svg": "picture",
    "canvas": "picture",
    "math": "formula",
    "video": "video",
    "audio": "sound",
}
_HEADINGS = {f"h{n}": n for n in range(1, 7)} | {"title": 1}
_BLOCKS = set(_HEADINGS) | word_set(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form header hr legend li main nav ol optgroup option p pre section select summary table tbody "
    "textarea tfoot thead tr ul"
)
_MOST_OF_HIDDEN = 400  # characters of a hidden subtree that are looked at
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.I)
_TAG = re.compile(rb"<[A-Za-z][^<>]{20000,}")
_TOO_DEEP = re.compile("depth|nested", re.I)


def read(document: Document) -> DocumentText:
    """Returns the text of the page, its title first, in the form of `document.Layout`.

    Raises InputError on broken or too deeply nested HTML.
    """
    return of_html(document.content(MAX_TREE_BYTES), asides=document.asides)


def of_html(data: bytes, declared: str | None = None, asides: frozenset[str] = ASIDES) -> DocumentText:
    """Returns the text of HTML bytes.

    `declared` is the encoding that their carrier states, such as an e-mail; `asides`: what is read outside the body.
    """
    meta = _CHARSET.search(data[:4096])
    text, note = decode(data, declared or (meta[1].decode("ascii") if meta else None))
    left_out = [note] if note else []
    root = _parsed(text)
    if root is None:
        return DocumentText("", tuple(left_out))
    page = _Page(Styles(root), Unseen(asides))
    page.walk(root)
    kept = page.layout.text
    if page.ended_early:
        kept, beyond = front(kept)
        left_out.append(beyond)
    return DocumentText(kept, (*left_out, *page.left_out))


def hidden_texts(text: str, asides: frozenset[str]) -> tuple[list[tuple[str, bool]], list[str]]:
    """Returns the texts of a piece of markup in order, each with whether a person sees it, and what is not read.

    Raises InputError where the markup is broken or too deeply nested.
    """
    root = _parsed(text)
    if root is None:
        return [], []
    page = _Page(Styles(root), Unseen(asides))
    page.walk(root)
    return page.texts, page.left_out


def refuse_huge_tags(data: bytes) -> None:
    """Raises InputError where a tag has so many attributes that parsing it would not end."""
    if any(len(tag[0].split()) > MAX_SPACES for tag in _TAG.finditer(data)):
        raise InputError(f"a tag in it has more than {MAX_SPACES:,} attributes")


def _parsed(text: str) -> Any:
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, huge_tree=False, recover=True)
    data = text.encode("utf-8", "replace")
    refuse_huge_tags(data)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if not text.strip() or "empty" in str(error).lower():
            return None
        raise InputError(f"the HTML is broken: {' '.join(str(error).split())}") from None
    if any(_TOO_DEEP.search(entry.message) for entry in parser.error_log):
        raise InputError("the HTML is nested too deeply")
    return root


class _Page:
    """Walks once over the tree without recursion."""

    def __init__(self, styles: Styles, unseen: Unseen) -> None:
        self.layout = Layout()
        self.ended_early = False
        self.unseen = unseen
        self.texts: list[tuple[str, bool]] = []
        self._styles = styles
        self._views = [View()]
        self._unread: Counter[str] = Counter()
        self._text: list[str] = []
        self._kind, self._level = "paragraph", 1
        self._cells: list[str] | None = None

    @property
    def left_out(self) -> list[str]:
        return [*(counted(n, thing) for thing, n in sorted(self._unread.items())), *self.unseen.notes]

    def walk(self, root: Any) -> None:
        walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
        for event, element in walker:
            if self.layout.length > MAX_CHARACTERS:
                self.ended_early = True
                return
            if event == "start":
                view = self._view(element)
                if view is None:
                    element.set("data-unread", "1")
                    self.texts += [(text, False) for text in element.itertext(etree.Element)]
                    walker.skip_subtree()
                else:
                    self._views.append(view)
                    self._open(element)
                continue
            if event == "comment":
                self._unread["comment"] += 1
            elif event == "end" and element.get("data-unread") is None:
                self._views.pop()
                self._close(element.tag)
            if element.tail:
                self._say(element.tail)
        self._flush()

    def _view(self, element: Any) -> View | None:
        """Returns how an element shows its text, None where nobody sees any of it."""
        tag, above = element.tag, self._views[-1]
        if tag in _UNREAD:
            self._unread[_UNREAD[tag]] += 1
            return None
        view, reason = view_of(element, above, self._styles)
        if reason is not None:
            self.unseen.hide(reason, _start(element))
            return None
        if not _is_open(element, above) and not self.unseen.keeps("details", _start(element)):
            return None
        is_closed = tag == "details" and element.get("open") is None and "details" not in self.unseen.read
        return replace(view, closed=is_closed)

    def _say(self, text: str) -> None:
        """Adds a text in the view of the element that holds it."""
        view = self._views[-1]
        reason = view.reason if text.strip() else None
        if text.strip() and view.closed:
            reason = REASONS["details"]
        self.texts.append((text, reason is None))
        if reason is None:
            self._text.append(text)
        else:
            self.unseen.hide(reason, text)

    def _open(self, element: Any) -> None:
        tag = element.tag
        if tag in _BLOCKS:
            self._flush()
        if tag in _HEADINGS:
            self._kind, self._level = "heading", _HEADINGS[tag]
        elif tag == "li":
            self._kind = "item"
        elif tag == "tr":
            self._cells = []
        elif tag == "br":
            self._text.append("\v")
        elif tag in ("td", "th") and self._cells is None:
            self._flush()
        elif tag == "img":
            self._unread["picture"] += 1
        elif tag == "input" and (element.get("type") or "text").lower() in (
            "text",
            "email",
            "number",
            "date",
            "tel",
            "url",
        ):
            self._say(f" {element.get('value') or ''} ")
        if element.text:
            self._say(element.text)

    def _close(self, tag: str) -> None:
        if tag in ("td", "th") and self._cells is not None:
            self._cells.append(self._taken())
        elif tag == "tr" and self._cells is not None:
            if rest := self._taken().strip():
                self._cells.append(rest)
            self.layout.row(self._cells)
            self._cells = None
        elif tag in _BLOCKS:
            self._flush()

    def _flush(self) -> None:
        if self._cells is not None:  # a block inside a cell: the cell goes on
            self._text.append("\v")
            return
        self.layout.add(self._taken(), self._kind, self._level)
        self._kind = "paragraph"

    def _taken(self) -> str:
        text = " ".join("".join(self._text).replace("\v", " \v ").split(" "))
        self._text.clear()
        return "\n".join(" ".join(line.split()) for line in text.split("\v"))


def _start(element: Any) -> str:
    """Returns the beginning of the text of a subtree."""
    found, length = [], 0
    for text in element.itertext(etree.Element):
        found.append(text)
        length += len(text)
        if length > _MOST_OF_HIDDEN:
            break
    return " ".join(found) or " "


def _is_open(element: Any, above: View) -> bool:
    """Returns whether an element is shown before anybody clicks: all but the rest of a closed `details`."""
    if element.get("popover") is not None:
        return False
    return not above.closed or element is element.getparent().find("summary")
