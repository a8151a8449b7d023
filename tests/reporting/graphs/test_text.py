import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.reporting.graphs.model import clean, shorten, width, wrap

WRAPPED = ["one two three four", "five six seven eight", "nine ten eleven twe…"]


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("Check\n invoice\t now", "Check invoice now"),
        ("a\x00b\x1b[31m\ud800\ufffe", "a b [31m"),
        ("pay\u202egnp.exe\u2066", "pay gnp.exe"),
        (" \u200e ", "–"),
        ("", "–"),
        ("تسجيل", "تسجيل"),
    ],
)
def test_clean_leaves_one_line_that_xml_may_hold(given_text: str, expected: str) -> None:
    assert clean(given_text) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Register Claim", ["Register Claim"]),
        ("Check receipts against policy", ["Check receipts", "against policy"]),
        ("internal_check_username_exist", ["internal_check_", "username_exist"]),
        ("getHubspotMessageFromQueue", ["getHubspotMessage", "FromQueue"]),
        ("Überweisungsträgerverarbeitung", ["Überweisungsträger", "verarbeitung"]),
        ("one two three four five six seven eight nine ten eleven twelve thirteen", WRAPPED),
    ],
)
def test_wrap_breaks_where_a_person_would(title: str, expected: list[str]) -> None:
    assert wrap(title, 12.0, 130.0, 3) == expected


def test_marks_take_no_width_and_wide_letters_take_more() -> None:
    assert width("e\u0301", 10) == width("e", 10)
    assert width("請求", 10) == 21.0


@given(st.text(max_size=120), st.integers(1, 4))
def test_no_line_is_wider_than_the_box(title: str, lines: int) -> None:
    found = wrap(title, 12.0, 130.0, lines)
    assert 1 <= len(found) <= lines
    assert all(width(line, 12.0) <= 130.0 for line in found)
    assert width(shorten(title, 11.0, 60.0), 11.0) <= 60.0
