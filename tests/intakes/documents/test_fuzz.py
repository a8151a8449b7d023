"""Any bytes under any name give text or a reason, never an exception, within the limits."""

from collections.abc import Callable
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.intakes.documents.document import MAX_CHARACTERS, Document
from opus_pipelines.intakes.documents.formats import FORMATS, preprocess

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
STARTS = (b"", b"%PDF-1.4\n", b"PK\x03\x04", b"<html>", b"<a>", b"Subject: x\n\n", b'{"a":', b"\xff\xfe", OLE)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=SLOW)


def reads(name: str, data: bytes) -> None:
    kind, reading = preprocess(Document.of_bytes(name, data))
    assert kind.modality in {"text", "image", "audio", "video", "other"}
    assert reading.text is not None or any(reading.left_out)
    assert len(reading.text or "") <= MAX_CHARACTERS
    "".join([reading.text or "", *reading.left_out]).encode()  # can be stored


@SETTINGS
@given(st.sampled_from(sorted(FORMATS)), st.sampled_from(STARTS), st.binary(max_size=300))
def test_any_bytes(suffix: str, start: bytes, data: bytes) -> None:
    reads(f"a{suffix}", start + data)


@SETTINGS
@given(
    st.sampled_from([".txt", ".html", ".xml", ".json", ".jsonl", ".csv", ".eml"]),
    st.text(alphabet=st.characters(), max_size=200),
)
def test_any_text(suffix: str, text: str) -> None:
    reads(f"a{suffix}", text.encode("utf-8", "surrogatepass"))


@SETTINGS
@given(
    st.text(alphabet='<>/"=& ;!-[]{}:,\n\\abhpl?;_tr', max_size=200),
    st.sampled_from([".html", ".xml", ".json", ".csv", ".eml"]),
)
def test_any_markup(text: str, suffix: str) -> None:
    reads(f"a{suffix}", text.encode())


@pytest.fixture(scope="module")
def whole(saved: Callable[..., Any], pdf: Callable[..., Any], mail: Callable[..., Any]) -> Any:
    book, deck, document = openpyxl.Workbook(), pptx.Presentation(), docx.Document()
    book.active.append(["a", 1])
    deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = "A"
    document.add_paragraph("A")
    return {
        ".docx": saved(document),
        ".xlsx": saved(book),
        ".pptx": saved(deck),
        ".pdf": pdf("One", "Two"),
        ".eml": mail(html="<p>x</p>", attachments=[("a.pdf", pdf("A"))]),
    }


@SETTINGS
@given(st.sampled_from([".docx", ".xlsx", ".pptx", ".pdf", ".pdf", ".eml", ".eml"]), st.data())
def test_any_damage_to_a_whole_document(whole: dict[str, Any], suffix: str, data: Any) -> None:
    document = bytearray(whole[suffix])
    for _ in range(data.draw(st.integers(1, 8))):
        document[data.draw(st.integers(0, len(document) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(len(document) // 2, len(document))) if data.draw(st.booleans()) else None
    reads(f"a{suffix}", bytes(document[:end]))
