import io
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.pdf import read as read_pdf
from opus_pipelines.intakes.requirements.rules import sentences_of


def test_pages_with_text_are_read_and_those_without_are_named(read: Any, pdf: Any) -> None:
    text, left_out = read("a.pdf", pdf("Verify cover.\nThen pay.", "", "Page three"))
    assert text == "Verify cover.\nThen pay.\n\n\f\n\n\fPage three"
    assert left_out.startswith("1 page (2) without a text layer")


def test_a_sentence_is_found_on_its_page(text_elements: Any, pdf: Any, read: Any) -> None:
    text, _ = read("a.pdf", pdf("Verify cover.\nThen pay.", "", "Close.\nNever pay twice."))
    (element,) = text_elements({"process": text})
    assert [(s.text, s.place) for s in sentences_of(element)] == [
        ("Verify cover.", "page 1, line 1"),
        ("Then pay.", "page 1, line 2"),
        ("Close.", "page 3, line 1"),
        ("Never pay twice.", "page 3, line 2"),
    ]


def test_letters_that_were_joined_are_letters(read: Any, pdf: Any) -> None:
    joined = b"<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [60 /fi /ffi] >>"
    data = pdf("veri<ed, o=ce").replace(b"/WinAnsiEncoding", joined)
    assert "\ufb01" in PdfReader(io.BytesIO(data)).pages[0].extract_text()
    assert read("a.pdf", data) == ("verified, office", None)


def test_pages_of_which_nothing_is_read_are_no_text(read: Any, pdf: Any) -> None:
    text, left_out = read("a.pdf", pdf("", ""))
    assert text is None
    assert left_out.startswith("2 pages without a text layer")


def test_the_fields_of_a_filled_form_are_read(read: Any, pdf: Any) -> None:
    form = "/AcroForm << /Fields [6 0 R] >> "
    field = "<< /FT /Tx /T (Name of holder) /V (Ann Smith) /Type /Annot /Subtype /Widget /Rect [0 0 9 9] >>"
    assert read("a.pdf", pdf("Form 7", extra=field, root=form)) == ("Form 7\n\nName of holder: Ann Smith", None)


def encrypted(data: Any, user: Any) -> Any:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user, "owner", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_password_is_asked_of_the_client_and_a_document_that_opens_without_one_is_read(read: Any, pdf: Any) -> None:
    text, left_out = read("a.pdf", encrypted(pdf("Secret"), "word"))
    assert (text, left_out.partition(";")[0]) == (None, "it is encrypted")
    assert read("a.pdf", encrypted(pdf("Open"), "")) == ("Open", None)


@pytest.mark.parametrize("data", [b"%PDF-1.7", b"%PDF-1.4\n1 0 obj\n<< >>\nendobj", b"hello"])
def test_a_broken_pdf_says_so(read: Any, data: Any) -> None:
    text, left_out = read("a.pdf", data)
    assert text is None
    assert left_out.startswith("the PDF is broken: ")


def test_attached_documents_are_counted(read: Any, pdf: Any) -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Letter"))))
    writer.add_attachment("a.txt", b"x")
    out = io.BytesIO()
    writer.write(out)
    text, left_out = read("a.pdf", out.getvalue())
    assert (text, left_out.partition(";")[0]) == ("Letter", "1 document attached to it")


@pytest.mark.long
def test_pages_past_the_limit_are_counted(read: Any, pdf: Any) -> None:
    text, left_out = read("a.pdf", pdf(*[f"Page {n}" for n in range(1, 504)]))
    assert text.endswith("\n\n\fPage 500")
    assert left_out == "the last 3 of 503 pages"


def test_operations_are_counted_over_the_whole_document(pdf: Any) -> None:
    document = Document.of_bytes("a.pdf", pdf(*["\n".join("abcde")] * 3))
    found = read_pdf(document, most_operations=20)
    assert (found.text, found.left_out) == ("a\nb\nc\nd\ne", ("the last 2 of 3 pages",))


def test_a_form_that_draws_itself_ends(read: Any, pdf: Any) -> None:
    resources = "/Resources << /XObject << /X 6 0 R >> >>"
    form = (
        f"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] {resources} /Length 12 >>\nstream\n/X Do /X Do \nendstream"
    )
    data = pdf("a) Tj ET /X Do BT (b", extra=form).replace(
        b"/Resources << /Font", b"/Resources << /XObject << /X 6 0 R >> /Font", 1
    )
    text, _ = read("a.pdf", data)
    assert text.split() == ["a", "b"]


def test_a_line_is_found_on_the_picture_of_its_page(pdf: Any) -> None:
    """The text begins 72 points below the top of 792, and a line is 14 points high."""
    found = read_pdf(Document.of_bytes("a.pdf", pdf("One\nTwo", "Three")))
    assert dict(found.places) == {0: "9 % down the page", 1: "11 % down the page", 3: "9 % down the page"}
