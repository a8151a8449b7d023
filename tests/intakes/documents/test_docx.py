from collections.abc import Callable
from typing import Any

import docx
import pytest

W = b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>%s</w:body></w:document>'


@pytest.fixture
def made(saved: Callable[..., Any], repacked: Callable[..., Any]) -> Any:
    """A DOCX whose body is this XML."""
    return lambda body: repacked(saved(docx.Document()), {"word/document.xml": W % body})


def test_a_document_reads_in_order_with_its_tables(read: Callable[..., Any], saved: Callable[..., Any]) -> None:
    document = docx.Document()
    document.add_heading("Claims", 0)
    document.add_heading("Glass", 2)
    document.add_paragraph("Verify cover\tfirst.")
    for item in ("One", "Two"):
        document.add_paragraph(item, style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(
        (c for row in table.rows for c in row.cells), ("Limit", "USD", "Glass\nonly", "500"), strict=True
    ):
        cell.text = text
    paragraph = document.add_paragraph("Seen. ")
    paragraph.add_run("Secret.").font.hidden = True
    document.sections[0].header.paragraphs[0].text = "Acme"
    text, left_out = read("a.docx", saved(document))
    assert text == (
        "# Claims\n\n## Glass\n\nVerify cover first.\n\n- One\n- Two\n\nLimit | USD\nGlass only | 500\n\nSeen."
    )
    hidden, heads = left_out.split("; ")
    assert '"Secret."' in hidden
    assert "headers" in heads


def test_insertions_content_controls_and_text_boxes_are_read_deletions_are_not(
    read: Callable[..., Any], made: Callable[..., Any]
) -> None:
    body = (
        b"<w:p><w:r><w:t>Pay </w:t></w:r><w:del><w:r><w:delText>never</w:delText></w:r></w:del>"
        b"<w:ins><w:r><w:t>within 3 days</w:t></w:r></w:ins></w:p>"
        b"<w:sdt><w:sdtContent><w:p><w:r><w:t>Controlled</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        b"<w:p><w:r><w:t>Around</w:t><w:pict><w:txbxContent><w:p><w:r><w:t>Boxed</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>"
    )
    assert read("a.docx", made(body)) == ("Pay within 3 days\n\nControlled\n\nBoxed\n\nAround", "1 deleted passage")


def test_a_table_in_a_table_stays_in_its_cell(read: Callable[..., Any], made: Callable[..., Any]) -> None:
    cell = b"<w:tbl><w:tr><w:tc>%s</w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    assert read("a.docx", made(cell % (cell % b"<w:p><w:r><w:t>a</w:t></w:r></w:p>"))) == ("a b | b", None)


def test_macros_and_comments_are_named_and_left(
    read: Callable[..., Any], saved: Callable[..., Any], repacked: Callable[..., Any]
) -> None:
    data = repacked(saved(docx.Document()), {"word/vbaProject.bin": b"x", "word/comments.xml": b"<a/>"})
    text, left_out = read("a.docm", data)
    assert (text, [note.split()[-1] for note in left_out.split("; ")]) == ("", ["run", "margin"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<w:p>", "it is broken, or nothing its reader can follow (XMLSyntaxError"),
        (b"<w:sdt>" * 400, "it is broken, or nothing its reader can follow (XMLSyntaxError: Excessive depth"),
    ],
)
def test_broken_xml_in_a_document_is_a_reason(
    read: Callable[..., Any], made: Callable[..., Any], body: bytes, reason: str
) -> None:
    text, left_out = read("a.docx", made(body))
    assert text is None
    assert left_out.startswith(reason)


def test_a_long_document_is_ended_at_the_limit(read: Callable[..., Any], made: Callable[..., Any]) -> None:
    text, left_out = read("a.docx", made(b"<w:p><w:r><w:t>%s</w:t></w:r></w:p>" % (b"word " * 1_000) * 100))
    assert len(text) == 399_998
    assert left_out == "what stands after its first 399,998 characters"
