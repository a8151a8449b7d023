"""Tells the format of a document, and reads it: f_m of LWM (3), m in text, image, audio and video.

Preprocesses documents: f_m of LWM (3), m in text, image, audio and video.

All modalities have one interface. A failure of a reader becomes a reason here and nowhere else.
"""

import re
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Protocol

from opus_pipelines.core.errors import InputError, PluginError
from opus_pipelines.core.registry import Registry, takes
from opus_pipelines.intakes.documents.document import MAX_CHARACTERS, Document, DocumentText, cut
from opus_pipelines.intakes.visibility.unseen import Unseen, without_invisible


@dataclass(frozen=True)
class Format:
    """A kind of document: `refusal` says what is missing and what to do where no reader reads it."""

    suffix: str
    modality: str
    media_type: str | None
    refusal: str | None = None


_OFFICE = "application/vnd.openxmlformats-officedocument"
_READ = {
    ".txt": ("text:read", "text/plain"),
    ".text": ("text:read", "text/plain"),
    ".log": ("text:read", "text/plain"),
    ".rst": ("text:read", "text/x-rst"),
    ".md": ("text:read", "text/markdown"),
    ".markdown": ("text:read", "text/markdown"),
    ".yaml": ("text:read", "application/yaml"),
    ".yml": ("text:read", "application/yaml"),
    ".ics": ("text:read", "text/calendar"),
    ".html": ("html:read", "text/html"),
    ".htm": ("html:read", "text/html"),
    ".xhtml": ("html:read", "application/xhtml+xml"),
    ".eml": ("mail:read", "message/rfc822"),
    ".csv": ("tables:read", "text/csv"),
    ".tsv": ("tables:read", "text/tab-separated-values"),
    ".xlsx": ("xlsx:read", f"{_OFFICE}.spreadsheetml.sheet"),
    ".xlsm": ("xlsx:read", "application/vnd.ms-excel.sheet.macroenabled.12"),
    ".json": ("structured:read_json", "application/json"),
    ".jsonl": ("structured:read_json_lines", "application/jsonl"),
    ".ndjson": ("structured:read_json_lines", "application/jsonl"),
    ".xml": ("structured:read_xml", "application/xml"),
    ".docx": ("docx:read", f"{_OFFICE}.wordprocessingml.document"),
    ".docm": ("docx:read", "application/vnd.ms-word.document.macroenabled.12"),
    ".pptx": ("pptx:read", f"{_OFFICE}.presentationml.presentation"),
    ".pptm": ("pptx:read", "application/vnd.ms-powerpoint.presentation.macroenabled.12"),
    ".pdf": ("pdf:read", "application/pdf"),
}
_OTHER_MODALITIES = {
    "image": ".png .jpg .jpeg .gif .bmp .tif .tiff .webp .heic .svg .ico",
    "audio": ".mp3 .wav .m4a .ogg .oga .flac .aac .opus .wma .aiff",
    "video": ".mp4 .mov .avi .mkv .webm .m4v .mpg .mpeg .wmv",
}
_SAVE_AS = {
    ".doc": "an old binary Word document; save it as .docx",
    ".dot": "an old binary Word template; save it as .docx",
    ".xls": "an old binary Excel workbook; save it as .xlsx",
    ".xlsb": "a binary Excel workbook; save it as .xlsx",
    ".ppt": "an old binary PowerPoint presentation; save it as .pptx",
    ".rtf": "rich text; save it as .docx",
    ".odt": "an OpenDocument text; save it as .docx",
    ".ods": "an OpenDocument sheet; save it as .xlsx",
    ".odp": "an OpenDocument presentation; save it as .pptx",
    ".msg": "an Outlook message; save it as .eml",
    ".ole": "an old binary Office document; save it as .docx, .xlsx or .pptx",
    **dict.fromkeys(
        (".zip", ".gz", ".tar", ".tgz", ".rar", ".7z", ".bz2", ".xz"),
        "an archive; put the documents in it into the folder",
    ),
}
FORMATS = {suffix: Format(suffix, "text", media_type) for suffix, (_, media_type) in _READ.items()}
FORMATS |= {s: Format(s, modality, None) for modality, suffixes in _OTHER_MODALITIES.items() for s in suffixes.split()}
FORMATS |= {s: Format(s, "other", None, refusal=f"it is {advice}") for s, advice in _SAVE_AS.items()}


class DocumentReader(Protocol):
    """Reads a document of one suffix; it may raise whatever its library raises, which costs that document only."""

    def __call__(self, document: Document) -> DocumentText:
        """Returns the text of the document and what was left out of it."""
        ...


DOCUMENT_READERS: Registry[DocumentReader] = Registry(  # by suffix, without the dot
    "document_readers",
    {suffix[1:]: f"opus_pipelines.intakes.documents.{reader}" for suffix, (reader, _) in _READ.items()},
    lambda name, value: takes(value, "document"),
)


def is_added(suffix: str) -> bool:
    """Returns whether an installed distribution reads documents of this suffix, which starts with its dot."""
    return suffix[1:] in DOCUMENT_READERS.added()


_MAGIC = (
    (b"%PDF-", ".pdf"),
    (b"PK\x03\x04", ".zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".ole"),
    (b"{\\rtf", ".rtf"),
    (b"\x89PNG\r\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF87a", ".gif"),
    (b"GIF89a", ".gif"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
    (b"\x1f\x8b", ".gz"),
    (b"Rar!\x1a", ".rar"),
    (b"7z\xbc\xaf", ".7z"),
    (b"ID3", ".mp3"),
    (b"OggS", ".ogg"),
    (b"fLaC", ".flac"),
)
_PACKAGES = (("word/", ".docx"), ("xl/", ".xlsx"), ("ppt/", ".pptx"))
_OLE = {".doc", ".dot", ".xls", ".ppt", ".msg"}
_SAME = {
    ".docm": ".docx",
    ".xlsm": ".xlsx",
    ".pptm": ".pptx",
    ".jpeg": ".jpg",
    ".tiff": ".tif",
    ".tgz": ".gz",
    ".oga": ".ogg",
    ".opus": ".ogg",
    ".mov": ".mp4",
    ".m4v": ".mp4",
}


def format_of(document: Document) -> tuple[Format, str | None]:
    """Returns the format by suffix, or by content where that is clearly another one, with a note that says so."""
    suffix = PurePosixPath(document.name.strip()).suffix.lower()
    if is_added(suffix):
        known = FORMATS.get(suffix)
        return Format(suffix, known.modality if known and not known.refusal else "text", None), None
    named = FORMATS.get(suffix) or Format(suffix, "other", None, refusal=_unknown(suffix))
    actual = _by_content(document)
    if actual is None or actual == _SAME.get(suffix, suffix):
        return named, None
    if actual == ".ole" and (suffix in _OLE or _is_encrypted(document)):
        return (named, None) if suffix in _OLE else (_ENCRYPTED, None)
    if actual == ".zip" and _SAME.get(suffix, suffix) in {".docx", ".xlsx", ".pptx", ".xlsb", ".odt", ".ods", ".odp"}:
        return named, None  # the reader of the format reports a broken package
    note = f"named {suffix or 'without a suffix'}, but its content is {actual.removeprefix('.')}: taken as that"
    return FORMATS[actual], note


_ENCRYPTED = Format(".ole", "other", None, refusal="it is encrypted; ask for a copy without a password")


def _unknown(suffix: str) -> str:
    return (
        f"no reader for {suffix or 'files without a suffix'}; known: "
        f"{', '.join(sorted(f'.{name}' for name in DOCUMENT_READERS.names()))}"
    )


def _by_content(document: Document) -> str | None:
    head = document.head()
    suffix_of_content = next((suffix for magic, suffix in _MAGIC if head.startswith(magic)), None)
    if head[:4] == b"RIFF":
        suffix_of_content = {b"WEBP": ".webp", b"WAVE": ".wav", b"AVI ": ".avi"}.get(head[8:12])
    if head[4:8] == b"ftyp":
        suffix_of_content = (
            ".heic" if head[8:12] in {b"heic", b"heix", b"mif1"} else ".m4a" if head[8:12] == b"M4A " else ".mp4"
        )
    return _package(document) if suffix_of_content == ".zip" else suffix_of_content


def _package(document: Document) -> str:
    try:
        with document.open() as file, zipfile.ZipFile(file) as package:
            names = package.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return ".zip"
    return next((suffix for folder, suffix in _PACKAGES if any(n.startswith(folder) for n in names)), ".zip")


def _is_encrypted(document: Document) -> bool:
    """Returns whether a document is an Office package with a password: an OLE container with a stream of this name."""
    return "EncryptedPackage".encode("utf-16-le") in document.content()


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


def read_picture(document: Document, kind: Format) -> DocumentText:
    """Reads a picture of text, where OCR is installed."""
    from opus_pipelines.intakes.documents import pictures  # here, because only pictures need what it loads

    return pictures.read(document)


def lacking(part: str, advice: str) -> Preprocessing:
    """Returns the preprocessing of recordings: what nothing transcribes is refused with a reason."""

    def refuse(document: Document, kind: Format) -> DocumentText:
        if document.transcribe is not None:
            return document.transcribe(document)
        raise InputError(f"{part}: {advice}")

    return refuse


PREPROCESSING: dict[str, Preprocessing] = {
    "text": read_text,
    "image": read_picture,
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
    return kind, replace(reading, left_out=((note,) if note else ()) + reading.left_out)


def _limited(reading: DocumentText, asides: frozenset[str]) -> DocumentText:
    if reading.text is None:
        return reading
    unseen = Unseen(asides)
    text, invalid = _NO_CHARACTER.subn("\ufffd", without_invisible(reading.text, unseen))
    text, beyond = cut(text, MAX_CHARACTERS)
    left_out = [*unseen.notes, *([f"{invalid:,} characters that no text can hold"] if invalid else [])]
    if not text.strip() and not left_out and not reading.left_out and not reading.parts:
        left_out.append("it holds no text")
    return replace(reading, text=text, left_out=(*reading.left_out, *left_out, *([beyond] if beyond else [])))


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
