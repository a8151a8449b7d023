from typing import Any

import pptx
from pptx.util import Inches


def test_slides_read_title_first_with_tables_groups_and_notes(read: Any, saved: Any, repacked: Any) -> None:
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "How we pay"
    first.placeholders[1].text = "Check\nPay"
    grouped = first.shapes.add_group_shape().shapes.add_textbox(0, 0, Inches(1), Inches(1))
    grouped.text_frame.text = "In a group"
    table = first.shapes.add_table(1, 2, 0, 0, Inches(1), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "glass", "500"
    first.notes_slide.notes_text_frame.text = "Never without approval."
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Not shown"
    hidden.element.set("show", "0")
    wanted = "# How we pay\n\n- Check\n- Pay\n\nIn a group\n\nglass | 500\n\nNever without approval."
    assert read("a.pptx", saved(deck)) == (wanted, "1 hidden slide")
    assert read("a.pptm", repacked(saved(deck), {"ppt/vbaProject.bin": b"x"})) == (
        wanted,
        "1 hidden slide; macros, which are never run",
    )


def test_a_deck_without_slides_is_empty(read: Any, saved: Any) -> None:
    assert read("a.pptx", saved(pptx.Presentation())) == ("", "it holds no text")
