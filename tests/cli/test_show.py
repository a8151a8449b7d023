"""Tables for people: what is written to a file or a pipe is what rich lays out, with rich or without it."""

import contextlib
import io
import json
import subprocess
import sys
from typing import Any

import click
import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from opus_pipelines.cli import show
from opus_pipelines.reporting.spreadsheets import cell_text

TEXTS = st.one_of(st.text(st.characters(min_codepoint=32, max_codepoint=126)), st.text(max_size=6))


def written(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        show.table(columns, rows)
    return out.getvalue()


def by_rich(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    layout = Table(box=None, pad_edge=False)
    for column in columns:
        layout.add_column(column, overflow="fold")
    for row in rows:
        layout.add_row(*row)
    out = io.StringIO()
    Console(file=out, markup=False, highlight=False, emoji=False, width=10_000).print(layout)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_every_text_is_laid_out_as_rich_does(rows: list[tuple[str, str]]) -> None:
    shown = [tuple(cell_text(text) for text in row) for row in rows]
    assert written(("first", "a second one"), rows) == by_rich(("first", "a second one"), shown)


@pytest.mark.parametrize(
    ("value", "shown"), [(1234.5, "1,234.50"), (0.25, "0.25"), (None, "-"), (True, "yes"), ([1, 2], "1, 2")]
)
def test_how_values_are_shown(value: Any, shown: str) -> None:
    assert written(("name", "n"), [("x", value)]).splitlines()[1].split(maxsplit=1) == ["x", shown]


def test_numbers_stand_to_the_right() -> None:
    assert written(("name", "n"), [("x", 1), ("y", 100)]) == "name    n\nx       1\ny     100\n"


def test_a_table_of_plain_text_loads_no_rich() -> None:
    code = (
        "import sys; from opus_pipelines.cli import show; show.table(('a', 'b'), [('x', 1)]); "
        "print('rich' in sys.modules); show.table(('a', 'b'), [('Ä', 1)]); print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == ["a  b", "x  1", "False", "a  b", "Ä  1", "True"]


def test_in_a_terminal_columns_that_do_not_fit_stand_below_their_row_and_nothing_is_lost() -> None:
    columns, numeric = ("intake", "rank", "holds", "steps"), (False, True, False, False)
    cells = [["burst-pipe", "1", "clear (93.7 %)", "12: with Request Missing Documents"], ["theft", "12", "-", "9"]]
    wide = show.fitted(columns, cells, numeric, 120)
    assert [line.split()[0] for line in click.unstyle(wide).splitlines()] == ["intake", "burst-pipe", "theft"]
    lines = click.unstyle(show.fitted(columns, cells, numeric, 36)).splitlines()
    assert lines == [
        "intake      rank  holds",
        "burst-pipe     1  clear (93.7 %)",
        "    steps: 12: with Request Missing",
        "    Documents",
        "theft         12  -",
        "    steps: 9",
    ]
    assert max(map(len, lines)) <= 36


def test_a_line_ends_neither_at_a_hyphen_nor_between_a_name_and_its_value() -> None:
    columns, cells = ("a", "model", "generated"), [["x" * 20, "quill-small-2", "4"]]
    lines = click.unstyle(show.fitted(columns, cells, (False, False, True), 30)).splitlines()
    assert lines[2:] == ["    model: quill-small-2;", "    generated: 4"]


def test_a_wide_character_takes_two_columns_of_a_terminal() -> None:
    lines = click.unstyle(show.fitted(("a", "b"), [["日本", "x"], ["abcd", "y"]], (False, False), 80)).splitlines()
    assert lines[1:] == ["日本  x", "abcd  y"]


SPANS = 'SELECT INTERVAL 90 MINUTE AS "a ""span""", {\'x\': INTERVAL 1 DAY} AS nested, 7 AS n'


def test_parquet_has_spans_as_texts(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with duckdb.connect() as connection:
        show.relation(connection.sql(SPANS), "parquet")
    sys.stdout.flush()
    (row,) = pq.read_table(io.BytesIO(capfdbinary.readouterr().out)).to_pylist()
    assert (row['a "span"'], row["n"]) == ("01:30:00", 7)
    assert "1 day" in row["nested"]


def test_json_has_no_nan_and_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect() as connection:
        show.relation(
            connection.sql("SELECT 'nan'::DOUBLE AS a, ['inf'::DOUBLE, 1.5] AS b, {'c': 'nan'::FLOAT} AS d"), "json"
        )
    assert json.loads(capsys.readouterr().out) == [{"a": None, "b": [None, 1.5], "d": {"c": None}}]
