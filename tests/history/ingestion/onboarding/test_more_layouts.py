"""Exports whose ids are given within a client, whose activities are codes, and whose records are JSON."""

import json
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import InputError, UnclearColumn
from opus_pipelines.history.discovery.discover import discover
from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated

STEPS = ["Register", "Check", "Register", "Pay"]


def understood(*files: Path, **stated: Any) -> tuple[dict[tuple[str, str | None], list[str]], str, set[str]]:
    """The steps of each case by id and client, the settings, and who did it."""
    with propose_settings("s", files, Stated(**stated)) as proposal:
        assert proposal.trial.failed == []
        rows = [r for file in sorted(proposal.trial.folder.glob("*.parquet")) for r in pq.read_table(file).to_pylist()]
        if files[-1].suffix == ".csv":  # it is counted by columns
            assert discover(proposal.source, {}).counts.implementations == len(rows)
        actors = {t["actor"] for r in rows for t in r["tasks"]}
        return {(r["case_id"], r["client"]): [t["task_key"] for t in r["tasks"]] for r in rows}, proposal.toml, actors


def numbered(column: str, values: list[str]) -> str:
    """A log in which each of these values has its own cases 1 to 20."""
    rows = [
        f"{value};{case};{step};2024-0{1 + place}-{case:02} 1{n}:00"
        for case in range(1, 21)
        for place, value in enumerate(values)
        for n, step in enumerate(STEPS)
    ]
    return "\n".join([f"{column};Declaration no;Step;Time", *rows]) + "\n"


@pytest.mark.parametrize("column", ["client", "Mandant", "Cliente"])
def test_ids_that_two_clients_use_are_two_cases(tmp_path: Path, column: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(numbered(column, ["Acme", "Beta"]))
    cases, toml, _ = understood(file)
    assert cases == {(f"{name} {n}", name): STEPS for name in ("Acme", "Beta") for n in range(1, 21)}
    assert f'scope = "{column}"' in toml


def test_ids_within_another_column_are_asked_about_and_stated(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(numbered("Plant", ["North", "South"]))
    with pytest.raises(UnclearColumn) as asked:
        understood(file)
    assert (asked.value.role, list(asked.value.columns)) == ("scope", ["Plant", "none"])
    assert len(understood(file, columns={"scope": "Plant"})[0]) == 40
    whole, toml, _ = understood(file, columns={"scope": "none"})
    assert (len(whole), "scope" in toml) == (20, False)


def test_one_client_a_case_is_its_client_and_customers_are_attributes(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    for clients, told in ((["Acme", "Beta"], {"Acme", "Beta"}), ([f"Ms {n}" for n in range(21)], {None})):
        rows = [
            f"c{n},{clients[n % len(clients)]},{step},2024-01-{n:02} 1{m}:00"
            for n in range(1, 21)
            for m, step in enumerate(STEPS)
        ]
        file.write_text("\n".join(["case,client,activity,time", *rows]))
        cases, toml, _ = understood(file)
        assert {client for _, client in cases} == told
        assert ('attributes = ["client"]' in toml) == (told == {None})


def test_a_table_of_codes_names_the_activities(tmp_path: Path) -> None:
    events, codes = tmp_path / "GBS.txt", tmp_path / "CODES.txt"
    rows = [f"A{n:04}|0{m + 1}0|202401{1 + n % 20:02}1{m}00|OP{n % 3}" for n in range(60) for m in range(3 + n % 2)]
    events.write_text("\n".join(["FINE-NO|EVT-CD|EVT-DT|OPER", *rows]))
    codes.write_text("EVT-CD|EVT-DESC    \n010|Create fine \n020|Send fine   \n030|Payment     \n040|Close file  \n")
    cases, toml, actors = understood(codes, events)
    assert cases["A0000", None] == ["Create fine", "Send fine", "Payment"]
    assert (len(cases), actors) == (60, {"OP0", "OP1", "OP2"})
    assert '040 = "Close file"' in toml


def test_a_task_list_is_read_by_when_its_tasks_opened_and_closed(tmp_path: Path) -> None:
    rows = [f"T{n}{m},R{n},{step},0{m + 1}.03.2024 10:00,0{m + 1}.03.2024 1{m + 1}:30" for n in range(30)
            for m, step in enumerate(("Prüfen", "Buchen"))]  # fmt: skip
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["Nummer,Übergeordnet,Kurzbeschreibung,Geöffnet,Geschlossen", *rows]))
    cases, toml, _ = understood(file)
    assert (len(cases), cases["R0", None]) == (30, ["Prüfen", "Buchen"])
    assert ('start = "Geöffnet"' in toml, 'end = "Geschlossen"' in toml) == (True, True)


def test_hours_without_a_day_and_numbers_of_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [f"J{n},{step},0{m + 7}:15" for n in range(20) for m, step in enumerate(("Pick", "Pack"))]
    file.write_text("\n".join(["Job,Operation,From", *rows]))
    with pytest.raises(InputError, match="'From'"):
        understood(file)
    rows = [f"B{n};{step};0{n}.11.2023;{m}" for n in (1, 2) for m, step in ((10, "Send"), (2, "Check"), (9, "Sign"))]
    file.write_text("\n".join(["Vorgang;Schritt;Datum;Lfd. Nr.", *rows]))
    assert understood(file)[0] == {(f"B{n}", None): ["Check", "Sign", "Send"] for n in (1, 2)}


def events(n: int) -> list[dict[str, Any]]:
    """The events of a ticket: its states, and a comment."""
    states = ["New", "Open", "Solved"]
    told = [{"type": "Change", "field_name": "status", "value": s, "previous_value": b}
            for s, b in zip(states, [None, *states], strict=False)]  # fmt: skip
    told.insert(2, {"type": "Comment", "body": "Taken"})
    return [
        {"id": 100 * n + m, "ticket_id": n, "created_at": f"2024-01-{1 + n:02}T1{m}:00:00Z", "tags": ["a"], "event": e,
         "author": {"name": f"Agent {n % 3}"}}
        for m, e in enumerate(told)
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "b.json"])
def test_json_whose_records_are_events(tmp_path: Path, name: str) -> None:
    file, records = tmp_path / name, [one for n in range(20) for one in events(n)]
    lines = "".join(json.dumps(one) + "\n" for one in records)
    file.write_text(
        {"a.jsonl": lines, "a.json": json.dumps(records, indent=1)}.get(name, json.dumps({"audits": records}))
    )
    cases, toml, _ = understood(file)
    assert cases == {(str(n), None): ["New", "Open", "Solved"] for n in range(20)}
    assert 'format = "json_events"' in toml


HEAD = "Vorgangsnr.;Tätigkeit;Zeitpunkt;Wer"


def log(*more: str) -> list[str]:
    """The rows of twenty cases; `more` are cells that stand in each row, with {n} for the case."""
    return [
        ";".join([f"V{n}", step, f"{n:02}.01.2024 1{m}:00", f"P{n % 3}", *(cell.format(n=n) for cell in more)])
        for n in range(1, 21)
        for m, step in enumerate(("Prüfen", "Buchen", "Senden")[: 2 + n % 2])
    ]


def with_sums(rows: list[str]) -> list[str]:
    return [line for n, row in enumerate(rows) for line in (row, *([f"Summe {n};;;"] if n % 2 else []))]


@pytest.mark.parametrize(
    "lines",
    [
        [HEAD, *log()[:20], HEAD, *log()[20:], HEAD],  # a printed list
        [HEAD, *with_sums(log())],
        [f"{HEAD};;", *(f"{row};;" for row in log()), *[";;;;;"] * 30],
        [HEAD, *log(), "", "-- Ende der Auswertung --", "Erstellt am 03.02.2025 von Roth"],
    ],
)
def test_rows_that_are_no_events_are_left_out(tmp_path: Path, lines: list[str]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\n".join(lines))
    cases, _, actors = understood(file)
    assert cases == {(f"V{n}", None): ["Prüfen", "Buchen", "Senden"][: 2 + n % 2] for n in range(1, 21)}
    assert actors == {"P0", "P1", "P2"}


def test_what_is_known_at_the_end_and_what_is_planned(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    spans = {n: (1 + n % 2, 2 + n % 2) for n in range(1, 21)}  # hours from the first event to the last, and rows
    rows = []
    for row in log():
        n = int(row.split(";")[0][1:])
        rows.append(f"{row};{spans[n][0]};{spans[n][1]};0{len(rows) % 9 + 1}.02.2024 12:00;{n % 2}")
    file.write_text("\n".join([f"{HEAD};Laufzeit;Schritte;Fällig;claim_paid", *rows]))
    _, toml, _ = understood(file)
    assert ("attributes" in toml, 'time = "Zeitpunkt"' in toml) == (False, True)


def test_a_column_of_dates_that_mixes_two_readings_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    days = [row.split(";") for row in log()]
    for n, cells in enumerate(days):
        day, _, rest = cells[2].partition(".01.2024")
        cells[2] = f"{day}/01/2024{rest}" if n % 2 else f"01/{day}/2024{rest}"
    rows = [";".join(cells) for cells in days]
    file.write_text("\n".join([HEAD, *rows]))
    with pytest.raises(InputError, match="mixes two readings"):
        understood(file)


def test_rows_that_a_join_has_doubled_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\n".join([f"{HEAD};Artikel", *(f"{row};{item}" for row in log() for item in ("A1", "B2"))]))
    with pytest.raises(InputError, match="'Artikel'"):
        understood(file)


def test_cells_of_one_width_have_no_blanks(tmp_path: Path) -> None:
    file, rows = tmp_path / "a.txt", [HEAD, *log("{n}")]
    rows = [";".join(f"{cell:16}" for cell in (row + ";x" if n == 0 else row).split(";")) for n, row in enumerate(rows)]
    file.write_text("\n".join(rows))
    cases, _, actors = understood(file)
    assert cases["V1", None] == ["Prüfen", "Buchen", "Senden"]
    assert actors == {"P0", "P1", "P2"}


def test_an_id_that_is_printed_once_a_case(tmp_path: Path) -> None:
    file, rows, before = tmp_path / "a.csv", [], ""
    for row in log():
        case, _, rest = row.partition(";")
        rows.append(f";{rest}" if case == before else row)
        before = case
    file.write_text("\n".join([HEAD, *rows]))
    cases, toml, _ = understood(file)
    assert cases == {(f"V{n}", None): ["Prüfen", "Buchen", "Senden"][: 2 + n % 2] for n in range(1, 21)}
    assert 'fill = ["Vorgangsnr."]' in toml


@pytest.mark.parametrize("is_workbook", [False, True])
def test_a_header_of_two_rows(tmp_path: Path, is_workbook: bool) -> None:
    file = tmp_path / ("a.xlsx" if is_workbook else "a.csv")
    head = (
        ["Vorgang", "", "Beginn", "", "Ende", "", "Wer"],
        ["Nummer", "Tätigkeit", *["Datum", "Uhrzeit"] * 2, "Bearbeiter"],
    )
    rows = [[f"V{n}", step, f"{n:02}.01.2024", f"1{m}:00", f"{n:02}.01.2024", f"1{m}:30", "Ann"] for n in range(1, 21)
            for m, step in enumerate(STEPS)]  # fmt: skip
    if is_workbook:
        book = openpyxl.Workbook()
        for row in (*head, *rows):
            book.active.append([cell or None for cell in row])
        book.create_sheet("Kunden").append(["Nummer", "Region"])
        book["Kunden"].append(["V1", "Nord"])
        book.save(file)
    else:
        file.write_text("\n".join(";".join(row) for row in (*head, *rows)))
    cases, toml, actors = understood(file)
    assert cases == {(f"V{n}", None): STEPS for n in range(1, 21)}
    assert ('end = ["Ende Datum", "Ende Uhrzeit"]' in toml, "'Kunden'" in toml, actors) == (True, is_workbook, {"Ann"})


def test_a_file_that_is_not_like_the_others_ends_init(tmp_path: Path) -> None:
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("\n".join([HEAD, *log()]))
    other.write_text("\n".join(["Case;Activity;Time;User", *log()]))
    with pytest.raises(InputError, match=r"b\.csv"):
        understood(one, other)


def test_ids_of_which_one_file_has_decimals_are_joined(tmp_path: Path) -> None:
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, ending, steps in zip(files, (".0", ""), (STEPS[:2], STEPS[2:]), strict=True):
        rows = [
            f"{n}{ending},{step},2024-{1 + files.index(file):02}-{n:02} 1{m}:00"
            for n in range(1, 21)
            for m, step in enumerate(steps)
        ]
        file.write_text("\n".join(["case_id,activity,timestamp", *rows]))
    with propose_settings("s", files, Stated()) as proposal:
        rows = [r for file in sorted(proposal.trial.folder.glob("*.parquet")) for r in pq.read_table(file).to_pylist()]
        seventh = [[t["task_key"] for t in row["tasks"]] for row in rows if row["case_id"] == "7"]
        assert (len(rows), seventh, "strip_zeros = true" in proposal.toml) == (20, [STEPS], True)


def test_a_workstation_that_does_the_same_again_and_again_is_no_case(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [f"2024-01-{1 + n // 24:02} {n % 24:02}:00:00,{STEPS[n % 3]},U{n % 7},WS{n % 5:02}" for n in range(500)]
    file.write_text("\n".join(["Timestamp,Operation,User,Workstation", *rows]))
    with pytest.raises(InputError, match="which column is the case"):
        understood(file)


def test_a_sheet_with_the_column_of_the_cases_is_not_left_out(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    events, cases = book.active, book.create_sheet("cases")
    events.title = "events"
    events.append(["case_id", "activity", "time"])
    cases.append(["case_id", "client"])
    for n in range(1, 21):
        cases.append([f"c{n}", "Acme"])
        for m, step in enumerate(STEPS):
            events.append([f"c{n}", step, f"2024-01-{n:02} 1{m}:00"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="'cases'"):
        understood(tmp_path / "a.xlsx")
    assert len(understood(tmp_path / "a.xlsx", sheet="events")[0]) == 20
