"""Reads the elements of an intake: every document under input/, output/ and process/, and the contract's own, as text.

A document that cannot be read still becomes an element, whose `left_out` gives the reason.
"""

import errno
import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from opus_pipelines.core.ids import make_id
from opus_pipelines.core.settings_files import hard_link_reason
from opus_pipelines.intakes.documents.document import (
    MAX_CHARACTERS_OF_ALL,
    MAX_DEPTH,
    MAX_DOCUMENTS,
    MAX_SCANNED,
    Document,
    DocumentText,
    Transcribe,
    cut,
)
from opus_pipelines.intakes.documents.formats import preprocess
from opus_pipelines.intakes.documents.natural_language import (
    foreign_language,
    language_of_request,
    languages_of_parts,
    steps_are_read,
)
from opus_pipelines.intakes.visibility.unseen import ASIDES

INHERITED = "contract"  # the role of the contract's own documents
ROLES = ("input", "output", "process")
PROCEDURAL = ("process", INHERITED)  # the roles of documents that say how work is done
READ_ONLY = "procedures are read in English only"
FOREIGN = f"it is written in {{language}}, and {READ_ONLY}; translate it, or state its rules in contract.toml"
NAMED_ONLY = "only its sentences that name a step are read as rules"
PARTLY_FOREIGN = (
    f"it is written in {{language}}, and {NAMED_ONLY}; translate it, or state its other rules in contract.toml"
)
FOREIGN_PART = f"parts of it are written in {{languages}}, and {READ_ONLY}; translate them"
COMPARED_ONLY = "requests are compared with history in English only"
FOREIGN_REQUEST = f"it is written in {{language}}, and {COMPARED_ONLY}; translate it"
READABLE = "text, Markdown, HTML, e-mail, CSV, Excel, JSON, XML, DOCX, PPTX, or PDF with a text layer"
# Unicode categories that a shown name must not contain: controls, direction marks, surrogates, private use.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True)
class Element:
    """One document in its role (input, output, process, contract). `text` is None where nothing could be read.

    An attachment is an element named `mail.eml/attachment.pdf`. `left_out` says which part of the document is not in
    the text, or how it was read. `places` says of lines of the text, counted from 0, where a person finds them on the
    page or slide.
    """

    element_id: str
    role: str
    modality: str
    name: str
    media_type: str | None
    text: str | None
    bytes: int
    sha256: str
    left_out: str | None
    places: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class ReadingLimits:
    """How many documents, and how many characters of them, are read for one intake or for one contract."""

    documents: int = MAX_DOCUMENTS
    characters: int = MAX_CHARACTERS_OF_ALL


def read_elements(
    intake: Path,
    contract_documents: Path | Sequence[Element],
    limits: ReadingLimits = ReadingLimits(),
    also_read: Collection[str] = (),
    transcribe: Transcribe | None = None,
) -> list[Element]:
    """Reads every element of an intake, in the order of role and name, then those of the contract.

    `contract_documents` is the folder of the contract's documents, or the result of `contract_elements`, so that many
    intakes share one reading. `also_read`: what is read outside the body of documents that may set something
    (`intakes.visibility.unseen.ASIDES`); the client's input sets no rules, and is read with all of it. `transcribe`
    writes recordings down.
    """
    budget = _ReadingBudget(limits, also_read, transcribe)
    own = [e for role in ROLES for e in _of_folder(role, intake / role, budget)]
    inherited = (
        contract_elements(contract_documents, also_read, transcribe)
        if isinstance(contract_documents, Path)
        else contract_documents
    )
    return [*own, *inherited]


def contract_elements(
    documents: Path, also_read: Collection[str] = (), transcribe: Transcribe | None = None
) -> tuple[Element, ...]:
    """Reads the contract's own documents, which each of its intakes inherits. The rest as in `read_elements`."""
    return tuple(_of_folder(INHERITED, documents, _ReadingBudget(ReadingLimits(), also_read, transcribe)))


def missing(elements: Sequence[Element]) -> str | None:
    """Returns what to ask the client for where the elements do not make an Intention, or None.

    Only the input is required. A request alone is an incomplete Intention (LWM 4.2), whose other parts come from
    similar cases.
    """
    readable = _readable_roles(elements)
    if "input" not in readable:
        return f"no readable client input; ask the client for what they give, and put it under input/ ({READABLE})"
    return None


def is_complete(elements: Sequence[Element]) -> bool:
    """Returns whether input, output and process context are all present.

    The contract's documents are process context.
    """
    readable = _readable_roles(elements)
    return {"input", "output"} <= readable and not readable.isdisjoint(PROCEDURAL)


def _readable_roles(elements: Sequence[Element]) -> set[str]:
    return {e.role for e in elements if e.text and e.text.strip()}


class _ReadingBudget:
    """How much more may be read for one intake, or for one contract, and what outside the body."""

    def __init__(
        self, limits: ReadingLimits, also_read: Collection[str] = (), transcribe: Transcribe | None = None
    ) -> None:
        self.limits, self.documents, self.characters = limits, limits.documents, limits.characters
        self.scanned, self.transcribe = MAX_SCANNED, transcribe
        self._also_read = frozenset(also_read)

    def asides(self, role: str) -> frozenset[str]:
        """Returns which texts outside the body are read of a document in this role."""
        return ASIDES if role == "input" else self._also_read


def _of_folder(role: str, folder: Path, budget: _ReadingBudget) -> Iterator[Element]:
    """Yields the elements of a role's folder, none where there is no such folder."""
    if folder.is_symlink():
        yield _unread(role, folder.name, "the folder is a link; copy the documents instead of linking them")
        return
    if not folder.is_dir():
        return
    root = folder.resolve()
    paths, unlisted = below(folder)
    for path in paths:
        name = path.relative_to(folder).as_posix()
        reason = _no_document(path, root)
        if path in unlisted:
            reason = reason or "the folder cannot be listed; give the right to read it"
        if reason:
            yield _unread(role, name, reason)
        elif path.is_file():
            yield from _of_document(role, name, Document.of_file(path, budget.asides(role)), budget)


def below(folder: Path) -> tuple[list[Path], set[Path]]:
    """Returns all files and folders below, sorted, without hidden ones, and the folders that cannot be listed."""
    errors: list[OSError] = []
    found = [Path(root, name) for root, *names in os.walk(folder, onerror=errors.append) for name in chain(*names)]
    unlisted = {Path(os.fsdecode(error.filename)) for error in errors if error.filename}
    return sorted(path for path in found if not is_hidden(path.relative_to(folder))), unlisted


def is_hidden(path: Path) -> bool:
    """Returns whether a path belongs to a program (`.DS_Store`, `.git/...`) and not to the client.

    A name that begins with two dots is an ordinary name.
    """
    return any(part.startswith(".") and not part.startswith("..") for part in path.parts)


def _no_document(path: Path, root: Path) -> str | None:
    """Returns why a path in the folder is not opened as a document, or None for a file and for a folder."""
    try:
        place = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        is_long = isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG
        return "its path is too long to be read; move it up" if is_long else "it is a link that leads nowhere"
    if path.is_symlink() and (path.is_dir() or not place.is_relative_to(root)):
        return "it points outside its folder; copy the document instead of linking it"
    if path.is_dir():
        return None
    return hard_link_reason(place.stat()) if path.is_file() else "it is no regular file"


def foreign_reason(elements: Iterable[Element]) -> str | None:
    """Returns why a workflow may lack what is demanded: documents in a language that is not read; else None."""
    unread = (
        f"{e.name} was not {'read' if e.text is None else 'understood'}: {part}"
        for e in elements
        for part in (e.left_out or "").split("; ")
        if part.endswith((READ_ONLY, NAMED_ONLY, COMPARED_ONLY))
    )
    return "; ".join(dict.fromkeys(unread)) or None


def is_foreign(element: Element) -> bool:
    """Tells whether an element is a procedure in a language whose rules are not, or not all, read."""
    return any(part.endswith((READ_ONLY, NAMED_ONLY)) for part in (element.left_out or "").split("; "))


def _of_document(role: str, name: str, document: Document, budget: _ReadingBudget) -> Iterator[Element]:
    """Yields a document's element, then those of the documents inside it."""
    budget.documents -= 1
    try:
        content = document.sha256()
    except OSError as error:
        yield _unread(role, name, f"it cannot be opened: {error.strerror}", document.size)
        return
    document = replace(document, most_scanned=budget.scanned, transcribe=budget.transcribe)
    kind, reading = preprocess(document) if budget.documents >= 0 else (None, _one_too_many(budget.limits))
    budget.scanned -= reading.scanned
    text, left_out = _within_budget(reading, budget)
    text, left_out = _in_english(role, text, left_out)
    yield Element(
        make_id("e", role, name, content),
        role,
        kind.modality if kind else "other",
        shown_name(name),
        kind.media_type if kind else None,
        text,
        document.size,
        content,
        "; ".join(left_out) or None,
        tuple(sorted(reading.places.items())) if text else (),
    )
    for part in reading.parts:
        inner = f"{name}/{part.name}"
        if part.depth > MAX_DEPTH:
            yield _unread(
                role, inner, f"it lies in {MAX_DEPTH} e-mails inside each other, and deeper is not read", part.size
            )
        else:
            yield from _of_document(role, inner, part, budget)


def _one_too_many(limits: ReadingLimits) -> DocumentText:
    return DocumentText(
        None, (f"there are more than the {limits.documents:,} documents that are read of one intake or contract",)
    )


def _within_budget(reading: DocumentText, budget: _ReadingBudget) -> tuple[str | None, list[str]]:
    """Returns the text as far as the budget allows, and all that was left out."""
    left_out = list(reading.left_out)
    if reading.text is None:
        return None, left_out
    text, beyond = cut(reading.text, budget.characters)
    budget.characters -= len(text)
    if beyond:
        left_out.append(f"{beyond}: the documents of one intake or contract may hold {budget.limits.characters:,}")
    return text, left_out


def _in_english(role: str, text: str | None, left_out: list[str]) -> tuple[str | None, list[str]]:
    """Returns the text as far as its language is read, and what was left out.

    A procedure in another language is not read, but where the reader has tables of the language: its steps can be told
    then, and those of its rules that name a step. Parts of one, and a request, stay in the text and are named.
    """
    if not text:
        return text, left_out
    if role not in PROCEDURAL:
        language = language_of_request(text)
        return text, [*left_out, FOREIGN_REQUEST.format(language=language)] if language else left_out
    if language := foreign_language(text):
        is_read = steps_are_read(language)
        reason = (PARTLY_FOREIGN if is_read else FOREIGN).format(language=language)
        return text if is_read else None, [*left_out, reason]
    languages = languages_of_parts(text)
    return text, [*left_out, FOREIGN_PART.format(languages=" and ".join(languages))] if languages else left_out


def _unread(role: str, name: str, reason: str, size: int = 0) -> Element:
    return Element(
        make_id("e", role, name, ""), role, "other", shown_name(name), None, None, size, _EMPTY_SHA256, reason
    )


# SHA-256 of no bytes: none were read
_EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def shown_name(name: str) -> str:
    """Returns a client's file or folder name with each character that cannot be shown or stored replaced by U+FFFD."""
    return "".join("\ufffd" if unicodedata.category(c) in _UNPRINTABLE else c for c in name)
