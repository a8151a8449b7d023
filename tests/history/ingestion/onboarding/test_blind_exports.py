"""Kinds of exports that are read as they are, or refused with the reason: joins, counts, page headings, dates."""

from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.ingestion.onboarding.propose import Proposal, propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated

STEPS = ("Receive", "Check", "Decide", "Settle")


def _proposed(file: Path, read: Callable[[Proposal], object]) -> object:
    with propose_settings("s", [file], Stated()) as proposal:
        return read(proposal)


def _counts(proposal: Proposal) -> tuple[int, int, tuple[str, ...]]:
    return proposal.findings.cases, proposal.findings.tasks, proposal.doubts


def _write(folder: Path, lines: list[str], name: str = "export.csv") -> Path:
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    return folder / name


def _moment(case: int, step: int) -> str:
    return f"2023-0{1 + case // 28}-{1 + case % 28:02d} {10 + step:02d}:1{case % 10}:00"


def test_a_list_for_printers_with_headings_on_each_page_is_read(tmp_path: Path) -> None:
    head, lines = "|ITEM  |TASK    |CD        |CT      |ED        |ET      |USER  |", list[str]()
    for case in range(40):
        if case % 10 == 0:
            lines += [
                f"01.03.2023      Items of the office, a dynamic list     {case // 10}",
                "",
                "-" * 60,
                head,
                "-" * 60,
            ]
        for step, name in enumerate(STEPS):
            day = f"{1 + case % 28:02d}.0{1 + case // 28}.2023"
            begin, end = (f"{10 + step}:{minute:02d}:0{case % 10}" for minute in (10, 20 + (case * 7 + step) % 30))
            lines.append(f"|I{case:05d}|{name:8}|{day}|{begin}|{day}|{end}|U{(case + step) % 5:05d}|")
    file = _write(tmp_path, lines, "list.txt")
    assert _proposed(file, _counts) == (40, 160, ())
    assert _proposed(
        file, lambda p: [p.draft.tables["columns"][role] for role in ("case", "start", "end", "actor")]
    ) == [
        "ITEM",
        ["CD", "CT"],
        ["ED", "ET"],
        "USER",
    ]


def test_sheets_with_the_same_columns_in_another_order_are_one_log(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for month, sheet in enumerate((book.active, book.create_sheet("Feb"))):
        names = ["Case", "Activity", "Time", "User"]
        turned = names[::-1] if month else names
        sheet.append(turned)
        for case in range(20 * month, 20 * month + 20):
            for step, name in enumerate(STEPS):
                row = dict(zip(names, (f"C{case}", name, _moment(case, step), f"u{(case + step) % 5}"), strict=True))
                sheet.append([row[column] for column in turned])
    summary = book.create_sheet("Summary")
    for row in [["Activity", "Count"], *([name, 40] for name in STEPS)]:
        summary.append(row)
    book.save(tmp_path / "book.xlsx")
    assert _proposed(tmp_path / "book.xlsx", _counts) == (40, 160, ())


def test_japanese_life_cycles_are_read(tmp_path: Path) -> None:
    lines = ["指図番号,工程,状態,日時,作業者"]
    for case in range(30):
        for step, name in enumerate(("準備", "加工", "検査")):
            for state, minute in (("開始", 10), ("完了", 40 + case % 15)):
                lines.append(
                    f"M{case:03d},{name},{state},{_moment(case, step)[:14]}{minute}:00,田中{(case + step) % 4}"
                )
    assert _proposed(_write(tmp_path, lines), _counts) == (30, 90, ())


def test_a_number_of_the_event_is_no_case_and_orders_those_of_one_minute(tmp_path: Path) -> None:
    rows = [
        "T1,Bag,07:15,3",
        "T1,Scan,07:15,1",
        "T1,Sort,07:15,2",
        "T2,Deliver,09:00,4",
        "T2,Sort,07:16,2",
        "T2,Bag,07:16,3",
    ]
    lines = ["parcel,step,time,event_no", *(row.replace(",0", ",2025-05-13 0", 1) for row in rows)]
    roles = _proposed(_write(tmp_path, lines), lambda p: p.draft.tables["columns"])
    assert [roles["case"], roles["order"]] == ["parcel", "event_no"]  # type: ignore[index]


def test_dates_of_birth_and_of_the_report_are_no_steps(tmp_path: Path) -> None:
    lines = ["Pathway no,Date of birth,Referred,Seen,Treated,Report run at"]
    for case in range(40):
        times = ",".join(_moment(case, step) for step in range(3))
        lines.append(f"P{case:03d},19{30 + case}-03-1{case % 10},{times},2023-07-31 06:00:00")
    assert _proposed(_write(tmp_path, lines), _counts) == (40, 120, ())


def test_days_and_months_that_nothing_tells_apart_are_a_doubt(tmp_path: Path) -> None:
    lines = ["Visit,Step,Time,Clerk"]
    for case in range(60):
        day = f"{1 + case % 12:02d}/{1 + case // 5:02d}/2023"
        lines += [
            f"V{case},{name},{day} {10 + step}:1{case % 10},C{(case + step) % 4}" for step, name in enumerate(STEPS)
        ]
    (doubt,) = _proposed(_write(tmp_path, lines), lambda p: p.doubts)  # type: ignore[misc]
    assert "the month" in doubt


def test_a_join_without_a_key_and_people_as_cases_are_doubts(tmp_path: Path) -> None:
    joined = ["order,step,time,agent"]
    for event in range(30):
        joined += [f"O{order},{STEPS[event % 4]},{_moment(event, 0)},a{event % 3}" for order in range(26)]
    assert any("a join" in doubt for doubt in _proposed(_write(tmp_path, joined), lambda p: p.doubts))  # type: ignore[attr-defined]
    alone = ["record,order,time,terminal no,task"]
    alone += [f"{n},00000,{_moment(n % 50, n // 50)},T{n % 5},{STEPS[n * 7 % 11 % 4]}" for n in range(400)]
    try:
        doubts = _proposed(_write(tmp_path, alone, "b.csv"), lambda p: p.doubts)
    except InputError as refused:
        doubts = [str(refused)]
    assert doubts


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ["From activity,To activity,Count,First seen"]
            + [f"{a},{b},{7 + len(a)},2023-01-0{1 + len(b) % 9} 10:00" for a in STEPS for b in STEPS],
            "pair of activities",
        ),
        (
            ["Number,Short description,State,Updated"]
            + [f"INC{n:05d},Printer {n % 7} offline,{('Open', 'Closed')[n % 2]},{_moment(n, 0)}" for n in range(50)],
            "present state",
        ),
        (
            ["KUNNR,VBELN,POSNR,EVENT_ID,EVENT,TS"]
            + [
                f"K{case % 9:04d},V{case:04d},{item:03d},{9000 + 4 * case + step},{name},{_moment(case, step)}"
                for case in range(40)
                for item in range(1 + case % 4)
                for step, name in enumerate(STEPS)
            ],
            "POSNR",
        ),
        (
            ["Belegnummer,Vorgang,Zeitpunkt,Benutzer"]
            + [f'"4,5001{n % 3}E+11",{STEPS[n % 4]},{_moment(n % 50, n % 5)},u{n % 6}' for n in range(150)],
            "rounded",
        ),
    ],
)
def test_tables_that_are_no_log_are_refused_with_the_reason(lines: list[str], told: str, tmp_path: Path) -> None:
    file = _write(tmp_path, lines)
    try:
        doubts = _proposed(file, lambda p: list(p.doubts))
    except InputError as refused:
        doubts = [str(refused)]
    assert any(told in doubt for doubt in doubts), doubts  # type: ignore[attr-defined]
