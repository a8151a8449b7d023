"""Checks that an Office package, a zip archive, is safe to open, before any library unpacks it."""

import re
import zipfile
from io import BytesIO

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.limits import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MAX_RATIO,
    MAX_SHEET_BYTES,
    MAX_UNPACKED_BYTES,
    MIB,
)

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
