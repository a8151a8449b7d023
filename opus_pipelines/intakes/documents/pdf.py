"""Reads PDF with a text layer page by page, and the filled-in fields of a form. Nothing in it is run."""

import logging
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from pypdf import PdfReader, apply_configuration
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import Document, DocumentText, counted
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS, MAX_PAGES, MIB

logging.getLogger("pypdf").setLevel(
    logging.CRITICAL
)  # what it could not read is said by the element, not on the screen
_LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb06": "st"}
)
_PAGE = "\n\n\f"  # between pages, empty ones too: by it a sentence's page is told
MAX_OPERATIONS = 2_000_000  # of one document: drawings have many, text few (a dense page some thousand)
_BOUNDS: dict[str, Any] = {
    "zlib_maximum_output_length": 16 * MIB,
    "lzw_maximum_output_length": 16 * MIB,
    "run_length_maximum_output_length": 16 * MIB,
    "brotli_maximum_output_length": 16 * MIB,
    "stream_parsing_work_maximum_count": 300_000,
    "xform_maximum_invocations_per_extraction": 200,
    "page_tree_maximum_entries": 20_000,
    "form_fields_maximum_entries": 5_000,
    "jbig2dec_binary": None,  # no other program is started
}


class _TooMuchError(BaseException):
    """The operations allowed for the document are used up.

    It is no Exception, because pypdf continues after those.
    """


def read(document: Document, most_operations: int = MAX_OPERATIONS) -> DocumentText:
    """Returns the text of the pages, and names the pages without text.

    A document of only such pages has no text. Reading ends after `most_operations` of its content streams. Raises
    InputError where it is encrypted or broken.
    """
    with apply_configuration(**_BOUNDS):
        try:
            return _read(PdfReader(BytesIO(document.content()), strict=False), most_operations)
        except (FileNotDecryptedError, DependencyError):
            raise InputError("it is encrypted; ask for a copy without a password") from None
        except PyPdfError as error:
            raise InputError(f"the PDF is broken: {' '.join(str(error).split())[:200]}") from None


def _read(reader: PdfReader, most_operations: int) -> DocumentText:
    if reader.is_encrypted and not reader.decrypt(""):
        raise InputError("it is encrypted; ask for a copy without a password")
    pages = _Pages(most_operations)
    total = len(reader.pages)
    for number in range(min(total, MAX_PAGES)):
        if pages.length > MAX_CHARACTERS or not pages.take(number + 1, reader.pages[number]):
            break
    left_out = pages.left_out(total)
    fields = _fields(reader)
    if attached := len(list(reader.attachment_list)):
        left_out.append(f"{counted(attached, 'document')} attached to it; put them into the folder")
    if not any(pages.texts) and not fields:
        missing = (
            f"{counted(total, 'page')} without a text layer: pictures of text need OCR, which is missing here; "
            "ask for the text"
        )
        return DocumentText(None, (missing,) if pages.empty or not left_out else tuple(left_out))
    return DocumentText("\n\n".join([_PAGE.join(pages.texts), *fields]).rstrip(), tuple(left_out))


class _Pages:
    """The pages so far: their text, and which had none or could not be read."""

    def __init__(self, most_operations: int) -> None:
        self._most_operations = most_operations
        self.texts: list[str] = []
        self.empty: list[int] = []
        self.broken: list[int] = []
        self.length = self.done = self._operations = 0

    def take(self, number: int, page: Any) -> bool:
        """Reads one page. Returns False where the operations allowed for the document are used up."""
        text = ""
        try:
            text = page.extract_text(visitor_operand_before=self._count).strip().translate(_LIGATURES)
        except _TooMuchError:
            return False
        except (FileNotDecryptedError, DependencyError):
            raise
        except Exception:  # one page that cannot be read does not cost the others: it is named
            self.broken.append(number)
        else:
            if not text:
                self.empty.append(number)
        self.texts.append(text)
        self.length += len(text)
        self.done = number
        return True

    def left_out(self, total: int) -> list[str]:
        notes = []
        if self.empty:
            notes.append(f"{_named(self.empty)} without a text layer (no OCR)")
        if self.broken:
            notes.append(f"{_named(self.broken)}, which cannot be read")
        if self.done < total:
            notes.append(f"the last {total - self.done:,} of {total:,} pages")
        return notes

    def _count(self, *_: Any) -> None:
        self._operations += 1
        if self._operations > self._most_operations:
            raise _TooMuchError


def _named(pages: Sequence[int]) -> str:
    shown = ", ".join(map(str, pages[:10])) + (", ..." if len(pages) > 10 else "")
    return f"{counted(len(pages), 'page')} ({shown})"


def _fields(reader: PdfReader) -> list[str]:
    """Returns `name: value` of every filled-in field, as one paragraph."""
    fields = reader.get_fields() or {}
    values = [(name, str(field.value or "").removeprefix("/")) for name, field in fields.items()]
    lines = [f"{name}: {' '.join(value.split())}" for name, value in values if value.strip() and value != "Off"]
    return ["\n".join(lines)] if lines else []
