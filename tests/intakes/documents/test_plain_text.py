from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.intakes.documents.document import decode

CP1252 = "its encoding is not UTF-8 and not stated: read as Windows-1252"


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ("é".encode(), "é", None),
        ("é".encode("cp1252"), "é", CP1252),
        ("é".encode("utf-16"), "é", None),
        ("é".encode("utf-32"), "é", None),
        (b"\xef\xbb\xbfa\r\nb\rc", "a\nb\nc", None),
        ("Glass.".encode("utf-16-le"), "Glass.", None),
        ("Glass.".encode("utf-16-be"), "Glass.", None),
        (b"", "", None),
    ],
)
def test_text_is_decoded_by_its_bytes(data: Any, text: Any, note: Any) -> None:
    assert decode(data) == (text, note)


def test_a_stated_encoding_is_followed_where_the_bytes_are_not_utf_8() -> None:
    assert decode("ł".encode("iso8859-2"), "iso-8859-2") == ("ł", None)
    assert decode("é".encode("cp1252"), "no-such-code") == ("é", CP1252)
    assert decode("é".encode(), "ascii") == ("é", None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x81\x8d", "neither UTF-8 nor Windows-1252; save it as UTF-8"),
        (b"a\0b", "holds NUL bytes"),
        (b"\xff\xfe\x00\xd8", "utf-16"),
    ],
)
def test_what_is_no_text_is_refused(data: Any, message: Any) -> None:
    with pytest.raises(InputError, match=message):
        decode(data)


def test_plain_text_stands_as_it_is(read: Any) -> None:
    assert read("a.md", "# A\r\n\r\ntext\r\n") == ("# A\n\ntext\n", None)


def test_what_lies_beyond_the_limit_is_counted(read: Any) -> None:
    text, left_out = read("a.txt", "word " * 100_000)
    assert (len(text), left_out) == (399_999, "the last 100,001 of 500,000 characters")


def test_nul_bytes_late_in_a_long_text_are_found(read: Any) -> None:
    text, left_out = read("a.txt", b"word " * 100_000 + b"\0")
    assert text is None
    assert "NUL bytes" in left_out
