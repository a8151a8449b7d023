"""Writes rows for a person or a program: an aligned table, CSV, one JSON array, Parquet, or an Excel workbook."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.reporting.spreadsheets import as_csv, as_xlsx, cell_text

if TYPE_CHECKING:
    import duckdb

FORMATS = ("table", "csv", "json", "parquet", "xlsx")
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How rows are written to stdout.",
)


def relation(rows: "duckdb.DuckDBPyRelation", form: str) -> None:
    """Writes the rows of a relation to stdout in the format `form`.

    In CSV and XLSX, texts that a spreadsheet program could take for a formula are escaped, and counted on stderr.
    """
    if form == "parquet":
        parquet(rows)
        return
    columns, values = rows.columns, rows.fetchall()
    if form == "csv":
        text, marked = as_csv(columns, values)
        sys.stdout.write(text)
        _note_formulas(marked, "have an apostrophe in front")
    elif form == "xlsx":
        content, marked = as_xlsx(columns, values)
        _write_bytes(content, form)
        _note_formulas(marked, "are marked as texts")
    elif form == "json":
        click.echo(
            json.dumps(
                [dict(zip(columns, row, strict=True)) for row in values],
                indent=1,
                default=cell_text,
                ensure_ascii=False,
            )
        )
    else:
        table(columns, values)


def parquet(rows: "duckdb.DuckDBPyRelation") -> None:
    """Writes the rows as one Parquet file to stdout. Raises UsageError where stdout is a terminal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = pa.BufferOutputStream()
    pq.write_table(rows.to_arrow_table(), buffer, compression="zstd")
    _write_bytes(buffer.getvalue().to_pybytes(), "parquet")


def _write_bytes(content: bytes, form: str) -> None:
    if sys.stdout.isatty():
        raise click.UsageError(f"--format {form} writes bytes: send them to a file with > FILE")
    sys.stdout.buffer.write(content)


def _note_formulas(marked: int, how: str) -> None:
    if marked:
        note(f"{marked:,} texts that a spreadsheet program could take for formulas {how}")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Writes an aligned table to stdout, numbers to the right.

    It is folded to the width of a terminal, and as wide as it needs to be elsewhere.
    """
    rows = [list(row) for row in rows]
    if title:
        click.echo(("" if title.startswith("Lake") else "\n") + title)
    if not rows:
        return
    from rich.console import Console
    from rich.table import Table

    layout = Table(box=None, pad_edge=False, header_style="bold")
    for i, column in enumerate(columns):
        numeric = all(isinstance(row[i], int | float | None) and not isinstance(row[i], bool) for row in rows)
        layout.add_column(column, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        layout.add_row(*(_cell(value) for value in row))
    console = Console(markup=False, highlight=False, emoji=False, width=None if sys.stdout.isatty() else 10_000)
    with console.capture() as written:
        console.print(layout)
    click.echo("\n".join(line.rstrip() for line in written.get().splitlines()))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}"
    if isinstance(value, list):
        return ", ".join(_cell(v) for v in value)
    return cell_text(value)


def note(text: str) -> None:
    """Writes a line to stderr for the person at the terminal."""
    click.echo(text, err=True)
