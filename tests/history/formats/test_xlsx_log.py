"""Workbooks: the sheet that looks like a log, below its title, with merged cells and dates of Excel."""

import io
import zipfile
from datetime import datetime
from typing import Any

import openpyxl
import pytest

HEAD = ["Zaaknummer", "Activiteit", "Tijdstip", "Behandelaar"]
ROWS = [
    ["c1", "Ontvangst", datetime(2024, 3, 1, 9, 30), "Ann"],
    ["c1", "Controle", datetime(2024, 3, 2), "Bob"],
    [2, "Ontvangst", datetime(2024, 3, 3, 8, 0, 5), None],
]
SETTINGS = 'timezone = "UTC"\n[columns]\ncase = "Zaaknummer"\nactivity = "Activiteit"\ntime = "Tijdstip"\n'


def workbook(*sheets: tuple[str, list[list[Any]]], merged: str = "") -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        if merged:
            sheet.merge_cells(merged)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def steps(cases: Any) -> Any:
    return {
        name: [(t["title"], t["ended_at"].strftime("%d %H:%M:%S")) for t in case["tasks"]]
        for name, case in cases.items()
    }


WANTED = {
    "c1": [("Ontvangst", "01 09:30:00"), ("Controle", "02 00:00:00")],
    "2": [("Ontvangst", "03 08:00:05")],
}


@pytest.mark.parametrize(
    "above", [[], [["Aanvragen"], []], [["Export", "mei"], ["Door", "Ann"], []], [["Titel", None, None, None]]]
)
def test_the_table_below_a_title_of_the_sheet_that_has_times(bench: Any, above: list[list[Any]]) -> None:
    content = workbook(("Leeswijzer", [["Contact", "Ann"], ["Versie", 3]]), ("Export", [*above, HEAD, *ROWS]))
    cases, rejects, state = bench.one("log.xlsx", content, SETTINGS)
    assert steps(cases) == WANTED
    assert (rejects, state.files[0]["format"], state.files[0]["records"]) == ([], "xlsx", 3)


def test_sheets_with_one_header_are_read_one_after_the_other(bench: Any) -> None:
    content = workbook(("Jan", [HEAD, *ROWS[:2]]), ("Feb", [HEAD, *ROWS[2:]]))
    assert steps(bench.one("log.xlsx", content, SETTINGS)[0]) == WANTED


def test_of_two_logs_a_person_must_say_which_is_meant(bench: Any) -> None:
    content = workbook(("A", [HEAD, *ROWS]), ("B", [["Order", "Stap", "Datum"], *[r[:3] for r in ROWS]]))
    assert "sheet" in bench.one("log.xlsx", content, SETTINGS)[2].failed[0]
    assert steps(bench.one("log.xlsx", content, SETTINGS.replace("[col", '[table]\nsheet = "A"\n[col'))[0]) == WANTED
    failed = bench.one("log.xlsx", content, '[table]\nsheet = "C"\n')[2].failed[0]
    assert "'C'" in failed
    assert "'A', 'B'" in failed


def test_the_cells_of_a_merged_range_have_its_value(bench: Any) -> None:
    rows = [ROWS[0], [None, *ROWS[1][1:]], ROWS[2]]
    assert steps(bench.one("log.xlsx", workbook(("A", [HEAD, *rows]), merged="A2:A3"), SETTINGS)[0]) == WANTED


def test_empty_columns_and_rows_are_no_data(bench: Any) -> None:
    rows = [[], [], *([None, None, *row] for row in [HEAD, *ROWS]), [], [None] * 6]
    assert steps(bench.one("log.xlsx", workbook(("A", rows)), SETTINGS)[0]) == WANTED


def test_days_as_numbers_need_the_format_of_spreadsheets(bench: Any) -> None:
    rows = [["c1", "Ontvangst", 45352.395833333336, ""], ["c1", "Controle", 45353, ""]]
    cases, _, _ = bench.one("log.xlsx", workbook(("A", [HEAD, *rows])), 'time_format = "excel"\n' + SETTINGS)
    assert steps(cases) == {"c1": WANTED["c1"]}


@pytest.mark.parametrize("content", [b"PK\x03\x04 no workbook", b"case_id,activity\n1,A\n", b"\xd0\xcf\x11\xe0" * 99])
def test_what_is_no_workbook_is_refused(bench: Any, content: bytes) -> None:
    assert "workbook" in bench.one("log.xlsx", content, SETTINGS)[2].failed[0]


def test_a_row_without_a_case_is_rejected_by_its_number(bench: Any) -> None:
    rows = [["Titel"], HEAD, *ROWS, [None, "Totaal", datetime(2024, 3, 3), None]]
    _, rejects, _ = bench.one("log.xlsx", workbook(("A", rows)), SETTINGS)
    assert [(r["position"], r["position_unit"], r["reason_code"]) for r in rejects] == [(6, "line", "no_case")]


def test_a_remark_under_the_table_is_no_row(bench: Any) -> None:
    content = workbook(("A", [HEAD, *ROWS, [], ["Stand: heute"]]))
    cases, rejects, _ = bench.one("log.xlsx", content, SETTINGS)
    assert (steps(cases), rejects) == (WANTED, [])


def test_a_merged_range_of_billions_of_cells_takes_no_memory(bench: Any) -> None:
    content = workbook(("A", [HEAD, *ROWS]), merged="G1:G2")
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as parts, zipfile.ZipFile(written, "w") as claimed:
        for name in parts.namelist():
            claimed.writestr(name, parts.read(name).replace(b"G1:G2", b"G1:XFD1048576"))
    assert b"XFD" not in content
    assert steps(bench.one("log.xlsx", written.getvalue(), SETTINGS)[0]) == WANTED
