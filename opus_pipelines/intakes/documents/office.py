"""What Word, Excel and PowerPoint share: their packages, opened within limits, and the colours of their themes."""

import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MAX_RATIO,
    MAX_SHEET_BYTES,
    MAX_UNPACKED_BYTES,
    MIB,
    PARTIAL,
    Document,
)
from opus_pipelines.intakes.visibility.unseen import BLACK, WHITE, Colour, Unseen, of_hex, tinted

DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
THEME = (
    "lt1",
    "dk1",
    "lt2",
    "dk2",
    "accent1",
    "accent2",
    "accent3",
    "accent4",
    "accent5",
    "accent6",
    "hlink",
    "folHlink",
)
_SAME = {
    "bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2", "background1": "lt1", "text1": "dk1", "background2": "lt2",
    "text2": "dk2", "light1": "lt1", "dark1": "dk1", "light2": "lt2", "dark2": "dk2", "hyperlink": "hlink",
    "followedHyperlink": "folHlink",
}  # fmt: skip
_NAMED = {
    "white": WHITE, "black": BLACK, "yellow": (1, 1, 0), "green": (0, 1, 0), "cyan": (0, 1, 1), "magenta": (1, 0, 1),
    "blue": (0, 0, 1), "red": (1, 0, 0), "darkBlue": (0, 0, 0.5), "darkCyan": (0, 0.5, 0.5), "darkGreen": (0, 0.5, 0),
    "darkMagenta": (0.5, 0, 0.5), "darkRed": (0.5, 0, 0), "darkYellow": (0.5, 0.5, 0), "darkGray": (0.5, 0.5, 0.5),
    "lightGray": (0.75, 0.75, 0.75), "gray": (0.5, 0.5, 0.5), "silver": (0.75, 0.75, 0.75),
}  # fmt: skip
Theme = Mapping[str, Colour]


def theme_of(root: Any) -> dict[str, Colour]:
    """Returns the colours of a theme part, by their names (`lt1`, `dk1`, ...), black on white where it has none."""
    found: dict[str, Colour] = {"lt1": WHITE, "dk1": BLACK, "lt2": WHITE, "dk2": BLACK}
    scheme = next(iter(root.iter(DRAWING + "clrScheme")), None) if root is not None else None
    for entry in scheme if scheme is not None else ():
        if isinstance(entry.tag, str) and len(entry):
            colour = of_hex(entry[0].get("lastClr") or entry[0].get("val"))
            if colour is not None:
                found[entry.tag.removeprefix(DRAWING)] = colour
    return found


def named(name: str | None, theme: Theme) -> Colour | None:
    """Returns a colour by a name of a theme or of a highlight, or by six hexadecimal digits; None for any other."""
    if not name:
        return None
    return theme.get(_SAME.get(name, name)) or _NAMED.get(name) or of_hex(name)


def drawn(fill: Any, theme: Theme) -> tuple[Colour, float] | None:
    """Returns colour and opacity of an element of DrawingML that holds a colour (`a:solidFill`), or None."""
    for choice in fill:
        if not isinstance(choice.tag, str):
            continue
        colour = named(choice.get("lastClr") or choice.get("val"), theme)
        if choice.tag == DRAWING + "scrgbClr":
            red, green, blue = (_share(choice.get(c)) for c in "rgb")
            colour = (red, green, blue)
        if colour is None:
            return None
        alpha = 1.0
        for change in choice:
            kind, share = str(change.tag).removeprefix(DRAWING), _share(change.get("val"))
            if kind == "alpha":
                alpha = share
            elif kind == "lumMod":
                colour = tinted(colour, share - 1)
            elif kind in ("lumOff", "tint"):
                colour = tinted(colour, share if kind == "lumOff" else 1 - share)
            elif kind == "shade":
                colour = tinted(colour, share - 1)
        return colour, alpha
    return None


def _share(text: str | None) -> float:
    match = re.fullmatch(r"(-?\d+)(%?)", text or "")
    return min(1.0, max(0.0, int(match[1]) / (100 if match[2] else 100_000))) if match else 0.0


class EmbeddedPictures:
    """Reads the pictures inside an Office document by OCR, where it is installed, up to the document's most.

    `read`: how many were. `notes`: those of which a part was not read, or not surely.
    """

    def __init__(self, document: Document, unseen: Unseen) -> None:
        self._most, self._unseen = document.most_scanned, unseen
        self.read, self.notes = 0, list[str]()

    def text(self, content: bytes | None) -> str:
        """Returns the text that a picture shows; "" where it shows none or is not read."""
        from PIL import Image  # here, because only pictures need what it loads

        from opus_pipelines.intakes.documents import pictures

        if content is None or self.read >= self._most or not pictures.is_there():
            return ""
        self.read += 1
        try:
            with Image.open(BytesIO(content)) as picture:
                found = pictures.page_of(picture, self._unseen)
        except Exception:  # a form that Pillow lacks, or one too large, costs no text of the document
            return ""
        partial = [f"picture {self.read}: {PARTIAL}"] if found.is_partial else []
        self.notes += partial or pictures.unsure(self.read, found.confidence, "picture")
        return found.text


_DECLARES = re.compile(rb"<!(DOCTYPE|ENTITY)")
SHEET = re.compile(r"xl/worksheets/[^/]+\.xml$")


def open_package(document: Document) -> tuple[BytesIO, list[str]]:
    """Returns the package's bytes and the names of its parts.

    Raises InputError where it is no package, unpacks to too much, is encrypted, or declares a document type.
    """
    data = document.content()
    try:
        with zipfile.ZipFile(BytesIO(data)) as package:
            parts = package.infolist()
            _refuse_bombs(parts)
            if "[Content_Types].xml" not in package.namelist():
                raise InputError("it is a zip archive, but no Office document")
            for part in parts:
                if part.filename.lower().endswith((".xml", ".rels", ".vml")):
                    _refuse_doctype(package, part)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        raise InputError(f"it is broken: {' '.join(str(error).split())[:200]}") from None
    return BytesIO(data), sorted(part.filename for part in parts)


def _refuse_bombs(parts: list[zipfile.ZipInfo]) -> None:
    """Refuses an archive whose list of contents states too many or too large files.

    An archive with a false list fails while it is read, because no more than the stated size is unpacked.
    """
    if len(parts) > MAX_PARTS:
        raise InputError(f"it holds {len(parts):,} files, more than the {MAX_PARTS:,} that are opened")
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MAX_UNPACKED_BYTES:
        raise InputError(
            f"unpacked it would take {unpacked:,} bytes, more than the {MAX_UNPACKED_BYTES // MIB} MiB allowed"
        )
    for part in parts:
        if part.flag_bits & 1:
            raise InputError("it is encrypted; ask for a copy without a password")
        if part.file_size > MIB and part.file_size > MAX_RATIO * part.compress_size:
            raise InputError(
                f"{part.file_size:,} bytes of it are packed into {part.compress_size:,}: "
                "that is a zip bomb, not a document"
            )
        limit = MAX_SHEET_BYTES if SHEET.match(part.filename) else MAX_PART_BYTES
        if part.filename.lower().endswith((".xml", ".rels")) and part.file_size > limit:
            raise InputError(
                f"{part.file_size:,} bytes of XML in it are more than the {limit // MIB} MiB that are read; split it"
            )


def _refuse_doctype(package: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Refuses a part with a document type: Office parts have none, and entity bombs need one."""
    last = b""
    with package.open(part) as file:
        while chunk := file.read(MIB):
            plain = (last + chunk).replace(b"\0", b"")  # in UTF-16 every other byte
            if _DECLARES.search(plain):
                raise InputError("it declares a document type, which no Office document needs and entity bombs do")
            last = chunk[-32:]
