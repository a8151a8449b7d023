import pytest
from pydantic import ValidationError

from opus_pipelines.history.records.source_settings import Columns
from tests.history_fixtures import Bench

TIMES = "2024-01-01T08:00:00Z", "2024-01-01T09:00:00Z"
RIGHT = [(f"c{n}", name) for n in range(30) for name in ("open", "shut")]


def table(rows: list[tuple[str, str]], times: tuple[str, ...] = TIMES[:1]) -> str:
    head = "case,activity," + ("time" if len(times) == 1 else "start,end")
    return "\n".join([head, *(",".join([*row, *times]) for row in rows)]) + "\n"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([RIGHT], None),
        ([[(name, case) for case, name in RIGHT]], "more activities (30) than cases (2)"),
        ([RIGHT, [("open", "c1"), ("shut", "c2")]], "2 of 2 cases of one file have names of activities"),
        ([[("c1", f"step {n}") for n in range(20)]], None),
        ([[*RIGHT, ("open", "shut"), ("shut", "open")]], None),
    ],
    ids=["right", "exchanged", "exchanged in one file", "one long case", "by chance"],
)
def test_a_night_says_that_columns_may_be_exchanged_and_says_it_again(
    bench: Bench, files: list[list[tuple[str, str]]], told: str | None
) -> None:
    for number, rows in enumerate(files):
        bench.put(f"s/{number}.csv", table(rows))
    for _ in range(2):  # the second night reads nothing
        lines = bench.read().failed
        assert len(lines) == (told is not None)
        assert [line for line in lines if told is None or not line.startswith("s: ") or told not in line] == []


def test_a_doubt_that_is_kept_names_nothing_of_the_data(bench: Bench) -> None:
    bench.put("s/a.csv", table(RIGHT))
    bench.put("s/b.csv", table([("open", "c1"), ("shut", "c2")]))
    bench.read()
    kept = (bench.lake.kept / "history.json").read_text("utf-8")
    assert "have names of activities" in kept
    assert [name for name in ('"open"', "'open'", "'c1'") if name in kept] == []


def test_exchanged_times_are_rejected_record_by_record(bench: Bench) -> None:
    bench.put("s/a.csv", table(RIGHT, (TIMES[1], TIMES[0])))
    (line,) = bench.read(max_quarantined_share=0.01).failed
    assert line.startswith("s: 30 of 30 cases")
    assert {reject["reason_code"] for reject in bench.rejects()} == {"negative_duration"}


@pytest.mark.parametrize("reads_by_records", [False, True], ids=["by columns", "by records"])
@pytest.mark.parametrize(
    ("setting", "cases"), [("", ["0012", "12", "A07", "007"]), ("strip_zeros = true", ["12", "7", "A07"])]
)
def test_padded_ids_of_several_files_are_one_case_where_the_settings_say_so(
    bench: Bench, setting: str, cases: list[str], reads_by_records: bool
) -> None:
    bench.put("s/a.csv", table([("0012", "open"), ("007", "open"), ("A07", "open")]))
    bench.put("s/b.csv", table([("12", "shut")]))
    template = 'activity = "{activity}"\n' if reads_by_records else ""
    bench.put("s/source.toml", f'{template}[columns]\ncase = "case"\n{setting}\n')
    found = bench.cases()
    assert sorted(found) == sorted(cases)
    steps = [task["task_key"] for task in found["12"]["tasks"]]
    assert sorted(steps) == (["open", "shut"] if setting else ["shut"])


def test_padded_ids_are_joined_within_a_file_and_hashed_alike(bench: Bench) -> None:
    bench.put("s/a.csv", table([("0012", "open"), ("12", "shut"), ("000", "open")]))
    bench.put("s/source.toml", '[columns]\ncase = "case"\nstrip_zeros = true\n')
    assert sorted(bench.cases()) == ["0", "12"]
    bench.put("s/source.toml", '[columns]\ncase = "case"\nstrip_zeros = true\n[redact]\nhash = ["case"]\n')
    assert sorted(len(case["tasks"]) for case in bench.cases().values()) == [1, 2]


def test_stripping_needs_the_name_of_the_column() -> None:
    with pytest.raises(ValidationError, match="strip_zeros needs case"):
        Columns(strip_zeros=True)
