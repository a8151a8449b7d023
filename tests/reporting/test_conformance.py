"""`opus conformance` on a lake whose cases take four paths, so that every figure is counted again by hand."""

import json
from pathlib import Path
from statistics import mean, median

import pyarrow.parquet as pq
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import InputError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.conformance import CONFORMS, conformance, in_words
from opus_pipelines.reporting.views import connect
from tests.reporting.process_lake import HOUR, TITLES, Row, cases_of, write_lake

MODEL = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p">
<task id="a" name="register"/><task id="b" name="CHECK_PAPERS"/><task id="c" name="Decide"/><task id="d" name="Pay"/>
<task id="e" name="Archive"/><sequenceFlow id="f" sourceRef="a" targetRef="b"/>
<sequenceFlow id="g" sourceRef="b" targetRef="c"/><sequenceFlow id="h" sourceRef="c" targetRef="d"/>
<sequenceFlow id="i" sourceRef="d" targetRef="e"/></process></definitions>"""
DEVIATIONS = {  # of the steps t1, t2, t3, t4 in this order
    ("t1", "t2", "t3", "t4"): [],
    ("t1", "t2", "t2", "t3", "t5"): ["added: t2", "left out: t4", "added: t5"],
    ("t1", "t3", "t2", "t3", "t4"): ["added: t3"],
    ("t2", "t5"): ["left out: t1", "left out: t3", "left out: t4", "added: t5"],
}
FITNESS = {4: 1.0, 5: 1 - 3 / 9, 2: 1 - 4 / 6}  # by length; the third path is 1 - 1 / 9


@pytest.fixture(scope="module")
def cases() -> list[Row]:
    return [case for case in cases_of(7) if case["kind"] == "executed" and case["p_ended"] >= 0.5]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return write_lake(tmp_path_factory.mktemp("conformance") / "lake", cases_of(7))


def test_a_ranked_workflow_is_compared_with_its_own_clients_cases_by_task(lake: Lake, cases: list[Row]) -> None:
    """Its nodes have no titles, so that only the ids of their tasks say which steps of cases they are."""
    own = [case for case in cases if case["client"] == "Acme"]
    found = conformance(connect(lake), "f1", {})
    assert (found.compared, found.unmatched) == ("client Acme", [])
    fitness = [1 - 1 / 9 if case["tasks"][1] == "t3" else FITNESS[len(case["tasks"])] for case in own]
    assert found.measures.fitness == pytest.approx(mean(fitness))
    conforming = [case for case in own if len(case["tasks"]) == 4]
    assert (found.measures.cases, found.measures.conforming) == (len(own), len(conforming))
    first, *others = found.deviations
    assert (first["deviation"], first["activity"]) == CONFORMS
    assert (first["cases"], first["share"]) == (len(conforming), pytest.approx(len(conforming) / len(own)))
    outcomes = [case["success"] for case in conforming if case["success"] is not None]
    assert first["success_share"] == pytest.approx(mean(outcomes))
    assert first["lead_hours_p50"] == median(case["lead_time_ms"] / HOUR for case in conforming)
    expected: dict[str, int] = {}
    for case in own:
        for deviation in DEVIATIONS[tuple(case["tasks"])]:
            expected[deviation] = expected.get(deviation, 0) + 1
    names = {f"n{task}": task for task in TITLES} | {title: task for task, title in TITLES.items()}
    assert {f"{row['deviation']}: {names[row['activity']]}": row["cases"] for row in others} == expected
    assert [row["cases"] for row in others] == sorted(expected.values(), reverse=True)


def test_a_file_is_compared_with_the_cases_of_the_scope_by_any_spelling_of_names(
    lake: Lake, cases: list[Row], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "model.bpmn", tmp_path / "cases.parquet"
    model.write_text(MODEL, "utf-8")
    command = ["--lake", str(lake.root), "conformance", str(model), "--source", "bank", "--format", "json"]
    assert main([*command, "-o", str(out)]) == 0
    told = capsys.readouterr()
    rows = json.loads(told.out)
    own = {case["implementation_id"]: case for case in cases if case["source"] == "bank"}
    assert {row["activity"] for row in rows} == {"", "register", "CHECK_PAPERS", "Decide", "Pay", "Archive", "Refuse"}
    assert rows[0]["cases"] == 0  # no case is archived
    assert rows[1] | {"success_share": 0, "cost_usd_mean": 0, "lead_hours_p50": 0} == {
        "deviation": "left out", "activity": "Archive", "cases": len(own), "share": 1.0,
        "success_share": 0, "cost_usd_mean": 0, "lead_hours_p50": 0,
    }  # fmt: skip
    assert "Archive" in told.err
    written = pq.read_table(out).to_pylist()
    assert {row["implementation_id"] for row in written} == set(own)
    for row in written:
        assert len(row["deviations"]) == len(DEVIATIONS[tuple(own[row["implementation_id"]]["tasks"])]) + 1


def test_the_table_shows_shares_and_the_measures_below(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lake", str(lake.root), "conformance", "f1"]) == 0
    head, first, *_, last = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["deviation", "activity", "cases", "share"]
    assert first.startswith("none: conforms")
    assert " % " in first
    assert last == in_words(conformance(connect(lake), "f1", {}))[-1]


@pytest.mark.parametrize(
    ("model", "scope", "reason"),
    [
        ("absent.bpmn", {}, "absent.bpmn"),
        ("f1", {"client": "Nobody"}, "client Nobody"),
        ("other.bpmn", {}, "'Glue'"),
        ("other.txt", {}, "other.txt"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    lake: Lake, tmp_path: Path, model: str, scope: dict[str, str | None], reason: str
) -> None:
    (tmp_path / "other.bpmn").write_text(MODEL.split("<task")[0] + '<task id="a" name="Glue"/></process></definitions>')
    path = model if model == "f1" else str(tmp_path / model)
    with pytest.raises(InputError, match=reason):
        conformance(connect(lake), path, scope)
