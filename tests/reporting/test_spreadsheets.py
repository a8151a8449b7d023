"""No text of a client becomes a formula of a spreadsheet program."""

import csv
import io

import openpyxl
import pytest

from opus_pipelines.reporting.spreadsheets import MARK, as_csv, as_xlsx, escaped, is_formula

HOSTILE = (
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example","click")',
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\u00a0=1+1",
    "\ufeff=1+1",
    "\u200b=1+1",
    "＝1+1",
    "＋1+1",
    "－1+1",
    "＠SUM(A1)",
    "﹦1+1",
    "+31 6 12345678",
)
HARMLESS = ("", "Verify Coverage", "-5", "+3.25", "-1,234.50", "1e-5", "5 = five", "a-b", "12.5%", "'quoted", "–")


@pytest.mark.parametrize("text", HOSTILE)
def test_what_could_be_a_formula_gets_an_apostrophe(text: str) -> None:
    assert is_formula(text)
    assert escaped(text)[0] == MARK
    assert escaped(text)[1:].replace(MARK, "") == text.replace(MARK, "")
    assert not is_formula(escaped(text))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_cannot_be_one_stays(text: str) -> None:
    assert (is_formula(text), escaped(text)) == (False, text)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a;=cmd|' /C calc'!A0", "a;'=cmd|' /C calc'!A0"),
        ("a\t@SUM(1)", "a\t'@SUM(1)"),
        ("a\n=1+1", "a\n'=1+1"),
        ("steps:\n- check\n- pay", "steps:\n- check\n- pay"),
    ],
)
def test_a_cell_that_another_separator_splits_holds_no_formula_either(text: str, safe: str) -> None:
    assert escaped(text) == safe


def test_csv_escapes_names_of_columns_too_and_keeps_numbers() -> None:
    text, marked = as_csv(["=cmd", "n"], [["=1+1", -5], ["Pay", -0.5], [["=1"], None]])
    assert list(csv.reader(io.StringIO(text))) == [["'=cmd", "n"], ["'=1+1", "-5"], ["Pay", "-0.5"], ['["=1"]', ""]]
    assert marked == 2


def test_a_workbook_holds_texts_and_no_formulas() -> None:
    content, marked = as_xlsx({"rows": (["name", "n"], [[text, -5] for text in HOSTILE] + [["bell \x07", None]])})
    sheet = openpyxl.load_workbook(io.BytesIO(content)).active
    cells = [row[0] for row in sheet.iter_rows(min_row=2)]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.quotePrefix for cell in cells] == [True] * len(HOSTILE) + [False]
    assert cells[0].value == HOSTILE[0]
    assert (cells[-1].value, sheet["B2"].value, marked) == ("bell ", -5, len(HOSTILE))
