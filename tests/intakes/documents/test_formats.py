from collections.abc import Callable
from typing import Any

import docx
import pytest

from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.formats import PREPROCESSING, format_of, preprocess
from tests.distributions import Install

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(64)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.MP3", b"ID3", "no audio encoder: what is said is not read; put a transcript beside it"),
        (
            "a.mp4",
            b"\0\0\0\x18ftypisom",
            "no video encoder: what it shows is not read; put a description or a transcript beside it",
        ),
        ("a.doc", OLE, "it is an old binary Word document; save it as .docx"),
        ("a.xls", OLE, "it is an old binary Excel workbook; save it as .xlsx"),
        ("a.ppt", OLE, "it is an old binary PowerPoint presentation; save it as .pptx"),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "it is encrypted; ask for a copy without a password"),
        (
            "a.docx",
            OLE,
            "named .docx, but its content is ole: taken as that; "
            "it is an old binary Office document; save it as .docx, .xlsx or .pptx",
        ),
        ("a.zip", b"PK\x03\x04", "it is an archive; put the documents in it into the folder"),
        (
            "a.txt",
            b"\x1f\x8b\x08",
            "named .txt, but its content is gz: taken as that; it is an archive; put the documents in "
            "it into the folder",
        ),
        ("a.msg", OLE, "it is an Outlook message; save it as .eml"),
    ],
)
def test_what_is_not_read_says_what_is_missing_and_what_to_do(
    read: Callable[..., Any], name: str, data: bytes, reason: str
) -> None:
    assert read(name, data) == (None, reason)


def test_an_unknown_suffix_lists_the_known_ones(read: Callable[..., Any]) -> None:
    text, left_out = read("a.foo", b"text")
    assert text is None
    assert left_out.startswith("no reader for .foo; known: .csv, .docm")
    assert read("README", b"text")[1].startswith("no reader for files without a suffix")


def test_content_that_is_plainly_another_format_is_read_as_that(
    read: Callable[..., Any], saved: Callable[..., Any], pdf: Callable[..., Any]
) -> None:
    document = docx.Document()
    document.add_paragraph("Hello")
    note = "named {}, but its content is {}: taken as that"
    assert read("a.txt", saved(document)) == ("Hello", note.format(".txt", "docx"))
    assert read("a.docx", pdf("Hello")) == ("Hello", note.format(".docx", "pdf"))
    assert read("scan", pdf("Hello")) == ("Hello", note.format("without a suffix", "pdf"))


def test_every_modality_of_the_paper_has_a_preprocessing() -> None:
    assert sorted(PREPROCESSING) == ["audio", "image", "text", "video"]
    assert [
        format_of(Document.of_bytes(name, b""))[0].modality for name in ("a.pdf", "a.jpeg", "a.wav", "a.mov", "a.zip")
    ] == [
        "text",
        "image",
        "audio",
        "video",
        "other",
    ]


def test_whatever_a_library_raises_becomes_a_reason_that_is_the_same_each_time(install: Install) -> None:
    code = """def read(document):
    raise KeyError(f"{object()!r} at\\n0x7f00deadbeef {'x' * 500}")"""
    install("failing", "[opus_pipelines.document_readers]\nfails = failing:read\n", code)
    _, reading = preprocess(Document.of_bytes("a.fails", b"x"))
    assert reading.text is None
    assert "(KeyError: 'it at" in reading.left_out[0]
    assert "0x" not in reading.left_out[0]
    assert len(reading.left_out[0]) < 280
