"""Reads plain text and Markdown, without its hidden text; a long text is read from the front.

These are comments (also over several paragraphs), front matter, definitions of links, the words behind pictures and
links, and what markup inside the text hides. Code stays as it is: its markup is shown, and not followed.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents import html
from opus_pipelines.intakes.documents.document import MAX_CHARACTERS, Document, DocumentText, cut, open_text, pieces
from opus_pipelines.intakes.visibility.unseen import OFF_PAGE, Unseen

_FENCED = re.compile(r"^(?P<mark> {0,3}(?:`{3,}|~{3,}))[^\n]*\n.*?(?:^(?P=mark)[`~]*[ \t]*$|\Z)", re.M | re.S)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)|<\?.*?\?>|<!\[CDATA\[.*?\]\]>", re.S)
_RST_COMMENT = re.compile(
    r"^\.\.(?![ \t]+(?:\[|_|\||[\w:+-]+::))(?:[ \t][^\n]*)?(?:\n(?:[ \t]+[^\n]*|(?=\n[ \t])))*", re.M
)
_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?\n(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_TITLE = r"(?:\"(?:[^\"\n]|\n(?![ \t]*\n))*\"|'(?:[^'\n]|\n(?![ \t]*\n))*'|\((?:[^()\n]|\n(?![ \t]*\n))*\))"
_DEFINED = re.compile(rf"^ {{0,3}}\[(?!\^)[^\]\n]+\]:[ \t]*\n?[ \t]*\S+(?:[ \t]*\n?[ \t]*{_TITLE})?[ \t]*$", re.M)
_PICTURE = re.compile(r"!\[[^\]]*\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])?")
_LINK_TITLE = re.compile(rf"(?<=\]\()([^\s()]+[ \t]+)({_TITLE})(?=[ \t]*\))")
_HIDING = re.compile(
    r"<(?:style|link|details|template|script|noscript|dialog|font|body|table|td|svg|math|iframe|object|video|audio"
    r"|canvas|bdo|datalist|input)\b|<[a-z][^<>]*\b(?:style|class|id|hidden|popover|color|bgcolor)\b",
    re.I,
)
_FAR = re.compile(r"(?<=[ \t]{200})[^\s].*$", re.M)
_AMPERSAND = "\ue000"  # takes the place of "&", so that no parser resolves what follows


def shown(text: str, unseen: Unseen, kind: str) -> tuple[str, list[str]]:
    """Returns a text with blanks for its hidden text, and what markup in it was not read.

    `kind` is the suffix of the document: `.md`, `.markdown`, `.rst` or any other for plain text. Raises InputError
    where markup in it cannot be followed.
    """
    is_markdown = kind in (".md", ".markdown")
    code = _blank(text, [m.span() for m in _code(text)], "x") if is_markdown else text
    code = _take(code, _COMMENT, "a comment", unseen)
    if kind == ".rst":
        code = _take(code, _RST_COMMENT, "a comment", unseen)
    notes: list[str] = []
    if is_markdown:
        for pattern, reason in (
            (_FRONT, "settings of the page, above its text"),
            (_DEFINED, "a definition of a link"),
            (_PICTURE, "words that stand for a picture"),
        ):
            code = _take(code, pattern, reason, unseen)
        code = _take(code, _LINK_TITLE, "words behind a link", unseen, group=2)
        code, notes = _markup(code, unseen)
    else:
        code = _take(code, _FAR, OFF_PAGE, unseen)
    return "".join(a if a == b or b == "x" else b for a, b in zip(text, code, strict=True)), notes


def _code(text: str) -> Iterator[re.Match[str]]:
    """Yields fenced blocks, then the spans of code outside them."""
    fences = list(_FENCED.finditer(text))
    yield from fences
    yield from _SPAN.finditer(_blank(text, [m.span() for m in fences], " "))


def _take(text: str, pattern: re.Pattern[str], reason: str, unseen: Unseen, group: int = 0) -> str:
    places = []
    for match in pattern.finditer(text):
        unseen.hide(reason, re.sub(r"\W*\n\W*", " ", match[group]).strip("<!-> []():#/.\"'") or " ")
        places.append(match.span(group))
    return _blank(text, places, " ")


def _markup(text: str, unseen: Unseen) -> tuple[str, list[str]]:
    """Blanks the texts that the markup inside a text hides."""
    if not _HIDING.search(text):
        return text, []
    plain = text.replace("&", _AMPERSAND)
    parts, notes = html.hidden_texts(plain, unseen.read)
    place, places = 0, []
    for part, is_seen in parts:
        at = plain.find(part, place)
        if at >= 0:
            place = at + len(part)
            if not is_seen:
                places.append((at, place))
        elif not is_seen and part.strip():
            raise InputError("it hides text by markup that cannot be followed; save it without the markup")
    return _blank(text, places, " "), [note.replace(_AMPERSAND, "&") for note in notes]


def _blank(text: str, places: list[tuple[int, int]], sign: str) -> str:
    """Returns a text of the same length with a sign for each character of some places, line ends apart."""
    kept, done = [], 0
    for start, end in places:
        kept += [text[done:start], re.sub(r"[^\n]", sign, text[start:end])]
        done = end
    return "".join(kept) + text[done:]


def read(document: Document) -> DocumentText:
    """Returns the text, cut at MAX_CHARACTERS; the rest is only counted."""
    stream, note = open_text(document)
    notes = [note] if note else []
    with stream:
        parts = pieces(stream, MAX_CHARACTERS + 1)
        text = next(parts, "")
        beyond = sum(map(len, parts))
    kept, _ = cut(text, MAX_CHARACTERS)
    unseen = Unseen(document.asides)
    visible, unread = shown(kept, unseen, PurePosixPath(document.name.strip()).suffix.lower())
    notes += [*unread, *unseen.notes]
    if beyond := len(text) - len(kept) + beyond:
        notes.append(f"the last {beyond:,} of {len(kept) + beyond:,} characters")
    return DocumentText(visible, tuple(notes))
