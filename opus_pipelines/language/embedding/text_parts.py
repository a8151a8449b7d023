"""Cuts a procedure into parts, each with its heading and sentences, by its layout alone.

A part begins at a paragraph that opens with a heading: a Markdown heading, a short line that ends in a colon, or a
short line that stands alone. A text without headings is one part. Groups such as "any of these" are kept: one of their
sentences has to hold. This is the project's own rule.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

HEADING_WORDS = 12  # a line that ends in a colon and is longer is a sentence
ALONE_WORDS = 8  # a line that stands alone and is longer is a sentence
SENTENCE_WORDS = 3  # a sentence with fewer words has no content ("None.")
PROSE_WORDS = 60  # a longer line is prose, which is cut into sentences; a shorter line is one statement
_LINE = re.compile(r"^(\s*)((?:#+|[*•\-–+◦▪]|\d+[.)]|[a-z][.)])\s+)?(.*)$")
_EITHER = re.compile(r"\b(any|either|one of)\b", re.IGNORECASE)
_QUALIFIER = "internal"  # stands before the verb of a name: `internal_get_details`
_ENDS = re.compile(r"(?<=[.!?;])\s+(?=[A-Z])")


@dataclass(frozen=True)
class Sentence:
    """One sentence or list item, without its bullet.

    Of the sentences with the same `either` number (from 0), those of one `branch` (from 0) have to hold.
    """

    text: str
    either: int | None = None
    branch: int = 0


@dataclass(frozen=True)
class Part:
    """The text under one heading.

    `is_title` is True for a Markdown heading, which heads a section rather than a step. `is_declared` is True for a
    tool of the contract's catalogue, which stands in no procedure.
    """

    head: str | None
    sentences: tuple[Sentence, ...]
    is_title: bool = False
    is_declared: bool = False

    @property
    def name(self) -> str:
        """The heading in plain words."""
        return plain(self.head or "")

    @property
    def text(self) -> str:
        """Heading and sentences as one text."""
        body = " ".join(s.text for s in self.sentences)
        return f"{self.name}. {body}" if self.name and body else self.name or body


WEIGHT_OF_TEXT = 0.5  # of a part's text, relative to its heading, because parts repeat each other's sentences


def part_similarity(request: "np.ndarray", heads: "np.ndarray", texts: "np.ndarray") -> "np.ndarray":
    """Returns how similar each part is to a request.

    The arguments are unit vectors: of the request [d], of the names [n, d] and of the texts [n, d] of the parts.
    """
    similarity: np.ndarray = heads @ request + WEIGHT_OF_TEXT * (texts @ request)
    return similarity


def plain(name: str) -> str:
    """Returns a name in lower-case words: `registerVehicle`, `register_vehicle` and `Register vehicle` are the same."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))).lower()


def verb_of(name: str) -> str:
    """Returns the verb of a step's name in plain words: `get` of `get details` and of `internal get details`."""
    first, *others = name.split() or [""]
    return others[0] if first == _QUALIFIER and others else first


def object_of(name: str) -> str:
    """Returns a step's name in plain words without its verb: `details` of `get details`; a single word as it is."""
    return " ".join(w for w in name.split() if w not in (_QUALIFIER, verb_of(name))) or name


def parts(text: str) -> list[Part]:
    """Returns the parts of a text in order; the text before the first heading is a part without a heading."""
    drafts: list[tuple[str | None, bool, list[Sentence]]] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line for line in paragraph.splitlines() if line.strip()]
        if lines and _is_heading(lines[0], len(lines) == 1):
            drafts.append((_bare(lines[0]).rstrip(":").strip(), lines[0].lstrip().startswith("#"), []))
            lines = lines[1:]
        if lines:
            if not drafts:
                drafts.append((None, False, []))
            drafts[-1][2].extend(_sentences(lines, drafts[-1][2]))
    return [Part(head, tuple(sentences), is_title) for head, is_title, sentences in drafts]


def _is_heading(line: str, alone: bool) -> bool:
    if line.lstrip().startswith("#"):
        return True
    body = _bare(line)
    words = len(body.split())
    if body.endswith(":"):
        return 0 < words <= HEADING_WORDS
    return alone and 0 < words <= ALONE_WORDS and not re.search(r"[.!?;,]$", body)


def _sentences(lines: list[str], before: list[Sentence]) -> list[Sentence]:
    """Returns the sentences of the lines of a paragraph.

    A line that ends in a colon says how the indented lines below it are joined. Inside an either-group such a line
    begins a branch of several sentences; without one each line is a branch.
    """
    sentences: list[Sentence] = []
    number = max((s.either for s in before if s.either is not None), default=-1)
    open_at: int | None = None  # the indent of the line that opened an either-group
    branch, is_joined = -1, False
    for line in lines:
        match = _LINE.match(line)
        indent = len(match[1]) if match else 0
        if open_at is not None and indent <= open_at:
            open_at = None
        body = _bare(line)
        if body.endswith(":"):
            if _EITHER.search(body):
                number, open_at, branch, is_joined = number + 1, indent, -1, False
            elif open_at is not None:
                branch, is_joined = branch + 1, True
            continue
        group = number if open_at is not None else None
        branch += not is_joined
        cut = _ENDS.split(body) if len(body.split()) > PROSE_WORDS else [body]
        sentences += [Sentence(text, group, branch if group is not None else 0) for text in cut]
    return [s for s in sentences if len(s.text.split()) >= SENTENCE_WORDS]


def _bare(line: str) -> str:
    """Returns the line without bullet, number and emphasis."""
    match = _LINE.match(line)
    return " ".join(re.sub(r"[*_`]{2,}", "", match[3] if match else line).split())
