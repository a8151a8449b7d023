"""Writes rows for a person or a program: an aligned table, CSV, one JSON array, Parquet, or an Excel workbook."""

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opus_pipelines.core.errors import InputError
from opus_pipelines.reporting.spreadsheets import as_csv, as_xlsx, cell_text

if TYPE_CHECKING:
    import duckdb

FORMATS = ("table", "csv", "json", "parquet", "xlsx")
_GAP = "  "
_REASONS = 5
_BELOW = " " * 4
_UNBROKEN = "\ue000"  # stands for a blank at which no line ends, as between a column's name and its value
_WIDEST = 10_000  # characters of a line that no terminal folds
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
        content, marked = as_xlsx({"rows": (columns, values)})
        _write_bytes(content, form)
        _note_formulas(marked, "are marked as texts")
    elif form == "json":
        click.echo(
            json.dumps(
                [dict(zip(columns, map(_finite, row), strict=True)) for row in values],
                indent=1,
                default=cell_text,
                ensure_ascii=False,
            )
        )
    else:
        table(columns, values)


def _finite(value: Any) -> Any:
    """Returns a value for JSON, which has no NaN and no infinity: they become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def parquet(rows: "duckdb.DuckDBPyRelation") -> None:
    """Writes the rows as one Parquet file to stdout. Raises UsageError where stdout is a terminal."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if any("INTERVAL" in str(kind) for kind in rows.types):  # Parquet has no type for them that Arrow writes
        names = [
            (f'"{name.replace(chr(34), 2 * chr(34))}"', str(kind))
            for name, kind in zip(rows.columns, rows.types, strict=True)
        ]
        rows = rows.project(", ".join(f"{n}::VARCHAR AS {n}" if "INTERVAL" in kind else n for n, kind in names))
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

    In a terminal, the columns that do not fit stand with their names below each row. Elsewhere it is as wide as it
    needs to be.
    """
    rows = [list(row) for row in rows]
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns
    if title:
        words = textwrap.fill(title, width, break_on_hyphens=False, break_long_words=False) if is_terminal else title
        click.echo(("" if title.startswith("Lake") else "\n") + words)
    if not rows:
        return
    numeric = [
        all(isinstance(row[i], int | float | None) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(columns))
    ]
    cells = [[_cell(_to_the_second(value) if is_terminal else value) for value in row] for row in rows]
    if is_terminal and not any("\n" in cell for line in cells for cell in line):
        click.echo(fitted(columns, cells, numeric, width))
        return
    plain = None if is_terminal else _plain(columns, cells, numeric)
    click.echo(_folded(columns, cells, numeric) if plain is None else plain)


def fitted(columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], width: int) -> str:
    """Returns the lines of a table that is at most `width` wide.

    The first columns that fit stand side by side, and the others with their names on the lines below each row.
    """
    widths = [max(map(_cells_wide, column)) for column in zip(columns, *cells, strict=True)]
    beside, used = 0, 0
    while beside < len(widths) and (beside == 0 or used + widths[beside] <= width):
        used += widths[beside] + len(_GAP)
        beside += 1
    lines = [click.style(_row(columns[:beside], widths, numeric), bold=True)]
    for row in cells:
        lines.append(_row(row[:beside], widths, numeric))
        rest = zip(columns[beside:], row[beside:], strict=True)
        if below := [f"{name}:{_UNBROKEN}{cell}" for name, cell in rest if cell not in ("", "-")]:
            fold = textwrap.TextWrapper(
                max(width, 20), initial_indent=_BELOW, subsequent_indent=_BELOW, break_on_hyphens=False
            )
            lines += [line.replace(_UNBROKEN, " ") for line in fold.wrap("; ".join(below))]
    return "\n".join(lines)


def _row(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    blanks = [" " * (width - _cells_wide(cell)) for cell, width in zip(row, widths, strict=False)]
    padded = [blank + cell if right else cell + blank for cell, blank, right in zip(row, blanks, numeric, strict=False)]
    return _GAP.join(padded).rstrip()


def _cells_wide(text: str) -> int:
    """Returns how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _plain(columns: Sequence[str], cells: list[list[str]], numeric: Sequence[bool]) -> str | None:
    """Returns the lines that `_folded` gives where nothing has to be folded, without rich, which takes 0.2 s for them.

    Returns None where only rich knows how wide a cell is: with characters outside ASCII, line ends, or too much text.
    """
    lines = [[str(column) for column in columns], *cells]
    if not all(cell.isascii() and cell.isprintable() for line in lines for cell in line):
        return None
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > _WIDEST:
        return None
    to_the_right = list(zip(widths, numeric, strict=True))
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, (width, right) in zip(line, to_the_right, strict=True)
        ).rstrip()
        for line in lines
    )


def _folded(columns: Sequence[str], cells: list[list[str]], numeric: Sequence[bool]) -> str:
    from rich.console import Console
    from rich.table import Table

    layout = Table(box=None, pad_edge=False, header_style="bold")
    for column, right in zip(columns, numeric, strict=True):
        layout.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for line in cells:
        layout.add_row(*line)
    console = Console(markup=False, highlight=False, emoji=False, width=None if sys.stdout.isatty() else _WIDEST)
    with console.capture() as written:
        console.print(layout)
    return "\n".join(line.rstrip() for line in written.get().splitlines())


def _to_the_second(value: Any) -> Any:
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


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


def file(content: bytes, out: Path | None, what: str = "") -> None:
    """Writes bytes to a file, or to stdout where no file or `-` is named.

    Raises InputError, with `what` is written, where the folder is missing.
    """
    if out is None or str(out) == "-":
        sys.stdout.buffer.write(content)  # bytes: a terminal's encoding may lack a title's letters
        sys.stdout.buffer.flush()
        return
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out.absolute().parent}: no such folder for {what or out.name}")
    out.write_bytes(content)
    note(f"written: {out}")


def left_out(lines: Sequence[str]) -> None:
    """Writes to stderr why lines of a file were left out: the first reasons, and how many more lines there are."""
    for line in lines[:_REASONS]:
        note(f"left out: {line}")
    if len(lines) > _REASONS:
        note(f"left out: {len(lines) - _REASONS:,} more lines")


def note(text: str) -> None:
    """Writes a line to stderr for the person at the terminal."""
    click.echo(text, err=True)
