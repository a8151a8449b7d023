"""The elements of a BPMN file with their places in its bytes, and changes of single places; everything else stays."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.parsers import expat

from opus_pipelines.workflow.blocks.expressions import FlowError
from opus_pipelines.workflow.blocks.formats.bpmn_reader import MODEL, ZEEBE
from opus_pipelines.workflow.blocks.formats.bpmn_text import DIAGRAM, Style

_TAG = re.compile(rb"<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*(/?)>")
Box = tuple[float, float, float, float]


@dataclass
class Element:
    """One element: its place in the file, the end of its opening tag, and what is in it."""

    uri: str
    name: str
    attributes: dict[str, str]
    begin: int
    head_end: int
    empty: bool
    parent: "Element | None"
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its id; an empty text where it has none."""
        return self.attributes.get("id", "")

    @property
    def owner(self) -> str:
        """The id of the process or sub-process that it is in."""
        return "" if self.parent is None else self.parent.id

    def own(self, name: str) -> list["Element"]:
        """Returns its children of BPMN's model with this name."""
        return [child for child in self.children if child.name == name and child.uri == MODEL]


class Scan:
    """A file: elements of the model by id, shapes and lines by the id that they show, and what is to be changed."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.model: dict[str, Element] = {}
        self.shown: dict[str, Element] = {}
        self.plane: Element | None = None
        self.root: Element | None = None
        self._stack: list[Element] = []
        self._edits: list[tuple[int, int, bytes]] = []
        self._removed: list[Element] = []
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = lambda name, attributes: self._start(parser.CurrentByteIndex, name, attributes)
        parser.EndElementHandler = lambda name: self._end(parser.CurrentByteIndex)
        parser.StartDoctypeDeclHandler = _no_doctype
        parser.XmlDeclHandler = _only_utf8
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise FlowError(
                f"the XML is broken: {expat.ErrorString(error.code)}", error.lineno, error.offset + 1
            ) from None

    def _start(self, begin: int, name: str, attributes: dict[str, str]) -> None:
        tag = _TAG.match(self.content, begin)
        if tag is None:
            raise FlowError("a tag cannot be read", self.content[:begin].count(b"\n") + 1)
        uri, _, local = name.rpartition(" ")
        element = Element(
            uri, local, attributes, begin, tag.end(), bool(tag[1]), self._stack[-1] if self._stack else None
        )
        if element.parent is None:
            self.root = element
        else:
            element.parent.children.append(element)
        if uri == MODEL and element.id:
            self.model[element.id] = element
        if uri == DIAGRAM and "bpmnElement" in attributes and local != "BPMNPlane":
            self.shown[attributes["bpmnElement"]] = element
        if local == "BPMNPlane":
            self.plane = element
        self._stack.append(element)

    def _end(self, at: int) -> None:
        element = self._stack.pop()
        element.end = element.head_end if element.empty else self.content.index(b">", at) + 1

    def style(self) -> Style:
        """Returns the prefixes of the file and whether its nodes list their flows."""
        refs = any(e.own("incoming") or e.own("outgoing") for e in self.model.values())
        return Style(
            model=self._prefix(self.root),
            diagram=self._prefix(self.plane) if self.plane else "bpmndi:",
            bounds=self._prefix(self._drawn("Bounds")) if self._drawn("Bounds") else "dc:",
            line=self._prefix(self._drawn("waypoint")) if self._drawn("waypoint") else "di:",
            refs=refs,
            camunda=ZEEBE.encode() in self.content,
        )

    def _drawn(self, name: str) -> Element | None:
        return next((c for e in self.shown.values() for c in e.children if c.name == name), None)

    def _prefix(self, element: Element | None) -> str:
        tag = b"" if element is None else self.content[element.begin + 1 : element.head_end]
        name = re.split(rb"[\s/>]", tag, maxsplit=1)[0]
        return name[: name.index(b":") + 1].decode() if b":" in name else ""

    def ids(self) -> set[str]:
        """Returns every id of the file, of shapes and lines too."""
        found, waiting = set[str](), [self.root] if self.root else []
        while waiting:
            element = waiting.pop()
            found.add(element.id)
            waiting += element.children
        return found

    def boxes(self) -> dict[str, Box]:
        """Returns the box of every element that has a shape: left, top, width, height."""
        found = {}
        for ident, element in self.shown.items():
            for child in element.children:
                if child.name == "Bounds":
                    x, y, w, h = (float(child.attributes.get(key, 0)) for key in ("x", "y", "width", "height"))
                    found[ident] = x, y, w, h
        return found

    def replace(self, begin: int, end: int, text: str) -> None:
        """Notes that the bytes from `begin` to `end` become this text."""
        self._edits.append((begin, end, text.encode()))

    def insert_into(self, element: Element, text: str, before_artifacts: bool = False) -> None:
        """Notes a text that goes to the end of an element, or before its first annotation."""
        names = ("textAnnotation", "association", "group")
        first = next((c for c in element.children if c.name in names), None) if before_artifacts else None
        at = self._line_start(first.begin) if first else self._line_start(self.content.rindex(b"<", 0, element.end))
        self.replace(at, at, text)

    def insert_before(self, element: Element, lines: list[str]) -> None:
        """Notes elements that go before an element, each on a line of its own where that is."""
        at = self._line_start(element.begin)
        indent = self.content[at : element.begin].decode()
        end = "\n" if at < element.begin or self.content[at - 1 : at] == b"\n" else ""
        self.replace(at, at, "".join(f"{indent}{line}{end}" for line in lines))

    def remove(self, element: Element) -> None:
        """Notes that an element goes, with the blanks before it."""
        self._removed.append(element)

    def _line_start(self, at: int) -> int:
        """Returns the place behind the last line break before `at` where only blanks stand between."""
        begin = at
        while begin and self.content[begin - 1 : begin] in (b" ", b"\t"):
            begin -= 1
        return begin if self.content[begin - 1 : begin] == b"\n" else at

    def _span(self, element: Element) -> tuple[int, int]:
        begin = self._line_start(element.begin)
        if begin < element.begin or self.content[begin - 1 : begin] == b"\n":
            after = element.end
            if self.content[after : after + 2] == b"\r\n":
                return begin, after + 2
            if self.content[after : after + 1] == b"\n":
                return begin, after + 1
        return element.begin, element.end

    def text(self, element: Element) -> str:
        """Returns an element as it will be, with the changes inside it."""
        return self._changed(element.begin, element.end, element).decode()

    def changed(self) -> bytes:
        """Returns the whole file with all changes."""
        return self._changed(0, len(self.content), None)

    def _changed(self, begin: int, end: int, itself: Element | None) -> bytes:
        gone = [self._span(e) for e in self._removed if e is not itself]
        gone = [span for span in gone if begin <= span[0] and span[1] <= end]
        gone = [span for span in gone if not any(_within(span, other) for other in gone if other != span)]
        changes = [(b, e, text) for b, e, text in self._edits if begin <= b and e <= end]
        changes = [c for c in changes if not any(_within((c[0], c[1]), span) for span in gone)]
        pieces, at = [], begin
        for b, e, text in sorted([*changes, *((b, e, b"") for b, e in dict.fromkeys(gone))], key=_order):
            pieces += [self.content[at:b], text]
            at = max(at, e)
        return b"".join([*pieces, self.content[at:end]])


def _order(change: tuple[int, int, bytes]) -> tuple[int, int]:
    return change[0], change[1]


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    if inner[0] == inner[1]:
        return outer[0] < inner[0] < outer[1]
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _no_doctype(*_: object) -> None:
    raise FlowError("a BPMN file has no document type; remove the <!DOCTYPE …>")


def _only_utf8(version: str, encoding: str | None, standalone: int) -> None:
    if encoding is not None and encoding.casefold() not in ("utf-8", "utf8", "us-ascii"):
        raise FlowError(f"the file is in {encoding}; only UTF-8 files can be changed in place")


def joined(lines: Iterable[str]) -> str:
    """Returns lines as text with a line break behind each."""
    return "".join(f"{line}\n" for line in lines)
