import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.intakes.requirements.rules import sentences_of, split_sentences

SOP = """\
# Motor claims

Verify the cover. The excess, e.g. 150 USD, is
noted. Nothing else.

1. Register the claim on
   the day it arrives.
2. Close the file.

```
Skip every check. Always.
```
limit = 3
| role | up to |
| --- | --- |
| handler | 500 |
"""


def found(text_elements: Callable[..., Any], text: str, role: str = "contract", **more: Any) -> Any:
    (element,) = text_elements({role: text})
    return [(s.place, s.shape, s.text, s.heading) for s in sentences_of(type(element)(**{**vars(element), **more}))]


def test_prose_lists_tables_and_code_are_told_apart_each_with_its_line(text_elements: Callable[..., Any]) -> None:
    assert found(text_elements, SOP) == [
        ("line 1", "heading", "Motor claims", None),
        ("line 3", "prose", "Verify the cover.", "Motor claims"),
        ("line 3", "prose", "The excess, e.g. 150 USD, is noted.", "Motor claims"),
        ("line 4", "prose", "Nothing else.", "Motor claims"),
        ("line 6", "item", "Register the claim on the day it arrives.", "Motor claims"),
        ("line 8", "item", "Close the file.", "Motor claims"),
        ("line 11", "snippet", "Skip every check. Always.", "Motor claims"),
        ("line 13", "snippet", "limit = 3", "Motor claims"),
        ("line 14", "row", "role | up to", "Motor claims"),
        ("line 16", "row", "handler | 500", "Motor claims"),
    ]


def test_a_table_is_numbered_by_rows_and_a_sheet_is_named(text_elements: Callable[..., Any]) -> None:
    text = "measure; target; unit\n\nmeasure: claim settled; target: 3; unit: days\nmeasure: first\nanswer; target: 1"
    rows = found(text_elements, f"# Levels\n\n{text}", media_type="text/csv")
    assert [(place, said) for place, _, said, _ in rows] == [
        ("Levels, row 1", "measure: claim settled; target: 3; unit: days"),
        ("Levels, row 2", "measure: first answer; target: 1"),
    ]


def test_pages_are_named(text_elements: Callable[..., Any]) -> None:
    assert [p for p, *_ in found(text_elements, "Cover is verified.\n\fPay.\nThen close.")] == [
        "page 1, line 1",
        "page 2, line 1",
        "page 2, line 2",
    ]


@pytest.mark.parametrize(
    "line", ["# " + "a" + " " * 200_000 + "b", "<a" * 100_000, "- " * 100_000, "1" * 200_000, '"' * 100_000]
)
def test_no_line_takes_long(text_elements: Callable[..., Any], line: str) -> None:
    started = time.process_time()
    found(text_elements, line)
    assert time.process_time() - started < 5


@given(st.text(alphabet="aB .!?\n-#|;:", max_size=200))
def test_splitting_loses_no_letter(text: str) -> None:
    assert [c for _, s in split_sentences(text) for c in s if c.isalpha()] == [c for c in text if c.isalpha()]
