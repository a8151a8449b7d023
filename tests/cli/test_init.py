"""`opus init` and `opus check`: an export to settings that a rebuild follows untouched."""

import csv
import gzip
import io
import json
import re
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.ingestion.ingest import read_history
from opus_pipelines.lake.layout import Lake, read_table

START = datetime(2024, 1, 8, 9, 17, 3, tzinfo=UTC)
STEPS = ("Permit SUBMITTED by EMPLOYEE", "Permit APPROVED by SUPERVISOR", "Start trip", "End trip", "Payment Handled")


def write_csv(path: Path, header: list[str], rows: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def trips(count: int = 40) -> list[list[str]]:
    """Cases of a travel process; every fourth is rejected. Attributes of the case stand in each of its rows, some with
    misleading names.
    """
    rows = []
    for number in range(count):
        steps = (STEPS[0], "Permit REJECTED by SUPERVISOR") if number % 4 == 3 else STEPS
        own = ["yes" if number % 3 else "no", f"{10 + number}.5", "STAFF", f"task {number % 2}"]
        for place, step in enumerate(steps):
            when = START + timedelta(days=number, hours=5 * place)
            rows.append([f"t{number}", step, when.isoformat(), "SYSTEM" if step.startswith("Pay") else "Ann", *own])
    return rows


HEADER = ["case_id", "activity", "timestamp", "resource", "(case)_Activity", "(case)_Cost_Type", "org:role", "event"]


def test_an_export_is_read_as_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = write_csv(tmp_path / "train.csv", HEADER, trips())
    assert (
        main(["init", str(export), "--to", str(tmp_path / "history" / "trips"), "--industry", "travel", "--yes"]) == 0
    )
    shown = capsys.readouterr().out
    for line in (
        "cases            40",
        "activities       6: 3 steps, 2 events, 1 outcome; 170 occurrences",
        "period           2024-01-08 to 2024-02-16",
        'candidate      last_activity_in = ["Payment Handled"]: 30 successful, 10 not',
        'candidate      contains_none_of = ["Permit REJECTED by SUPERVISOR"]: 30 successful, 10 not',
    ):
        assert line in shown
    settings = tomllib.loads((tmp_path / "history" / "trips" / "source.toml").read_text("utf-8"))
    assert settings == {
        "industry": "travel",
        "columns": {
            "case": "case_id",
            "activity": "activity",
            "time": "timestamp",
            "actor": "resource",
            "attributes": ["(case)_Activity", "(case)_Cost_Type", "org:role", "event"],
        },
        "activities": {"event": ["End trip", "Start trip"], "outcome": ["Permit REJECTED by SUPERVISOR"]},
    }
    state = read_history(Lake(tmp_path / "lake"), tmp_path / "history", START)
    assert state.failed == []
    assert (state.files[0]["records_used"], state.files[0]["records_rejected"]) == (170, 0)
    rows = {row["case_id"]: row for row in read_table(IMPLEMENTATIONS, state.sources[0].folder).to_pylist()}
    assert dict(rows["t1"]["attributes"]) == {
        "Activity": "yes",
        "Cost_Type": "11.5",
        "event": "task 1",
        "org:role": "STAFF",
    }
    assert {row["success"] for row in rows.values()} == {None}


@pytest.mark.long
def test_check_says_the_same_and_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "history" / "trips"
    main(["init", str(write_csv(tmp_path / "train.csv", HEADER, trips())), "--to", str(source), "--yes"])
    capsys.readouterr()
    assert main(["check", "trips", "--history", str(tmp_path / "history")]) == 0
    shown = capsys.readouterr().out
    assert "activities       6: 3 steps, 2 events, 1 outcome; 170 occurrences" in shown
    assert re.search(r"open cases +0 of 40 .*silence", shown)
    toml = source / "source.toml"
    toml.write_text(toml.read_text("utf-8") + '[forecasts]\nopen_cases = "none"\n', "utf-8")
    assert main(["check", "trips", "--history", str(tmp_path / "history")]) == 0
    assert re.search(r"open cases +0 of 40 .*stated", capsys.readouterr().out)
    toml.write_text(toml.read_text("utf-8").replace('"Start trip"]', '"Start tripp"]'), "utf-8")
    assert main(["check", str(source)]) == 1
    said = capsys.readouterr().err
    assert "[activities] event: 'Start tripp'" in said
    assert "'Start trip'" in said
    toml.write_text('[columns]\ncase = "nothing"\n', "utf-8")
    assert main(["check", str(source)]) == 1
    assert "no column nothing" in capsys.readouterr().err


def test_a_cut_gzip_file_is_named_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = gzip.compress(write_csv(tmp_path / "plain.csv", HEADER, trips(400)).read_bytes())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert main(["init", str(tmp_path / "cut.csv.gz"), "--to", str(tmp_path / "h" / "s"), "--yes"]) == 1
    error = capsys.readouterr().err
    assert [part for part in ("cut.csv.gz", "gzip", "fetch it again") if part not in error] == []
    assert not (tmp_path / "h").exists()


INTERVALS = ["case_id", "activity", "start_time", "end_time"]


def intervals(case: str, activity: str, first: int, last: int) -> list[str]:
    return [case, activity, f"2024-01-01T{first:02d}:00:00Z", f"2024-01-01T{last:02d}:00:00Z"]


def test_init_and_check_say_why_records_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begins = {"open": 9, "shut": 12}
    rows = [
        intervals(f"c{n}", name, begin, begin - 1 if n < 3 else begin + 1)
        for n in range(40)
        for name, begin in begins.items()
    ]
    export = write_csv(tmp_path / "export.csv", INTERVALS, rows)
    assert main(["init", str(export), "--to", str(tmp_path / "h" / "s"), "--yes"]) == 1
    error = capsys.readouterr().err
    assert [part for part in ("6 of 80 records", "negative_duration", "3,600 s") if part not in error] == []
    assert "opus query" not in error  # there is no lake that could be asked
    source = tmp_path / "h" / "s"
    source.mkdir(parents=True)
    write_csv(source / "export.csv", INTERVALS, [*rows, *(intervals("c0", "late", 15, 16 + n) for n in range(2))])
    assert main(["check", str(source)]) == 1
    error = capsys.readouterr().err
    assert [part for part in ("6 of 82 records", "negative_duration", "2 more") if part not in error] == []


@pytest.mark.parametrize(
    ("rows", "doubts"),
    [
        ([[f"c{n}", name] for n in range(30) for name in ("open", "shut")], []),
        ([*([f"c{n}", name] for n in range(30) for name in ("open", "shut")), ["open", "c1"]], ["'c1', 'open': both"]),
        ([[("open", "shut")[n % 2], f"c{n // 2}"] for n in range(60)], ["more activities (30) than cases (2)"]),
        (
            [[name, "open"] for n in range(30) for name in (f"Zürich {n}", f"Zu\u0308rich {n}", f" Zürich  {n} ")],
            ["60 ids of cases are other spellings"],
        ),
        ([[f"{n:0{width}}", name] for n in range(1, 9) for width, name in ((3, "open"), (1, "shut"))], ["8 ids of"]),
    ],
    ids=["right", "exchanged in one file", "exchanged", "alike", "padded"],
)
def test_what_may_be_wrong_although_it_can_be_read_is_shown(
    rows: list[list[str]], doubts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "s"
    source.mkdir()
    write_csv(source / "export.csv", ["case", "activity", "time"], [[*row, "2024-01-01T08:00:00Z"] for row in rows])
    main(["check", str(source)])
    shown = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("doubt")]
    assert len(shown) == len(doubts)
    assert [doubt for doubt, line in zip(doubts, shown, strict=True) if doubt not in line] == []


@pytest.mark.parametrize(
    ("rate", "last", "setting"),
    [("", 10, "[rates]"), ("human = 30", 10, "actor_kind"), ("open = 30", None, "start and end")],
    ids=["no price", "no kind", "no time"],
)
def test_a_cost_that_is_missing_names_the_setting_that_tells_it(
    rate: str, last: int | None, setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "s"
    source.mkdir()
    rows = [intervals(f"c{n}", "open", 9, last or 9) for n in range(5)]
    write_csv(source / "export.csv", INTERVALS if last else ["case", "activity", "time", "x"], rows)
    (source / "source.toml").write_text(f"[rates]\n{rate}\n", "utf-8")
    main(["check", str(source)])
    missing = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("missing")]
    assert [setting in line for line in missing if "costs" in line] == [True]


def test_times_that_were_not_found_are_said_to_be_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"id": str(n), "tasks": [{"name": name, "at": "on a Monday"} for name in ("a", "b")]} for n in range(9)]
    export = tmp_path / "log.jsonl"
    export.write_text("\n".join(map(json.dumps, records)), "utf-8")
    assert main(["init", str(export), "--to", str(tmp_path / "s"), "--yes"]) == 0
    missing = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("missing")]
    assert ["times" in line for line in missing].count(True) == 1


def test_repeated_records_are_not_shown_as_no_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "s"
    source.mkdir()
    rows = [[f"c{n}", "open", "2024-01-01T08:00:00Z"] for n in range(30)]
    write_csv(source / "export.csv", ["case", "activity", "time"], [*rows, *rows[:4]])
    assert main(["check", str(source)]) == 0
    assert "34 records: 34 used, 0 no work, 0 rejected" in capsys.readouterr().out
    (source / "source.toml").write_text('[events]\nrepeated = "drop"\n')
    assert main(["check", str(source)]) == 0
    assert "34 records: 30 used, 0 no work, 4 repeated, 0 rejected" in capsys.readouterr().out


def test_a_plain_outcome_column_becomes_the_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[*row, "rejected" if int(row[0][1:]) % 4 == 3 else "paid"] for row in trips()]
    source = tmp_path / "history" / "s"
    assert (
        main(
            ["init", str(write_csv(tmp_path / "a.csv", [*HEADER, "Final status"], rows)), "--to", str(source), "--yes"]
        )
        == 0
    )
    assert "outcomes         30 cases succeeded, 10 did not" in capsys.readouterr().out
    settings = tomllib.loads((source / "source.toml").read_text("utf-8"))
    assert settings["success"] == {"column": "Final status", "equals": ["paid"]}
    assert "Final status" not in settings["columns"]["attributes"]


def test_what_is_called_an_outcome_is_no_attribute_of_the_case(tmp_path: Path) -> None:
    """Its values do not say which are good, so that it is no rule either; it is a candidate."""
    rows = [[*row, "corrected later" if int(row[0][1:]) % 4 == 3 else "accepted", "A trip"] for row in trips()]
    source = tmp_path / "history" / "s"
    assert (
        main(
            [
                "init",
                str(write_csv(tmp_path / "a.csv", [*HEADER, "outcome", "Title"], rows)),
                "--to",
                str(source),
                "--yes",
            ]
        )
        == 0
    )
    text = (source / "source.toml").read_text("utf-8")
    assert tomllib.loads(text)["columns"]["attributes"] == ["(case)_Activity", "(case)_Cost_Type", "org:role", "event"]
    assert tomllib.loads(text)["columns"]["title"] == "Title"
    assert '# column = "outcome", equals = [...]  # accepted: 150, corrected later: 20' in text


def test_a_column_called_status_whose_values_say_nothing_is_no_rule(tmp_path: Path) -> None:
    rows = [[*row, "red" if int(row[0][1:]) % 4 == 3 else "blue"] for row in trips()]
    source = tmp_path / "history" / "s"
    assert (
        main(["init", str(write_csv(tmp_path / "a.csv", [*HEADER, "status"], rows)), "--to", str(source), "--yes"]) == 0
    )
    text = (source / "source.toml").read_text("utf-8")
    assert "success" not in tomllib.loads(text)
    assert '# column = "status", equals = [...]  # blue: 150, red: 20' in text


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        (
            ["a", "b", "when"],
            [["x", "y", "2024-01-01T00:00:00Z"]],
            "cannot be told which column is the case; the columns are 'a', 'b', 'when'",
        ),
        (
            ["case_id", "activity", "n"],
            [["1", "x", "5"], ["1", "y", "6"]],
            "it cannot be told which column is the time",
        ),
        (["case_id", "activity", "time"], [], "it has no rows below a header of columns"),
    ],
)
def test_what_cannot_be_told_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: list[str], rows: list[Any], message: str
) -> None:
    assert main(["init", str(write_csv(tmp_path / "a.csv", header, rows)), "--to", str(tmp_path / "s"), "--yes"]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_a_stated_column_wins(tmp_path: Path) -> None:
    rows = [[f"g{n // 2}", str(n % 2), f"2024-01-0{n % 9 + 1}T00:00:00Z", "ab"[n % 2]] for n in range(18)]
    export = write_csv(tmp_path / "a.csv", ["x", "y", "z", "w"], rows)
    assert (
        main(
            ["init", str(export), "--to", str(tmp_path / "s"), "--case", "x", "--activity", "w", "--time", "z", "--yes"]
        )
        == 0
    )
    assert tomllib.loads((tmp_path / "s" / "source.toml").read_text())["columns"] == {
        "case": "x",
        "activity": "w",
        "time": "z",
    }


def test_no_is_no_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    export = write_csv(tmp_path / "train.csv", HEADER, trips())
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert main(["init", str(export), "--to", str(tmp_path / "s")]) == 0
    assert not (tmp_path / "s").exists()
    assert main(["init", str(export), "--to", str(tmp_path / "s"), "--yes"]) == 0
    before = (tmp_path / "s" / "source.toml").read_bytes()
    assert main(["init", str(export), "--to", str(tmp_path / "s"), "--yes"]) == 1
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "s" / "source.toml").read_bytes() == before


@pytest.mark.parametrize("column", ["Rolle", "org:role", "Team"])
def test_a_role_of_people_is_proposed_and_reaches_history(tmp_path: Path, column: str) -> None:
    rows = [[*row[:3], "SUPERVISOR" if "SUPERVISOR" in row[1] else "EMPLOYEE"] for row in trips()]
    export = write_csv(tmp_path / "train.csv", [*HEADER[:3], column], rows)
    assert main(["init", str(export), "--to", str(tmp_path / "history" / "trips"), "--yes"]) == 0
    settings = tomllib.loads((tmp_path / "history" / "trips" / "source.toml").read_text("utf-8"))
    assert settings["columns"]["actor_group"] == column
    state = read_history(Lake(tmp_path / "lake"), tmp_path / "history", START)
    steps = [task for row in read_table(IMPLEMENTATIONS, state.sources[0].folder).to_pylist() for task in row["tasks"]]
    assert {dict(task["attributes"])["actor_group"] for task in steps} == {"EMPLOYEE", "SUPERVISOR"}
