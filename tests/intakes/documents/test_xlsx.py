from datetime import date, datetime, time
from typing import Any

import openpyxl
import pytest

SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    b"%s</sheetData></worksheet>"
)


@pytest.fixture
def made(saved: Any, repacked: Any) -> Any:
    """A workbook whose one sheet holds these rows of XML."""
    return lambda rows: repacked(saved(openpyxl.Workbook()), {"xl/worksheets/sheet1.xml": SHEET % rows})


def test_sheets_read_row_by_row_and_what_is_hidden_is_named(read: Any, saved: Any, repacked: Any) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    for row in (["Price list"], [], ["item", "usd", "from"], ["glass", 12.50, date(2026, 1, 31)], ["door", 3.0, None]):
        sheet.append(row)
    sheet.append(["sum", "=SUM(B4:B5)", None])
    times = book.create_sheet("Times")
    times.append([datetime(2026, 1, 31, 9, 30), time(8, 0), True])
    lists = book.create_sheet("Lists")
    lists.sheet_state = "hidden"
    lists["A1"] = 1
    text = (
        "# Prices\n\nPrice list\n\nitem; usd; from\n\nitem: glass; usd: 12.5; from: "
        "2026-01-31\nitem: door; usd: 3\nitem: sum\n\n"
        "# Times\n\n2026-01-31 09:30:00; 08:00:00; True"
    )
    left_out = "sheet 'Prices': 1 formula without a saved value; the hidden sheet 'Lists'"
    assert read("a.xlsx", saved(book)) == (text, left_out)
    with_macros = repacked(saved(book), {"xl/vbaProject.bin": b"x"})
    assert read("a.xlsm", with_macros) == (text, f"{left_out}; macros, which are never run")


def test_rows_past_the_limit_are_counted(read: Any, saved: Any) -> None:
    book = openpyxl.Workbook()
    for n in range(1_006):
        book.active.append([n, "x"])
    assert read("a.xlsx", saved(book))[1] == "sheet 'Sheet': 5 of 1,005 rows"


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "left_out"),
    [
        (
            b'<row r="999999999999"><c r="A999999999999"><v>1</v></c></row>',
            "sheet 'Sheet': what stands after its first 0 rows (it has more than 0)",
        ),
        (
            b"".join(b'<row r="%d"><c r="ZZZ%d"><v>1</v></c></row>' % (n, n) for n in range(1, 40)),
            "sheet 'Sheet': what stands after its first 15 rows (it has more than 15)",
        ),
    ],
)
def test_a_sheet_that_says_to_be_endless_ends(read: Any, made: Any, rows: Any, left_out: Any) -> None:
    assert read("a.xlsx", made(rows))[1] == left_out


def test_a_saved_value_stands_for_its_formula(read: Any, made: Any) -> None:
    row = b'<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1" t="e"><v>#REF!</v></c></row>'
    assert read("a.xlsx", made(row)) == ("# Sheet\n\n2; #REF!", None)
