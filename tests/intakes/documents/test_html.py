from collections.abc import Callable
from typing import Any

import pytest

PAGE = """<!DOCTYPE html><html><head><title>Glass &amp; more</title><style>p { color: red }</style></head><body>
<h2>How  it is done</h2><p>Check the <b>cover</b>.<br>Then pay.</p><script>steal()</script><!-- not seen --><noscript>old</noscript>
<div style="DISPLAY : none">hidden rule</div><p hidden>also</p><ul><li>one<li>two</ul>
<table><tr><th>item<th>usd<tr><td><p>glass</p><td>12</table>
<img src="http://x.example/a.png"><form>Name <input value="Ann"></form></body></html>"""


def test_a_page_reads_as_it_is_seen(read: Callable[..., Any]) -> None:
    text, left_out = read("a.html", PAGE)
    assert text == (
        "# Glass & more\n\n## How it is done\n\nCheck the cover.\nThen pay.\n\n- one\n- two\n\nitem "
        "| usd\nglass | 12\n\nName Ann"
    )
    *counts, hidden = left_out.split("; ")
    assert counts == ["1 comment", "1 picture", "1 script", "1 style sheet", "1 text for browsers without scripts"]
    assert hidden.startswith("2 ")
    assert hidden.endswith('("hidden rule", "also")')


def test_the_encoding_that_a_page_states_is_followed(read: Callable[..., Any]) -> None:
    assert read("a.htm", '<meta charset="iso-8859-2"><p>ł'.encode("iso8859-2")) == ("ł", None)


@pytest.mark.parametrize(
    ("data", "text", "left_out"),
    [
        ("", None, "it is empty: a file without a byte"),
        ("   ", "", "it holds no text"),
        ("just words", "just words", None),
        ("<p>a<script>b", "a", "1 script"),
        ("<div>" * 100_000 + "x", None, "the HTML is nested too deeply"),
        (
            "<p " + " ".join(f"a{n}=1" for n in range(30_000)) + ">x",
            None,
            "a tag in it has more than 20,000 attributes",
        ),
        ("<p>" + "word " * 90_000 + "<p>last", "words", "what stands after its first 399,999 characters"),
    ],
)
def test_pages_at_their_limits(read: Callable[..., Any], data: str, text: str | None, left_out: str | None) -> None:
    found, said = read("a.html", data)
    assert said == left_out
    assert (found or "")[:5].strip() == (text or "")[:4] if text == "words" else found == text


def test_styles_that_only_look_like_hiding_do_not_hide(read: Callable[..., Any]) -> None:
    page = '<p style="opacity:0.8">a</p><p style="font-size: 0.5em">b</p><p style="opacity:0">c</p>'
    text, left_out = read("a.html", page)
    assert (text, left_out[-5:]) == ("a\n\nb", '("c")')
