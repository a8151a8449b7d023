"""CSV: any column names, several ways of writing times, rows of a case anywhere; what cannot be told is refused with
its cure.
"""

from typing import Any

import pytest

ZONE = 'timezone = "Europe/Amsterdam"\n'


def test_usual_names_need_no_settings(bench: Any, keys: Any) -> None:
    content = (
        "case_id,activity,timestamp,resource,colour\n1,B,2020-01-02T00:00:00Z,Ann,red\n1,A,2020-01-01T00:00:00Z,Bob,\n"
    )
    cases, rejects, state = bench.one("log.csv", content)
    assert keys(cases["1"]) == ["A", "B"]
    assert [t["actor"] for t in cases["1"]["tasks"]] == ["Bob", "Ann"]
    assert [t["attributes"] for t in cases["1"]["tasks"]] == [[], [("colour", "red")]]
    assert (rejects, state.failed) == ([], [])


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("case:concept:name,concept:name,time:timestamp,org:resource,case:AMOUNT", "1,A,2020-01-01T00:00:00Z,Ann,5"),
        (
            "Case ID;Activity;Start Timestamp;Complete Timestamp;Resource",
            "1;A;2020-01-01T00:00:00Z;2020-01-01T00:00:05Z;Ann",
        ),
        ("caseid\ttask\tstart_time\tuser", "1\tA\t2020-01-01T00:00:00Z\tAnn"),
        ("\ufeffcase|event|date|performer", "1|A|2020-01-01T00:00:00Z|Ann"),
    ],
)
def test_headers_and_delimiters_that_are_told(bench: Any, header: str, row: str) -> None:
    case = bench.one("log.csv", f"{header}\n{row}\n")[0]["1"]
    (task,) = case["tasks"]
    assert (task["task_key"], task["actor"], task["started_at"].isoformat()) == (
        "A",
        "Ann",
        "2020-01-01T00:00:00+00:00",
    )
    assert case["attributes"] == ([("AMOUNT", "5")] if "AMOUNT" in header else [])
    assert task["duration_ms"] == (5000.0 if "Complete" in header else None)


def test_a_table_of_any_names_by_settings(bench: Any) -> None:
    content = (
        "Vorgang;Schritt;Von;Bis;Wer;Art;Kosten;Anlass;Kunde;Ergebnis;Auftrag\n"
        '7;Prüfen;01.02.2020 08:00;01.02.2020 09:30;Eva;Person;12,50;"Zeile 1\nZeile 2";A/S;ok;x\n'
        "7;Zahlen;01.02.2020 10:00;;Eva;Person;;;;gut;\n"
    )
    settings = ZONE + (
        'decimal = ","\nindustry = "payables"\nclient = { column = "Kunde" }\n[columns]\ncase = '
        '"Vorgang"\nactivity = "Schritt"\n'
        'start = "Von"\n'
        'end = "Bis"\nactor = "Wer"\nactor_kind = "Art"\ncost = "Kosten"\ntitle = "Anlass"\nattributes = ["Auftrag"]\n'
        '[success]\ncolumn = "Ergebnis"\nequals = ["gut", "sehr gut"]\n'
    )
    cases, rejects, _ = bench.one("tab.csv.gz", content, settings)
    case = cases["7"]
    assert not rejects
    assert (case["title"], case["client"], case["success"], case["cost_usd"]) == ("Zeile 1\nZeile 2", "A/S", True, 12.5)
    assert case["attributes"] == [("Auftrag", "x")]
    assert case["started_at"].isoformat() == "2020-02-01T07:00:00+00:00"
    first, second = case["tasks"]
    assert (first["actor_kind"], first["duration_ms"], first["cost_human_usd"], first["cost_basis"]) == (
        "human",
        5_400_000.0,
        12.5,
        "observed",
    )
    assert (second["ended_at"], second["duration_ms"], second["wait_ms"]) == (None, None, 1_800_000.0)


def test_start_and_complete_rows_pair(bench: Any) -> None:
    rows = "1,A,start,2020-01-01T00:00:00Z\n1,A,complete,2020-01-01T00:01:00Z\n1,A,schedule,2020-01-01T00:00:00Z\n"
    content = "case_id,activity,lifecycle,timestamp\n" + rows
    cases, _, state = bench.one("log.csv", content)
    assert [t["duration_ms"] for t in cases["1"]["tasks"]] == [60_000.0]
    assert state.files[0]["records_not_work"] == 1


def test_days_and_months_are_told_by_the_whole_file(bench: Any) -> None:
    content = "case_id,activity,timestamp\n1,A,03/04/2020 10:00\n1,B,25/04/2020 10:00\n"
    assert bench.one("log.csv", content, ZONE)[0]["1"]["started_at"].isoformat() == "2020-04-03T08:00:00+00:00"
    ambiguous = content.replace("25/", "05/")
    _, rejects, _ = bench.one("log.csv", ambiguous, ZONE)
    assert {r["reason_code"] for r in rejects} == {"ambiguous_time"}
    assert bench.one("log.csv", ambiguous, ZONE + 'time_format = "%d/%m/%Y %H:%M"')[0]["1"]["started_at"].month == 4


def test_a_case_with_a_row_that_cannot_be_used_is_put_aside_whole_and_the_rest_goes_on(bench: Any, keys: Any) -> None:
    header = "case_id,activity,start_time,end_time,cost,note\n"
    rows = [
        "1,A,2020-01-01T00:00:00Z,2020-01-01T00:00:01Z,1,für",
        "1,B,2020-01-01T00:00:00,2020-01-01T00:00:01Z,1,no zone",
        "1,C,2020-01-02T00:00:00Z,2020-01-01T00:00:00Z,1,negative",
        "1,D,2020-01-02T00:00:00Z,2020-01-03T00:00:00Z,inf,not finite",
        ",E,2020-01-02T00:00:00Z,,1,no case",
        "1,,2020-01-02T00:00:00Z,,1,no activity",
        "1,F,2020-01-02T00:00:00Z",
        "1,G,soon,,1,ann@example.org +31 20 1234567 NL91ABNA0417164300",
        '1,H,"2020"x,,1,bad quote',
        "",
        "1,I,2020-01-04T00:00:00Z,2020-01-04T00:00:00Z,0,größer",
    ]
    content = (header + "\n".join(rows) + "\n").encode() + b"1,\xff,,,,\n2,J,2020-01-04T00:00:00Z,,1,ok\n"
    cases, rejects, state = bench.one("log.csv", content)
    assert {case_id: keys(case) for case_id, case in cases.items()} == {"2": ["J"]}
    assert [(r["position"], r["reason_code"]) for r in rejects] == [
        (2, "case_quarantined"),
        (3, "no_timezone"),
        (4, "negative_duration"),
        (5, "not_finite"),
        (6, "no_case"),
        (7, "no_activity"),
        (8, "bad_row"),
        (9, "bad_time"),
        (10, "bad_row"),
        (12, "case_quarantined"),
        (13, "encoding"),
    ]
    assert {r["case_id"] for r in rejects} == {"1", None}
    assert [r["position"] for r in rejects if r["case_id"] is None] == [6]
    assert [(r["cause_path"], r["cause_position"]) for r in rejects if r["reason_code"] == "case_quarantined"] == [
        ("log.csv", 3)
    ] * 2
    assert [r["cause_path"] for r in rejects if r["reason_code"] != "case_quarantined"] == [None] * 9
    assert "not UTF-8 (byte 0xFF after '1 ')" in rejects[-1]["reason"]
    assert all(r["position_unit"] == "line" for r in rejects)
    assert 'timezone = "..."' in rejects[1]["reason"]
    assert "[email] [number] [account]" in rejects[7]["record"]
    assert rejects[8]["record"] == '1,H,"2020"x,,1,bad quote\n'
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_rejected"]) == (12, 1, 11)
    assert (row["cases_quarantined"], row["records_without_case"], row["implementations"]) == (1, 1, 1)
    assert "2 lines are UTF-8 (the first: line 2," in row["mixed_encodings"]
    assert "1 line is not (the first: line 13," in row["mixed_encodings"]
    assert state.failed == []


def test_unknown_columns_are_refused_with_the_cure(bench: Any) -> None:
    cases, _, state = bench.one("log.csv", "Order No,Step,When\n1,A,2020-01-01\n")
    assert cases == {}
    (line,) = state.failed
    assert " Order No, Step, When" in line
    assert line.endswith('\ncase = "Order No"\nactivity = "Step"\ntime = "When"')


@pytest.mark.parametrize(
    ("content", "settings", "reason"),
    [
        (
            "a,b\n1,2\n",
            '[columns]\ncase = "x"\nactivity = "b"',
            "it has no column x as source.toml says; the columns found are a, b",
        ),
        ("", "", "the file is empty"),
        ('"a\n', "", "no header"),
    ],
)
def test_whole_files_that_are_refused(bench: Any, content: str, settings: str, reason: str) -> None:
    _, _, state = bench.one("log.csv", content, settings)
    assert reason in state.files[0]["reason"]
    assert state.files[0]["status"] == "rejected"


def test_utf_16_and_repeated_column_names(bench: Any) -> None:
    content = "case_id,activity,x,x\n1,Prüfen,1,2\n".encode("utf-16")
    assert bench.one("log.csv", content)[0]["1"]["tasks"][0]["attributes"] == [("x", "1"), ("x (4)", "2")]


def test_a_case_in_two_files_is_put_together(bench: Any, keys: Any) -> None:
    bench.put("s/a.csv", "case_id,activity\n1,A\n")
    cases, rejects, _ = bench.one("b.csv", "case_id,activity\n1,B\n2,C\n1,D\n")
    found = {case_id: (keys(case), case["path"]) for case_id, case in cases.items()}
    assert found == {"1": (["A", "B", "D"], "a.csv"), "2": (["C"], "b.csv")}
    assert rejects == []


def test_redacted_columns_never_reach_the_lake(bench: Any) -> None:
    rows = "1,A,,Ann Smith,NL91ABNA0417164300,ann@example.org\n2,B,soon,Ann Smith,NL91,ann@example.org\n2,C\n"
    content = "case_id,activity,timestamp,name,iban,mail\n" + rows
    cases, rejects, _ = bench.one("log.csv", content, '[redact]\ndrop = ["name"]\nhash = ["iban"]\nmask = ["mail"]')
    attributes = dict(cases["1"]["tasks"][0]["attributes"])
    assert attributes.keys() == {"iban", "mail"}
    assert attributes["mail"] == "***"
    assert attributes["iban"].startswith("h")
    assert rejects[1]["record"].startswith("(withheld")
    written = b"".join(f.read_bytes() for f in bench.lake.root.rglob("*.parquet")) + str([cases, rejects]).encode()
    assert b"Ann Smith" not in written
    assert b"ann@example" not in written


def test_a_column_tells_how_many_runs_a_case_stands_for(bench: Any) -> None:
    rows = "1,A,3\n1,B,\n2,A,\n3,A,0\n4,A,2.5\n5,A,1e9\n"
    cases, rejects, _ = bench.one("log.csv", "case,activity,runs\n" + rows, 'weight = { column = "runs" }')
    assert {case_id: case["weight"] for case_id, case in cases.items()} == {"1": 3, "2": 1, "5": 1_000_000_000}
    assert [(r["position"], r["reason_code"]) for r in rejects] == [(5, "bad_weight"), (6, "bad_weight")]
    assert dict(cases["1"]["tasks"][0]["attributes"]) == {}


@pytest.mark.parametrize("above", ["sep=,\n", "Report of May\n\n", "# made by a tool\n", "Report,,,\n,,,\n"])
@pytest.mark.parametrize("repeated", [1, 2_000])
def test_lines_above_the_header_are_no_records(bench: Any, keys: Any, above: str, repeated: int) -> None:
    rows = [f"c{n},A,2024-03-01T09:00:00Z,Ann\nc{n},B,2024-03-01T10:00:00Z,Bob\n" for n in range(repeated)]
    content = above + "case_id,activity,timestamp,resource\n" + "".join(rows) + "c0,,2024-03-01T09:00:00Z,Ann\n"
    cases, rejects, state = bench.one("log.csv", content)
    assert (len(cases), state.files[0]["records"]) == (repeated - 1, 2 * repeated + 1)
    lines = above.count("\n") + 2 * repeated + 2
    assert [r["position"] for r in rejects if r["reason_code"] == "no_activity"] == [lines]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PK\x03\x04......[Content_Types].xml....xl/workbook.xml", "*.xlsx"),
        (b"PK\x03\x04......word/document.xml", "Word"),
        (b"PK\x03\x04......a.csv", "ZIP"),
        (b"PAR1....", "*.parquet"),
        (b"SQLite format 3\0....", "SQLite"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".xls"),
        (b"%PDF-1.7", "PDF"),
        (b"\n<html><body><table><tr><td>1</td></tr></table>", "web page"),
        (b'<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">', "web page"),
        (b"\x00\x01\x00\x02abc\x00\x00\x07", "no text"),
    ],
)
def test_what_is_no_csv_is_told_by_its_first_bytes(bench: Any, content: bytes, told: str) -> None:
    assert told in bench.one("log.csv", content)[2].failed[0]
