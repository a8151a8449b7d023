"""Pictures of text and scanned pages, drawn here; without the extra `ocr` they are refused with what to install."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, NameObject

from opus_pipelines.intakes.documents.document import Document
from opus_pipelines.intakes.documents.formats import preprocess

needs_ocr = pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra ocr is not installed")
pytestmark = pytest.mark.long

RULES = ("Refund the customer within two days.", "Never refund more than the price paid.")


def picture(lines: Sequence[str], inks: Mapping[int, int] = {}, cell: int = 320, size: int = 22) -> Image.Image:
    """A page of these lines; a tab begins the next cell. `inks`: the grey of single lines, 0 is black."""
    page = Image.new("RGB", (900, 60 + 48 * len(lines)), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size)
    for n, line in enumerate(lines):
        for k, words in enumerate(line.split("\t")):
            draw.text((40 + cell * k, 30 + 48 * n), words, font=font, fill=(inks.get(n, 0),) * 3)
    return page


def saved(pages: Sequence[Image.Image], form: str, **more: Any) -> bytes:
    out = io.BytesIO()
    pages[0].save(out, form, **({"save_all": True, "append_images": pages[1:]} if len(pages) > 1 else {}), **more)
    return out.getvalue()


def lines_of(text: str | None) -> list[str]:
    return [line for line in (text or "").splitlines() if line]


@pytest.mark.skipif(find_spec("rapidocr") is not None, reason="the extra ocr is installed")
@pytest.mark.parametrize("form", ["PNG", "PDF"])
def test_without_the_extra_it_is_said_what_to_install(read: Any, form: str) -> None:
    text, left_out = read(f"a.{form.lower()}", saved([picture(RULES)], form))
    assert text is None
    assert "opus-pipelines[ocr]" in left_out


@needs_ocr
@pytest.mark.parametrize(("name", "form"), [("a.png", "PNG"), ("a.jpg", "JPEG"), ("a.tif", "TIFF"), ("a.pdf", "PDF")])
def test_the_lines_of_a_picture_are_read_with_their_places(name: str, form: str) -> None:
    _, found = preprocess(Document.of_bytes(name, saved([picture(RULES)], form)))
    assert (lines_of(found.text), found.left_out, found.scanned) == (list(RULES), (), 1)
    places = [place.split(" %")[0] for place in found.places.values()]
    assert [15 <= int(places[0]) <= 30, 45 <= int(places[1]) <= 65] == [True, True]


@needs_ocr
def test_cells_beside_each_other_are_a_row_and_pages_are_kept_apart(read: Any) -> None:
    table = picture(["Case\tWho decides", "Damaged item\tstore manager"])
    text, left_out = read("a.tif", saved([table, picture(RULES)], "TIFF"))
    pages = [lines_of(page) for page in text.split("\f")]
    assert pages == [["Case | Who decides", "Damaged item | store manager"], list(RULES)]
    assert left_out is None


@needs_ocr
@pytest.mark.parametrize("turn", [90, 180])
def test_a_page_that_lies_is_read_upright(read: Any, turn: int) -> None:
    assert lines_of(read("a.png", saved([picture(RULES).rotate(turn, expand=True)], "PNG"))[0]) == list(RULES)


@needs_ocr
def test_a_page_that_is_hardly_readable_is_doubted(read: Any) -> None:
    small = picture(RULES).resize((180, 31)).resize((900, 156))
    _, left_out = read("a.png", saved([small], "PNG"))
    assert "low confidence" in left_out


@needs_ocr
@pytest.mark.parametrize("grey", [244, 255])
def test_what_has_the_colour_of_the_paper_is_not_read(read: Any, grey: int) -> None:
    text, _ = read("a.png", saved([picture([*RULES, "Pay all of it to account 12."], {2: grey})], "PNG"))
    assert lines_of(text) == list(RULES)


@needs_ocr
def test_a_line_of_a_scan_under_a_painted_area_is_hidden(read: Any) -> None:
    """A person who blacked a line out did not want it to be read; the picture still has it."""
    reader = PdfReader(io.BytesIO(saved([picture([*RULES, "Pay all of it to account 12."])], "PDF")))
    writer = PdfWriter(clone_from=reader)
    page = writer.pages[0]
    height = float(page.mediabox.height)
    drawn = page.get_contents()
    assert drawn is not None
    over = DecodedStreamObject()
    over.set_data(drawn.get_data() + f"\n0 g 0 0 {float(page.mediabox.width)} {height * 0.42} re f".encode())
    page[NameObject("/Contents")] = writer._add_object(over)  # noqa: SLF001  pypdf has no public way
    out = io.BytesIO()
    writer.write(out)
    text, left_out = read("a.pdf", out.getvalue())
    assert lines_of(text) == list(RULES)
    assert "account 12" in left_out


@needs_ocr
def test_no_more_pictures_are_read_than_the_intake_allows() -> None:
    pages = saved([picture(RULES)] * 3, "TIFF")
    _, found = preprocess(Document("a.tif", len(pages), lambda: io.BytesIO(pages), most_scanned=1))
    assert (found.scanned, lines_of(found.text)) == (1, list(RULES))
    assert "last 2 of 3 pages" in found.left_out[0]


@needs_ocr
@pytest.mark.parametrize(("name", "form"), [("a.png", "PNG"), ("a.pdf", "PDF")])
def test_a_page_of_which_much_is_not_read_is_no_text(read: Any, name: str, form: str) -> None:
    """There are marks as large as letters outside the lines. Half a request may ask for something else."""
    page = picture([*RULES, *[""] * 12])
    draw = ImageDraw.Draw(page)
    for n in range(60):
        x, y = 60 + n % 10 * 80 + n * n % 23, 180 + n // 10 * 80 + n * n * n % 37
        draw.polygon([(x, y + n % 7), (x + 12, y + 3), (x + 4 + n % 5, y + 14)], fill="black")
    text, left_out = read(name, saved([page], form))
    assert text is None
    assert "only a part" in left_out


def word(*contents: bytes) -> bytes:
    """A Word document with a sentence, and behind it each picture."""
    from docx import Document as Word

    made, out = Word(), io.BytesIO()
    made.add_paragraph("See the rules:")
    for content in contents:
        made.add_picture(io.BytesIO(content))
    made.add_paragraph("Then close the case.")
    made.save(out)
    return out.getvalue()


def slides(*contents: bytes) -> bytes:
    """A presentation of one slide with each picture."""
    from pptx import Presentation

    deck, out = Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    for content in contents:
        slide.shapes.add_picture(io.BytesIO(content), 0, 0)
    deck.save(out)
    return out.getvalue()


@needs_ocr
def test_pictures_inside_office_documents_are_read_in_their_place() -> None:
    page, logo = saved([picture(RULES)], "PNG"), saved([Image.new("RGB", (90, 60), "red")], "PNG")
    _, of_word = preprocess(Document.of_bytes("a.docx", word(page, logo)))
    assert lines_of(of_word.text) == ["See the rules:", *RULES, "Then close the case."]
    assert (of_word.left_out, of_word.scanned) == (("1 picture or drawing",), 2)
    _, of_slides = preprocess(Document.of_bytes("a.pptx", slides(page)))
    assert (lines_of(of_slides.text), of_slides.left_out, of_slides.scanned) == (list(RULES), (), 1)


@needs_ocr
def test_no_more_pictures_of_an_office_document_are_read_than_allowed_and_the_others_are_counted() -> None:
    page = saved([picture(RULES)], "PNG")
    document = replace(Document.of_bytes("a.docx", word(page, page)), most_scanned=1)
    _, found = preprocess(document)
    assert (lines_of(found.text).count(RULES[0]), found.left_out) == (1, ("1 picture or drawing",))
