"""Colours, characters and styles, at the borders where a text begins to be seen."""

import pytest
from lxml import etree

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.visibility.html import Styles, View, on_screen, pixels, view_of
from opus_pipelines.intakes.visibility.unseen import (
    BLACK,
    COLOUR,
    SMALL,
    WHITE,
    Unseen,
    contrast,
    is_like,
    of_cmyk,
    of_hex,
    without_invisible,
)


@pytest.mark.parametrize(
    ("text", "background", "like"),
    [
        ("FFFFFF", "FFFFFF", True),
        ("F0F0F0", "FFFFFF", True),
        ("CCCCCC", "FFFFFF", False),
        ("FFFF00", "FFFFFF", False),
        ("111111", "000000", True),
        ("FFFFFF", "1F3864", False),
        ("203864", "1F3864", True),
    ],
)
def test_letters_are_seen_by_contrast_and_by_colour(text: str, background: str, like: bool) -> None:
    assert is_like(of_hex(text), of_hex(background)) is like


def test_contrast_is_that_of_wcag() -> None:
    assert contrast(BLACK, WHITE) == contrast(WHITE, BLACK) == pytest.approx(21)
    assert contrast(of_hex("777777"), WHITE) == pytest.approx(4.48, abs=0.01)
    assert (of_cmyk((0, 0, 0, 0)), of_cmyk((0, 0, 0, 1)), of_hex("xyz")) == (WHITE, BLACK, None)


@pytest.mark.parametrize(
    ("text", "left", "notes"),
    [
        ("plain", "plain", 0),
        ("soft\u00adhyphen", "softhyphen", 0),
        ("\ufeffbegins and ends\u200b.", "begins and ends.", 0),
        ("must n\u200bot be paid\nnext", "\nnext", 1),
        ("می\u200cخواهم", "می\u200cخواهم", 0),
        ("👨\u200d👩 is paid", "👨\u200d👩 is paid", 0),
        ("a" + "".join(chr(0xE0000 + ord(c)) for c in "pay twice"), "a", 1),
        ("\u202eyap\u202c", "", 1),
    ],
)
def test_characters_that_nobody_sees(text: str, left: str, notes: int) -> None:
    unseen = Unseen()
    assert (without_invisible(text, unseen), len(unseen.notes)) == (left, notes)
    assert without_invisible(left, Unseen()) == left


def test_split_words_are_whole_where_they_are_read() -> None:
    assert without_invisible("n\u200bot", Unseen(["split_words"])) == "not"


def view(page: str) -> tuple[str | None, str | None]:
    """Why nobody sees the element with the id `x`: its whole subtree, and its own text."""
    root = etree.HTML(page)
    styles = Styles(root)
    seen = View()
    for element in root.iter(etree.Element):
        seen, gone = view_of(element, seen, styles)
        if element.get("id") == "x":
            return gone, seen.reason
    raise AssertionError


@pytest.mark.parametrize(
    "sheet",
    [
        "@media print {#x{display:none}}",
        "@media (max-width: 600px) {#x{display:none}}",
        "#x{display:none} p#x{display:block}",
        "#x{display:block!important} p#x.y{display:none}",
        "#x::before{display:none}",
        "#x:hover{display:none}",
        "#x{color:white;background:#1f3864}",
        "#x{color:#ff0}",
        "#x{font-size:9px;opacity:.6}",
        "#x{text-indent:-20px;left:-9999px}",
        "#x{font:12px/1.5 serif}",
        "#x{broken",
        "",
    ],
)
def test_controls_that_only_look_like_hiding_are_seen(sheet: str) -> None:
    assert view(f"<style>{sheet}</style><p id=x class=y>text</p>") == (None, None)


@pytest.mark.parametrize(
    ("sheet", "reason"),
    [
        ("#x{color:rgb(255 255 255 / 90%)}", COLOUR),
        ("body{background:#000} #x{color:#0a0a0a}", COLOUR),
        ("#x{font:1px serif}", SMALL),
        ("body{font-size:2px} #x{font-size:1em}", SMALL),
    ],
)
def test_what_is_inherited_hides_as_well(sheet: str, reason: str) -> None:
    assert view(f"<style>{sheet}</style><p id=x>text</p>") == (None, reason)


def test_a_sheet_with_more_rules_than_can_be_followed_is_refused() -> None:
    page = etree.HTML(f"<style>{'p{color:red}' * 40}</style>{'<p>x</p>' * 10}")
    with pytest.raises(InputError, match="style sheets"):
        Styles(page, most_work=500)
    assert Styles(page, most_work=1_000).of(page.find(".//p")) == {"color": "red"}


@pytest.mark.parametrize(("query", "holds"), [("", True), ("screen", True), ("print", False), ("print, screen", True)])
def test_media_queries_are_those_of_a_screen(query: str, holds: bool) -> None:
    assert on_screen(query) is holds


@pytest.mark.parametrize(("value", "length"), [("-9999px", -9999), ("1in", 96), ("50%", 640), ("auto", None)])
def test_lengths_become_pixels(value: str, length: float | None) -> None:
    assert pixels(value) == length
