"""The elements of an intake: every document under input/, output/ and process/, and the contract's own, as text.

A document that cannot be read is not lost: its element says in `left_out` what was left out and why.
"""

from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from opus_pipelines.errors import InputError
from opus_pipelines.ids import make_id
from opus_pipelines.intention.readers import MAX_BYTES, READERS

ROLES = ("input", "output", "process")


@dataclass(frozen=True)
class Element:
    """One document in its role (input, output, process, contract). `text` is None where nothing could be read."""

    element_id: str
    role: str
    modality: str
    name: str
    media_type: str | None
    text: str | None
    bytes: int
    sha256: str
    left_out: str | None


def read_elements(intake: Path, contract_documents: Path) -> list[Element]:
    """Every element of an intake, its own first, in the order of role and name; the contract's documents are inherited."""
    found = [(role, folder) for role in ROLES if (folder := intake / role).is_dir()]
    if contract_documents.is_dir():
        found.append(("contract", contract_documents))
    return [_read(role, folder, path) for role, folder in found for path in _files(folder)]


def missing(elements: list[Element]) -> str | None:
    """What to ask the client for, when the elements do not make an Intention (LWM 4.2): the input and one of the other two."""
    there = {e.role for e in elements if e.text and e.text.strip()}
    if "input" not in there:
        return "no readable client input; put what the client gives under input/ (text, Markdown, CSV or JSON)"
    if not there & {"output", "process", "contract"}:
        return "neither client output nor process context; say what must come out (output/) or how it is to be done (process/)"
    return None


def is_complete(elements: list[Element]) -> bool:
    """Input, output and process context are all there; the contract's documents are process context."""
    there = {e.role for e in elements if e.text and e.text.strip()}
    return {"input", "output"} <= there and bool(there & {"process", "contract"})


def _files(folder: Path) -> list[Path]:
    root = folder.resolve()
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    for path in files:
        if not path.resolve().is_relative_to(root):
            raise InputError(f"{path} points outside {folder}; copy the document instead of linking it")
    return files


def _read(role: str, folder: Path, path: Path) -> Element:
    name = path.relative_to(folder).as_posix()
    size = path.stat().st_size
    with path.open("rb") as file:
        content = file_digest(file, "sha256").hexdigest()
    reader = READERS.get(path.suffix.lower())
    text = None
    if reader is None:
        left_out: str | None = f"no reader for {path.suffix or 'files without a suffix'}; known: {', '.join(sorted(READERS))}"
    elif size > MAX_BYTES:
        left_out = f"{size} bytes are more than the {MAX_BYTES} that are read"
    else:
        try:
            text, left_out = reader.read(path.read_bytes())
        except InputError as error:
            left_out = str(error)
    modality, media_type = (reader.modality, reader.media_type) if reader else ("other", None)
    return Element(make_id("e", role, name, content), role, modality, name, media_type, text, size, content, left_out)
