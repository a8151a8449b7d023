"""Reads PDF with a text layer page by page, and the filled-in fields of a form. Nothing in it is run.

Hidden text is left out (`intakes.visibility.pdf`); the text layer of a scan is read where the
document's `asides` name it.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any

from PIL import Image
from pypdf import PdfReader, apply_configuration
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import (
    MAX_CHARACTERS,
    MAX_PAGES,
    MIB,
    NO_OCR,
    PARTIAL,
    Document,
    DocumentText,
    counted,
)
from opus_pipelines.intakes.visibility.pdf import SHOW, PageView, reason_of
from opus_pipelines.intakes.visibility.unseen import Unseen

logging.getLogger("pypdf").setLevel(
    logging.CRITICAL
)  # what it could not read is said by the element, not on the screen
_LIGATURES = str.maketrans(
    {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb06": "st"}
)
_PAGE = "\n\n\f"  # between pages, empty ones too: by it a sentence's page is told
_OF_A_SCAN = 0.3  # share of a page that pictures of text cover, beside which its own text may be a stamp
_STAMP = 200  # characters of such a text
_SCAN_PIXELS = 2_000  # of the longer side of a page that is put together from its pictures
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
            return _read(PdfReader(BytesIO(document.content()), strict=False), document, most_operations)
        except (FileNotDecryptedError, DependencyError):
            raise InputError("it is encrypted; ask for a copy without a password") from None
        except PyPdfError as error:
            raise InputError(f"the PDF is broken: {' '.join(str(error).split())[:200]}") from None


def _read(reader: PdfReader, document: Document, most_operations: int) -> DocumentText:
    if reader.is_encrypted and not reader.decrypt(""):
        raise InputError("it is encrypted; ask for a copy without a password")
    pages = _Pages(_layers_off(reader), document, most_operations)
    total = len(reader.pages)
    for number in range(min(total, MAX_PAGES)):
        if pages.length > MAX_CHARACTERS or not pages.take(number + 1, reader.pages[number]):
            break
    left_out = pages.left_out(total)
    fields = _fields(reader, pages.unseen)
    left_out += pages.unseen.notes
    if attached := len(list(reader.attachment_list)):
        left_out.append(f"{counted(attached, 'document')} attached to it; put them into the folder")
    if not any(pages.texts) and not fields:
        missing = f"{counted(total, 'page')} without a text layer: {pages.why_unread}"
        return DocumentText(None, (missing, *pages.unseen.notes) if pages.empty or not left_out else tuple(left_out))
    text = "\n\n".join([_PAGE.join(pages.texts), *fields]).rstrip()
    return DocumentText(text, tuple(left_out), places=pages.places, scanned=pages.scanned)


class _Pages:
    """The pages so far: their text, and which had none or could not be read."""

    def __init__(self, off: Callable[[Any], bool], document: Document, most_operations: int) -> None:
        self._off, self._most_operations, self._most_scanned = off, most_operations, document.most_scanned
        self.unseen = Unseen(document.asides)
        self.scanned, self._unsure, self._partial = 0, list[str](), False
        self.places: dict[int, str] = {}
        self._line = 0
        self.texts: list[str] = []
        self.empty: list[int] = []
        self.broken: list[int] = []
        self.length = self.done = self.notes = self._operations = 0

    def take(self, number: int, page: Any) -> bool:
        """Reads one page. Returns False where the operations allowed for the document are used up."""
        text = ""
        try:
            raw, places, view = self._seen(page)
            scan, scanned = self._of_pictures(number, view) if len(raw.strip()) < _STAMP else ("", {})
            if not raw.strip():
                raw, places = scan, scanned
            elif not set(scan.split()) <= set(raw.split()):  # else it is the picture of the text itself
                raw = f"{raw.rstrip()}\n\n{scan}"
            text = raw.strip().translate(_LIGATURES)
        except _TooMuchError:
            return False
        except (FileNotDecryptedError, DependencyError):
            raise
        except Exception:  # one page that cannot be read does not cost the others: it is named
            self.broken.append(number)
        else:
            if not text:
                self.empty.append(number)
            above = raw[: len(raw) - len(raw.lstrip())].count("\n")
            for line in range(text.count("\n") + 1):
                if (place := places.get(above + line)) is not None:
                    self.places[self._line + line] = place
        self._line += text.count("\n") + _PAGE.count("\n")
        self.notes += _count_notes(page)
        self.texts.append(text)
        self.length += len(text)
        self.done = number
        return True

    def left_out(self, total: int) -> list[str]:
        notes = []
        if self.empty:
            notes.append(f"{_named(self.empty)} without a text layer ({self.why_unread})")
        notes += self._unsure
        if self.broken:
            notes.append(f"{_named(self.broken)}, which cannot be read")
        if self.notes:
            notes.append(f"{counted(self.notes, 'note')} on the pages")
        if self.done < total:
            notes.append(f"the last {total - self.done:,} of {total:,} pages")
        return notes

    @property
    def why_unread(self) -> str:
        """Why pages without a text layer were not read."""
        from opus_pipelines.intakes.documents.pictures import is_there

        if not is_there():
            return NO_OCR
        if self._partial:
            return PARTIAL
        most = self._most_scanned
        return f"{most} pictures of pages are read at most" if self.scanned >= most else "no text is seen on them"

    def _of_pictures(self, number: int, view: PageView) -> tuple[str, dict[int, str]]:
        """Returns the text that the pictures of a page show, "" where they show none, and where its lines begin."""
        whole = view.page_box
        size = (whole[2] - whole[0]) * (whole[3] - whole[1])
        if sum(picture.area for picture in view.pictures) < _OF_A_SCAN * size or self.scanned >= self._most_scanned:
            return "", {}
        from opus_pipelines.intakes.documents import pictures  # here, because only scans need what it loads

        if not pictures.is_there():
            return "", {}
        self.scanned += 1
        try:
            page = _put_together(view)
        except Exception:  # a picture in a form that pypdf or Pillow lacks costs no text of the page
            self._unsure.append(f"the pictures of page {number}, which cannot be decoded")
            return "", {}
        found = pictures.page_of(page, self.unseen, view.over_pictures)
        if found.is_partial:
            self._partial = True
            return "", {}
        self._unsure += pictures.unsure(number, found.confidence)
        places = {line: pictures.place_of(down, found.confidence) for line, down in found.places.items()}
        return found.text, places

    def _seen(self, page: Any) -> tuple[str, dict[int, str], PageView]:
        """Returns the text of a page that is seen, where its lines begin, and what else the page draws."""
        view = PageView(page, self._off)

        def before(operator: bytes, operands: list[Any], *rest: Any) -> None:
            self._operations += 1
            if self._operations > self._most_operations:
                raise _TooMuchError
            view.before(operator, operands, *rest)

        chunks: list[tuple[str, float]] = []

        def said(text: str, cm: Any, tm: Any, *_: Any) -> None:
            chunks.append((text, tm[4] * cm[1] + tm[5] * cm[3] + cm[5]))

        text = page.extract_text(visitor_operand_before=before, visitor_operand_after=view.after, visitor_text=said)
        hidden = {n: r for n, found in view.hidden().items() if (r := reason_of(found, self.unseen.read)) is not None}
        if not hidden:
            return text, _heights(text, chunks, view), view
        for reason in dict.fromkeys(hidden.values()):
            of_reason = {number for number, why in hidden.items() if why == reason}
            passages = _only(page, of_reason.__contains__).split("\n\n")
            for passage in passages:
                self.unseen.hide(reason, passage or " ")
        chunks.clear()
        text = _only(page, lambda number: number not in hidden, said)
        return text, _heights(text, chunks, view), view


def _only(page: Any, wanted: Callable[[int], bool], said: Any = None) -> str:
    """Returns the text of those operations of a page whose number, counted as `PageView` does, is wanted."""
    number = 0

    def before(operator: bytes, operands: list[Any], *_: Any) -> None:
        nonlocal number
        number += 1
        if operator in SHOW and not wanted(number):
            operands.clear()  # an operation without operands shows nothing

    return page.extract_text(visitor_operand_before=before, visitor_text=said)


def _put_together(view: PageView) -> Image.Image:
    """Returns a page as its pictures show it; each is turned as the page has it."""
    left, bottom, right, top = view.page_box
    scale = _SCAN_PIXELS / max(right - left, top - bottom)
    page = Image.new("RGB", (round((right - left) * scale), round((top - bottom) * scale)), "white")
    for picture in view.pictures:
        x0, y0, x1, y1 = picture.box
        size = max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale))
        shown = picture.drawn.decode_as_image().convert("RGB").resize(size)
        page.paste(shown, (round((x0 - left) * scale), round((top - y1) * scale)))
    return page


def _heights(text: str, chunks: list[tuple[str, float]], view: PageView) -> dict[int, str]:
    """Returns how far down the page each line of a text begins, none where the parts do not make the text."""
    if "".join(chunk for chunk, _ in chunks) != text:
        return {}
    found: dict[int, str] = {}
    line = 0
    for chunk, height in chunks:
        for n, part in enumerate(chunk.split("\n")):
            line += n > 0
            if part.strip():
                found.setdefault(line, f"{view.down(height):.0%} down the page".replace("%", " %"))
    return found


def _layers_off(reader: PdfReader) -> Callable[[Any], bool]:
    """Returns what tells whether a layer (an optional content group) is switched off when the document is opened."""
    try:
        stated: Any = reader.root_object["/OCProperties"]["/D"].get_object()  # type: ignore[index]
        off = {getattr(entry, "idnum", None) for entry in stated.get("/OFF", ())}
        on = {getattr(entry, "idnum", None) for entry in stated.get("/ON", ())}
        base_off = stated.get("/BaseState") == "/OFF"
    except (KeyError, TypeError, AttributeError, PyPdfError):
        return lambda group: False

    def is_off(group: Any) -> bool:
        reference = getattr(group, "indirect_reference", None)
        ident = getattr(group, "idnum", getattr(reference, "idnum", None))
        return ident in off or (base_off and ident not in on)

    return is_off


def _count_notes(page: Any) -> int:
    """Returns how many notes with a text lie on a page; fields of forms and links are none."""
    found = 0
    entries: Any = []
    with suppress(Exception):  # a broken list of notes costs nothing but its count
        entries = list(page.get("/Annots", ()) or ())
    for entry in entries:
        note = entry.get_object()
        found += bool(
            hasattr(note, "get")
            and str(note.get("/Contents") or "").strip()
            and note.get("/Subtype") not in ("/Widget", "/Link")
        )
    return found


def _named(pages: Sequence[int]) -> str:
    shown = ", ".join(map(str, pages[:10])) + (", ..." if len(pages) > 10 else "")
    return f"{counted(len(pages), 'page')} ({shown})"


def _fields(reader: PdfReader, unseen: Unseen) -> list[str]:
    """Returns `name: value` of every filled-in field that is seen, as one paragraph."""
    fields = reader.get_fields() or {}
    values = []
    for name, field in fields.items():
        value = str(field.value or "").removeprefix("/")
        if value.strip() and value != "Off" and _is_hidden(field.indirect_reference):
            unseen.hide("a hidden field of the form", f"{name}: {value}")
        else:
            values.append((name, value))
    lines = [f"{name}: {' '.join(value.split())}" for name, value in values if value.strip() and value != "Off"]
    return ["\n".join(lines)] if lines else []


def _is_hidden(reference: Any) -> bool:
    """Returns whether all places of a field are hidden, never shown, or without size (ISO 32000-2, 12.5.3)."""
    field = reference.get_object() if reference is not None else None
    if field is None:
        return False
    places = [kid.get_object() for kid in field.get("/Kids", ())] or [field]
    return all(_is_out_of_sight(place) for place in places)


def _is_out_of_sight(place: Any) -> bool:
    flags = int(place.get("/F", 0) or 0)
    box = [float(v) for v in place.get("/Rect", ())]
    flat = len(box) == 4 and min(abs(box[2] - box[0]), abs(box[3] - box[1])) < 1
    return bool(flags & 2 or flags & 32) or flat
