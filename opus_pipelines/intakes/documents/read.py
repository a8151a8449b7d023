"""Preprocesses documents: f_m of LWM (3), m in text, image, audio and video.

All modalities have one interface. A failure of a reader becomes a reason here and nowhere else.
"""

import re
import warnings
from typing import Protocol

from opus_pipelines.core.errors import InputError, PluginError
from opus_pipelines.intakes.documents.document import Document, DocumentText, cut
from opus_pipelines.intakes.documents.formats import DOCUMENT_READERS, Format, format_of, is_added
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS
from opus_pipelines.intakes.visibility.characters import without_invisible
from opus_pipelines.intakes.visibility.unseen import Unseen

_ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>|0x[0-9a-f]{6,}")  # an address in memory differs from run to run
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")


class Preprocessing(Protocol):
    """f_m of one modality; raises whatever its library raises."""

    def __call__(self, document: Document, kind: Format) -> DocumentText:
        """Returns the text of the document and what was left out of it."""
        ...


def read_text(document: Document, kind: Format) -> DocumentText:
    """Reads a document of the text modality with the reader of its format."""
    return DOCUMENT_READERS.get(kind.suffix[1:])(document)


def lacking(part: str, advice: str) -> Preprocessing:
    """Returns the preprocessing of a modality that is not supported: it refuses every document with a reason."""

    def refuse(document: Document, kind: Format) -> DocumentText:
        raise InputError(f"{part}: {advice}")

    return refuse


PREPROCESSING: dict[str, Preprocessing] = {
    "text": read_text,
    "image": lacking("no image encoder", "what it shows is not read; write it down in a document beside it"),
    "audio": lacking("no audio encoder", "what is said is not read; put a transcript beside it"),
    "video": lacking("no video encoder", "what it shows is not read; put a description or a transcript beside it"),
}


def preprocess(document: Document) -> tuple[Format, DocumentText]:
    """Returns the format of a document and what could be read of it.

    Failures of a reader do not raise; they are stated in `left_out`. Raises PluginError for a faulty installation.
    """
    kind = Format("", "other", None)
    note = None
    try:
        kind, note = format_of(document)
        if not document.size:
            raise InputError("it is empty: a file without a byte")
        if kind.refusal:
            raise InputError(kind.refusal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries warn of what they repair; the readers state what is lost
            read = read_text if is_added(kind.suffix) else PREPROCESSING[kind.modality]
            reading = _limited(read(document, kind), document.asides)
    except PluginError:  # a fault of the installation, not of this document
        raise
    except Exception as error:  # a library may raise anything on a broken document, and it must cost that document only
        reading = DocumentText(None, (_reason(error),))
    return kind, DocumentText(reading.text, ((note,) if note else ()) + reading.left_out, reading.parts, reading.places)


def _limited(reading: DocumentText, asides: frozenset[str]) -> DocumentText:
    if reading.text is None:
        return reading
    unseen = Unseen(asides)
    text, invalid = _NO_CHARACTER.subn("\ufffd", without_invisible(reading.text, unseen))
    text, beyond = cut(text, MAX_CHARACTERS)
    left_out = [*unseen.notes, *([f"{invalid:,} characters that no text can hold"] if invalid else [])]
    if not text.strip() and not left_out and not reading.left_out and not reading.parts:
        left_out.append("it holds no text")
    return DocumentText(
        text, (*reading.left_out, *left_out, *([beyond] if beyond else [])), reading.parts, reading.places
    )


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply to be read"
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be opened: {error.strerror}"
    message = _ADDRESS.sub("it", " ".join(str(error).split()))[:200]
    message = _NO_CHARACTER.sub("\ufffd", message)
    return f"it is broken, or nothing its reader can follow ({type(error).__name__}{': ' + message if message else ''})"
