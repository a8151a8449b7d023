"""Splitting blocks of CSV with Arrow: only where every line is plain, and then as the module csv splits them."""

import csv
import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from opus_pipelines.history.columns.csv_blocks import CsvSplitter, plain_columns
from tests.campaigns import examples


def split(block: bytes, columns: int = 2, delimiter: str = ",") -> list[list[str]] | None:
    found = plain_columns(block, columns, delimiter)
    return None if found is None else [column.to_pylist() for column in found]


@pytest.mark.parametrize(
    ("block", "columns"),
    [
        (b"a,b\nc,d\n", [["a", "c"], ["b", "d"]]),
        (b'"a","b"\r\n"c, e","d"\r\n', [["a", "c, e"], ["b", "d"]]),
        (b'"",\n,""\n', [["", ""], ["", ""]]),
        ("Müller,NULL\nNA,\u00a0\n".encode(), [["Müller", "NA"], ["NULL", "\u00a0"]]),
        (b" a , b\n1.0,true\n", [[" a ", "1.0"], [" b", "true"]]),
    ],
)
def test_a_block_of_plain_lines_is_split(block: bytes, columns: list[list[str]]) -> None:
    assert split(block) == columns


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"a,b\n\nc,d\n",  # a blank line
        b"a,b\nc\n",  # too few fields
        b"a,b,c\n",
        b'"a\nb",c\n',  # a record of two lines
        b'"a ""b""",c\n',  # a doubled mark
        b'a "b",c\n',  # a mark inside a field
        b'"a"b,c\n',  # text behind the closing mark
        b'",a"b,"c"\n",d",e\n',  # as many ends as begins by chance
        b'"a,b\n',  # not closed
        b"a\rb,c\n",
        b"\xed\xb2\x80,b\n",  # a byte that is no text, as a surrogate
        b"\xef\xbb\xbfa,b\n",  # Arrow would remove the mark
        b"%b,b\n" % (b"a" * (1 << 22)),  # longer than the module csv allows
    ],
)
def test_other_blocks_are_left_to_the_splitting_by_lines(block: bytes) -> None:
    assert split(block) is None


LINES = st.text(st.sampled_from('ab",;\r é'), max_size=8)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", ""])
FIELD = st.text(st.sampled_from('a",\n '), max_size=3)


@pytest.mark.long
@example([(';\r\r"', "\n"), ('""', ""), (';\r;"', "\n")], 1, ",")  # as many lines as rows by chance
@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(LINES, ENDS), max_size=6), st.integers(1, 3), st.sampled_from(",;"))
def test_what_is_split_is_what_the_module_csv_makes_of_it(
    lines: list[tuple[str, str]], columns: int, delimiter: str
) -> None:
    text = "".join(line + end for line, end in lines) + "\n"
    same_as_the_module(text, columns, delimiter)


@pytest.mark.long
@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=5), st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
def test_a_written_table_is_read_again(rows: list[tuple[str, str]], quoting: int) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=quoting, lineterminator="\n").writerows(rows)
    same_as_the_module(out.getvalue(), 2, ",")


def same_as_the_module(text: str, columns: int, delimiter: str) -> None:
    found = split(text.encode(), columns, delimiter)
    if found is not None:
        whole = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        assert [list(row) for row in zip(*found, strict=True)] == whole


def test_lines_count_up_to_the_record_that_goes_on_in_the_next_block() -> None:
    splitter = CsvSplitter(2, ",")
    plain = splitter.split(b"a,b\nc,d\n", 7, False)
    assert (plain.positions.tolist(), plain.lines, plain.left) == ([7, 8], 2, 8)
    broken = splitter.split(b'a,b\n"c\n', 7, False)
    assert (broken.positions.tolist(), broken.lines, broken.left) == ([7], 1, 4)
