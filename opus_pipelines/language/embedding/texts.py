"""The texts that are embedded: parts of a procedure, passages of long texts, the request and context of a case.

A part begins at a paragraph that opens with a heading: a Markdown heading, a short line that ends in a colon, or a
short line that stands alone. A text without headings is one part. Groups such as "any of these" are kept: one of their
sentences has to hold. This is the project's own rule.

The request weights the passages of the process context: what a procedure says about this request counts more than what
it says to everyone (measured on the held-out keys of SOPBench, fold 0: clean .41 against .36 for the plain mean).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

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


REQUEST_WEIGHT = 0.5  # of title and description, or of the client input
CONTEXT_WEIGHT = 0.5  # of the procedure
OUTPUT_WEIGHT = 0.25  # of the requested output
TEMPERATURE = 0.02  # of the attention: cosines with this difference have weights of e to 1
WORDS_PER_TOKEN = 0.7  # of English prose under WordPiece; a text with more tokens is read in windows by the encoder
LONG_WORD = 32  # a longer word counts one word per character: text without spaces, base64


def words_of(max_tokens: int) -> int:
    """Returns how many words of a passage an encoder of `max_tokens` tokens reads."""
    return max(1, int(max_tokens * WORDS_PER_TOKEN))


def passages(text: str | None, max_words: int) -> list[str]:
    """Returns the paragraphs of a text, which blank lines separate, each cut to `max_words`; no word is dropped."""
    return [part for paragraph in re.split(r"\n\s*\n", text or "") for part in stretches(paragraph, max_words)]


def stretches(text: str | None, max_words: int) -> list[str]:
    """Cuts a text into stretches of `max_words` words, regardless of paragraphs.

    It is used for requests, which are read as a whole. A word of more than LONG_WORD characters counts one word per
    character, and is cut when it alone is too long.
    """
    cut: list[list[str]] = []
    words_left = 0
    for word in (text or "").split():
        pieces = [word] if len(word) <= LONG_WORD else [word[i : i + max_words] for i in range(0, len(word), max_words)]
        for piece in pieces:
            weight = 1 if len(word) <= LONG_WORD else len(piece)
            if weight > words_left:
                cut.append([])
                words_left = max_words
            cut[-1].append(piece)
            words_left -= weight
    return [" ".join(words) for words in cut]


def attention(query: "np.ndarray", keys: "np.ndarray", temperature: float = TEMPERATURE) -> "np.ndarray":
    """Returns weights for the rows of `keys` [n, d] and a unit `query` [d]; they sum to 1.

    They are the softmax of the cosines over `temperature`.
    """
    import numpy as np

    scores = keys @ query / temperature
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def unit(vector: "np.ndarray") -> "np.ndarray":
    """Returns the vector at length 1; a zero vector is returned as it is."""
    import numpy as np

    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)


def compose(
    request: "np.ndarray", context: "np.ndarray | None" = None, output: "np.ndarray | None" = None
) -> "np.ndarray":
    """Returns the unit vector of a request [d], the passages [n, d] of its context and those [m, d] of its output.

    Missing parts are left out.
    """
    total = REQUEST_WEIGHT * unit(request)
    if context is not None and len(context):
        total = total + CONTEXT_WEIGHT * unit(attention(unit(request), context) @ context)
    if output is not None and len(output):
        total = total + OUTPUT_WEIGHT * unit(output.mean(0))
    return unit(total)


def case_texts(sources: Iterable[Path]) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    """Yields implementation id, title, description and process context of each case in folders of implementations."""
    columns = ["implementation_id", "title", "description", "process_context"]
    for folder in sources:
        for file in sorted(folder.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(batch_size=4_096, columns=columns):
                yield from zip(*(batch[name].to_pylist() for name in columns), strict=True)


def request_text(title: str | None, description: str | None) -> str:
    """Returns the request of a case as one text; it is empty when history has none."""
    return ". ".join(part.strip() for part in (title, description) if part and part.strip())


def case_passages(sources: Iterable[Path], max_tokens: int) -> set[str]:
    """Returns every passage that the vectors of cases are made of."""
    words = words_of(max_tokens)
    found: set[str] = set()
    for _, title, description, context in case_texts(sources):
        found.update(stretches(request_text(title, description), words))
        found.update(passages(context or "", words))
    return found


def contexts_of(sources: Iterable[Path]) -> dict[str, str]:
    """Returns the process context of each case in folders of implementations that has one, by id."""
    return {case: context for case, _, _, context in case_texts(sources) if context and context.strip()}


def requests_of(sources: Iterable[Path]) -> dict[str, str]:
    """Returns the request of each case in folders of implementations, by id; without a request, its context."""
    return {
        case: text
        for case, title, description, context in case_texts(sources)
        if (text := request_text(title, description) or (context or "").strip())
    }
