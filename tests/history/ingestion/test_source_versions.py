"""A source that cannot be read without loss keeps its last good version, says so, and the other sources go on."""

from typing import Any

import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.lake.layout import read_table
from opus_pipelines.reporting.status import report
from opus_pipelines.reporting.views import connect, write_views_sql
from tests.history_fixtures import Bench

HEADER = "case_id,activity,timestamp\n"


def log(cases: int, bad: int = 0) -> str:
    """A log of so many cases of two events, in the first `bad` of which the second event has no time that
    can be read.
    """
    rows = [
        f"{n},A,2020-01-01T00:00:00Z\n{n},B,{'soon' if n < bad else '2020-01-02T00:00:00Z'}\n" for n in range(cases)
    ]
    return HEADER + "".join(rows)


def in_use(state: Any) -> dict[str, tuple[str, int]]:
    return {s.source: (s.status, read_table(IMPLEMENTATIONS, s.folder).num_rows) for s in state.sources}


@pytest.fixture
def strict(bench: Any) -> Any:
    """A bench with the limit that is shipped."""
    read = bench.read
    bench.read = lambda **options: read(**{"max_quarantined_share": 0.01} | options)
    return bench


@pytest.mark.parametrize(
    ("cases", "bad", "held"), [(100, 1, False), (99, 1, True), (200, 2, False), (200, 3, True), (1, 1, True)]
)
def test_the_share_of_cases_decides(strict: Bench, cases: int, bad: int, held: bool) -> None:
    strict.put("s/log.csv", log(cases, bad))
    strict.put("t/log.csv", log(3))
    state = strict.read()
    assert in_use(state) == ({} if held else {"s": ("loaded", cases - bad)}) | {"t": ("loaded", 3)}
    assert [line.partition(":")[0] for line in state.held] == (["s"] if held else [])
    assert state.failed == state.held
    row = next(row for row in state.files if row["source"] == "s")
    assert (row["records"], row["records_used"], row["records_rejected"]) == (2 * cases, 2 * (cases - bad), 2 * bad)
    assert (row["implementations"], row["cases_quarantined"], row["status"]) == (
        cases - bad,
        bad,
        "held" if held else "loaded",
    )


@pytest.mark.long
def test_a_source_over_the_limit_keeps_its_last_good_version_until_it_is_mended(strict: Bench) -> None:
    strict.put("s/log.csv", log(10))
    strict.put("t/log.csv", log(3))
    first = strict.read()
    good = next(s for s in first.sources if s.source == "s")
    strict.put("s/log.csv", log(20, bad=4))
    second = strict.read()
    assert in_use(second) == {"s": ("held", 10), "t": ("unchanged", 3)}
    held = second.sources[0]
    assert (held.content, held.folder, held.implementations) == (good.content, good.folder, 10)
    (line,) = second.held
    assert line.startswith("s: 4 of 20 cases (20.0%) ")
    assert all(part in line for part in ("1.0%", "history.max_quarantined_share", "8 of 40 records", "(10 cases)"))
    row = second.files[0]
    assert (row["status"], row["version"], row["records_rejected"], row["cases_quarantined"]) == (
        "held",
        good.content,
        8,
        4,
    )
    files = {p: p.stat().st_mtime_ns for p in strict.lake.root.rglob("*.parquet")}
    third = strict.read()  # said again, without reading it again
    assert (third.held, third.changed) == (second.held, False)
    assert files == {p: p.stat().st_mtime_ns for p in strict.lake.root.rglob("*.parquet")}
    assert in_use(strict.read(max_quarantined_share=0.2)) == {"s": ("loaded", 16), "t": ("unchanged", 3)}
    assert in_use(strict.read())["s"] == ("held", 16)  # the limit holds again: what was good by the other limit stays
    strict.put("s/log.csv", log(20))
    assert in_use(strict.read()) == {"s": ("loaded", 20), "t": ("unchanged", 3)}
    assert strict.read().failed == []


def test_rejects_say_which_record_was_the_cause_and_which_went_with_it(strict: Bench) -> None:
    strict.put("s/log.csv", log(200, bad=1))
    strict.read()
    assert [
        (r["position"], r["reason_code"], r["case_id"], r["cause_path"], r["cause_position"]) for r in strict.rejects()
    ] == [
        (2, "case_quarantined", "0", "log.csv", 3),
        (3, "bad_time", "0", None, None),
    ]


@pytest.mark.parametrize("settings", ['industri = "x"', "industry = ", 'format = "word"'])
def test_a_typo_in_source_toml_keeps_the_last_good_version(strict: Bench, settings: str) -> None:
    strict.put("s/source.toml", 'industry = "travel"\nmerge = false')
    strict.put("s/log.csv", log(480))
    strict.put("t/log.csv", log(3))
    good = strict.read().sources[0]
    strict.put("s/source.toml", settings)
    for _ in range(2):
        state = strict.read()
        assert in_use(state) == {"s": ("held", 480), "t": ("unchanged", 3)}
        (line,) = state.held
        assert line.startswith("s: ")
        assert "source.toml" in line
        assert "(480 cases)" in line
        held = state.sources[0]
        assert (held.content, held.industry, held.merge) == (good.content, "travel", False)
        assert state.files[0]["status"] == "rejected"
        assert state.files[0]["version"] == good.content
    strict.put("s/source.toml", 'industry = "travel"\nmerge = false')
    state = strict.read()
    assert (in_use(state)["s"][1], state.failed) == (480, [])


def test_a_file_of_the_version_that_cannot_be_read_any_more_keeps_the_version(strict: Bench) -> None:
    strict.put("s/1.csv", log(5))
    strict.put("s/2.csv.gz", log(5).replace("\n", "\nx")[:-1])
    good = strict.read().sources[0]
    (strict.history / "s" / "2.csv.gz").write_bytes(b"\x1f\x8bbroken")
    strict.put("s/1.csv", log(7))
    state = strict.read()
    assert in_use(state) == {"s": ("held", 10)}
    assert state.sources[0].content == good.content
    assert [row["status"] for row in state.files] == ["held", "rejected"]
    assert state.held[0].startswith("s: 2.csv.gz cannot be read")


def test_a_file_that_no_version_has_holds_back_what_comes_later(strict: Bench) -> None:
    strict.put("s/1.csv", log(5))
    strict.put("s/2.csv", "Order No,Step\n1,A\n")
    for status in (
        "loaded",
        "unchanged",
    ):  # there is nothing to fall back on: the rest is used, and said to lack a file
        state = strict.read()
        assert (in_use(state), len(state.failed), state.held) == ({"s": (status, 5)}, 1, [])
    strict.put("s/1.csv", log(6))
    assert in_use(strict.read()) == {"s": ("loaded", 6)}
    strict.put("s/3.csv", "Order No,Step\n1,A\n")  # events of these cases may stand in it
    state = strict.read()
    assert (in_use(state), len(state.held)) == ({"s": ("held", 6)}, 1)
    (strict.history / "s" / "3.csv").unlink()
    assert in_use(strict.read()) == {"s": ("unchanged", 6)}


def test_a_file_that_is_no_log_holds_nothing_back(strict: Bench) -> None:
    strict.put("s/1.csv", log(5))
    strict.read()
    strict.put("s/notes.docx", "x")
    strict.put("s/2.csv", log(1).replace("\n0,", "\n9,"))
    state = strict.read()
    assert in_use(state) == {"s": ("loaded", 6)}
    assert (len(state.failed), state.held) == (1, [])


def test_models_that_cannot_be_read_hold_no_other_model_back(strict: Bench) -> None:
    task = '<process id="p"><task id="a" name="A"/></process>'
    strict.put(
        "s/1.bpmn",
        f'<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">{task}<process id="q"/></definitions>',
    )
    assert in_use(strict.read()) == {"s": ("loaded", 1)}


def test_a_forgotten_clients_cases_leave_the_version_that_is_kept(strict: Bench) -> None:
    rows = "".join(f"{n},A,2020-01-01T00:00:00Z,{'Z' if n % 2 else 'Y'}\n" for n in range(10))
    strict.put("s/source.toml", 'client = { column = "client" }')
    strict.put("s/log.csv", "case_id,activity,timestamp,client\n" + rows)
    good = strict.read().sources[0]
    strict.put("s/source.toml", "cliant = 1")
    from opus_pipelines.history.records.forgotten_clients import Forgotten

    Forgotten.of(strict.lake).with_client("Z", ["s"]).save(strict.lake)
    state = strict.read()
    (kept,) = state.sources
    assert kept.content != good.content
    assert set(read_table(IMPLEMENTATIONS, kept.folder)["client"].to_pylist()) == {"Y"}
    assert strict.read().sources[0].content == kept.content


@pytest.mark.long
def test_status_tells_what_was_rejected_and_which_version_is_in_use(strict: Bench) -> None:
    strict.put("a/log.csv", log(10))
    strict.put("b/log.csv", log(10, bad=5))
    strict.read()
    strict.put("a/log.csv", log(10, bad=9))
    state = strict.read()
    strict.lake.ensure_empty()
    write_views_sql(strict.lake)
    blocks = {title: (columns, rows) for title, columns, rows in report(connect(strict.lake), strict.lake)}
    columns, rows = blocks["Sources"]
    shown = [dict(zip(columns, row, strict=True)) for row in rows]
    keys = ("source", "records", "records_used", "records_rejected", "cases_quarantined", "in_use", "version")
    assert [tuple(row[key] for key in keys) for row in shown] == [
        ("a", 20, 2, 9, 9, "the last good version", state.sources[0].content),
        ("b", 20, 10, 5, 5, "none", None),
    ]
    _, rows = blocks["What could not be used"]
    assert [row[:2] for row in rows] == [
        ("records", "a"),
        ("records", "b"),
        ("source held back", "a"),
        ("source held back", "b"),
    ]
    assert rows[0][2].startswith("18 of 20 records rejected, 9 cases ")
    rejects = (
        connect(strict.lake)
        .execute("SELECT source, count(*) FROM history_rejects GROUP BY source ORDER BY source")
        .fetchall()
    )
    assert rejects == [("a", 18), ("b", 10)]
