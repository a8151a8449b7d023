import json
from collections.abc import Callable
from typing import Any

import pytest


def test_json_becomes_paths_and_a_name_given_twice_loses_nothing(read: Callable[..., Any]) -> None:
    assert read("a.json", '{"a": {"b": [1, "x", null]}, "c": true, "c": 2.5}') == (
        "a.b: 1\na.b: x\nc: True\nc: 2.5",
        None,
    )


def test_values_past_the_limit_are_counted(read: Callable[..., Any]) -> None:
    text, left_out = read("a.json", json.dumps(list(range(5_003))))
    assert (len(text.split("\n")), left_out) == (5_000, "3 of 5,003 values")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[" * 100_000, "it is nested too deeply to be read"),
        ("1" * 5_000, "not JSON: Exceeds the limit"),
        ("1" * (8 * 1024 * 1024 + 1), "8,388,609 bytes are more than the 8 MiB"),
    ],
)
def test_what_cannot_be_followed_is_refused(read: Callable[..., Any], data: str, reason: str) -> None:
    text, left_out = read("a.json", data)
    assert text is None
    assert left_out.startswith(reason)


def test_half_a_character_is_replaced_and_said(read: Callable[..., Any]) -> None:
    assert read("a.json", r'{"a": "\ud800 and \u0000"}') == (
        "a: \ufffd and \ufffd",
        "2 characters that no text can hold",
    )


def test_json_lines_are_paragraphs(read: Callable[..., Any]) -> None:
    assert read("a.jsonl", '{"a": 1, "b": 2}\n\n{"a": 3}\n') == ("a: 1\nb: 2\n\na: 3", None)
    assert read("a.jsonl", '{"a": 1}\nnot\n')[1].startswith("record 2 is not JSON")
    assert read("a.jsonl", '{"a": 1}\n' * 1_004)[1] == "4 of 1,004 rows"
