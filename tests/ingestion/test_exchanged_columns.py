import pytest

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
        ([RIGHT, [("open", "c1"), ("shut", "c2")]], "4 names are both a case and an activity"),
        ([[("c1", f"step {n}") for n in range(20)]], None),
    ],
    ids=["right", "exchanged", "exchanged in one file", "one long case"],
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
    assert "both a case and an activity" in kept
    assert [name for name in ('"open"', "'open'", "'c1'") if name in kept] == []


def test_exchanged_times_are_rejected_record_by_record(bench: Bench) -> None:
    bench.put("s/a.csv", table(RIGHT, (TIMES[1], TIMES[0])))
    (line,) = bench.read(max_quarantined_share=0.01).failed
    assert line.startswith("s: 30 of 30 cases")
    assert {reject["reason_code"] for reject in bench.rejects()} == {"negative_duration"}
