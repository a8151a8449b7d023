import io
import random
import zipfile
from typing import Any

import docx
import pytest


def packed(*parts: Any, encrypted: bool = False) -> Any:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts:
            package.writestr(name, data)
    data = bytearray(out.getvalue())
    if encrypted:  # the flag in the list of contents
        data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


TYPES = ("[Content_Types].xml", '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>')


# Each is packed when its test asks for it: to pack all takes a second of every worker that collects the tests.
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lambda: packed(TYPES, ("word/a.bin", b"\0" * 2_000_000)), "that is a zip bomb, not a document"),
        (
            lambda: packed(TYPES, *((f"word/{n}", b"") for n in range(5_001))),
            "it holds 5,002 files, more than the 5,000 that are opened",
        ),
        (  # repeats too far apart for zip to see
            lambda: packed(TYPES, ("word/document.xml", random.Random(0).randbytes(170_000) * 100)),
            "17,000,000 bytes of XML in it are more than the 16 MiB",
        ),
        (
            lambda: packed(TYPES, ("word/document.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')),
            "it declares a document type",
        ),
        (
            lambda: packed(TYPES, ("word/document.xml", "<!DOCTYPE a><a/>".encode("utf-16"))),
            "it declares a document type",
        ),
        (lambda: packed(("word/document.xml", "<a/>")), "it is a zip archive, but no Office document"),
        (
            lambda: packed(TYPES, ("word/document.xml", "<a/>"), encrypted=True),
            "it is encrypted; ask for a copy without a password",
        ),
        (lambda: b"PK\x03\x04 and nothing more", "it is broken: File is not a zip file"),
        (lambda: b"", "it is empty: a file without a byte"),
        (lambda: packed(TYPES, ("word/document.xml", "<a/>")), "it is a package without a document in it"),
    ],
)
def test_a_package_is_looked_at_before_it_is_opened(read: Any, data: Any, reason: Any) -> None:
    text, left_out = read("a.docx", data())
    assert text is None
    assert reason in left_out


def test_a_package_that_was_cut_off_says_so(read: Any, saved: Any) -> None:
    data = saved(docx.Document())
    text, left_out = read("a.docx", data[: len(data) // 2])
    assert (text, left_out.partition(":")[0]) == (None, "it is broken")


def test_a_package_that_lies_about_its_sizes_fails_while_it_is_read(read: Any) -> None:
    data = packed(TYPES, ("word/document.xml", b"<a>" + b"x" * 100_000))
    lied = data.replace((100_003).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    text, left_out = read("a.docx", lied)
    assert text is None
    assert left_out.startswith("it is broken: Bad CRC-32")
