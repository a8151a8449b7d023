"""`opus decide` on a lake made by hand: what is kept, what is shown, and what is refused."""

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.schemas import DECISIONS, OPTIMIZED
from opus_pipelines.intakes.decisions.record import decisions_of
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.reporting.views import connect
from tests.reporting.conftest import CLIENT, CONTRACT, put, workflow


def run(lake: Lake, *arguments: str) -> tuple[int, str]:
    """Exit code and stdout."""
    with redirect_stdout(io.StringIO()) as out:
        code = main(["--lake", str(lake.root), *arguments])
    return code, out.getvalue()


@pytest.mark.long
def test_a_decision_is_kept_with_its_workflow_and_shown_beside_it(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(lake, "decide", "fa2", "accept", "--why", "the team\x1b[31m knows it", "--by", "Ines")[0] == 0
    assert "fa2 is accepted (decision 1)" in capsys.readouterr().err
    (kept,) = decisions_of(lake, CLIENT, CONTRACT).all
    assert (kept.number, kept.decision, kept.workflow_id, kept.intention_id, kept.result, kept.rank) == (
        1,
        "accept",
        "fa2",
        "i1",
        "r2",
        2,
    )
    assert (kept.why, kept.decided_by) == ("the team [31m knows it", "Ines")
    assert [(step.task_id, step.title, step.actor) for step in kept.steps] == [("tc", "Check", ("human", None, None))]
    files = list((lake.root / "decisions").glob("*/*/*.parquet"))
    assert [f.relative_to(lake.root).parts[1:] for f in files] == [
        (f"client_key={slug(CLIENT)}", f"contract_key={slug(CONTRACT)}", "decision-000001.parquet"),
    ]
    row = connect(lake).sql("SELECT client, contract, number, decision, why FROM decisions").fetchall()
    assert row == [(CLIENT, CONTRACT, 1, "accept", "the team [31m knows it")]
    said = "accepted by Ines: the team [31m knows it; it is rank 1 from the next `opus generate` on"
    assert said in run(lake, "explain", "fa2")[1]
    assert "decision" in run(lake, "best", "--top", "5")[1]
    header, line = run(lake, "query", "decisions", "--format", "csv")[1].splitlines()
    assert header.startswith("client,contract,intake,number,decision,workflow_id,why")
    assert line.startswith(f"{CLIENT},{CONTRACT},claim-1,1,accept,fa2,the team [31m knows it,Ines,")
    assert line.endswith(",2,,,,")  # ranked second as before, until the contract is generated anew


@pytest.mark.long
def test_without_decisions_nothing_is_said_of_them(lake: Lake) -> None:
    assert "decision" not in run(lake, "best")[1]
    assert "decision:" not in run(lake, "explain", "fa1")[1]


@pytest.mark.long
def test_two_decisions_on_one_intake_are_both_kept_and_the_last_one_stands(lake: Lake) -> None:
    for workflow_id in ("fa2", "fa1"):
        assert run(lake, "decide", workflow_id, "accept")[0] == 0
    found = decisions_of(lake, CLIENT, CONTRACT)
    assert [d.number for d in found.all] == [1, 2]
    assert found.chosen("i1").workflow_id == "fa1"
    assert run(lake, "decide", "fa1", "reject")[0] == 0
    assert decisions_of(lake, CLIENT, CONTRACT).chosen("i1").workflow_id == "fa2"


def test_a_rejection_is_taken_back_when_the_workflow_is_ranked_no_more(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(lake, "decide", "fa2", "reject", "--why", "no")[0] == 0
    put(
        lake,
        OPTIMIZED,
        lake.folder(OPTIMIZED, client_key=CLIENT, contract_key=CONTRACT, result="r2"),
        workflow("fa1", 1, 8.0),
    )
    assert run(lake, "decide", "fa2", "accept")[0] == 0
    found = decisions_of(lake, CLIENT, CONTRACT)
    assert [d.decision for d in found.all] == ["reject", "accept"]
    assert found.rejected("i1") == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("fzz", "accept"), 1, "no current workflow is called 'fzz'"),
        (("f_old", "accept"), 1, "f_old stands in result r1 of ../Nord/wind 50% / 007, which is not the current one"),
        (("fa", "accept"), 1, "'fa' begins several workflows: fa1, fa2"),
        (("fa1", "edit"), 2, "edit needs the FILE"),
        (("fa1", "reject", "x.yaml"), 2, "reject takes no FILE"),
        (("fa1", "burn"), 2, "'burn' is not one of"),
        (("fa1", "edit", "nowhere.yaml"), 1, "nowhere.yaml: no such file"),
        (("fa1", "edit", "/etc/passwd"), 1, "a workflow is read from .yaml, .yml, .json or .bpmn"),
        (("../../fa1", "accept"), 1, "no current workflow is called '../../fa1'"),
        (("fa1", "accept", "--why", "x" * 3000), 1, "--why has 3000 characters"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_is_kept(
    lake: Lake,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    assert run(lake, "decide", *arguments)[0] == code
    assert said in capsys.readouterr().err
    assert not (lake.root / "decisions").exists()


HOSTILE = {
    "bomb.yaml": "a: &a [x, x]\nb: &b [*a, *a]\ntasks: *b\n",
    "deep.json": "[" * 100_000,
    "entity.bpmn": '<!DOCTYPE d [<!ENTITY e SYSTEM "file:///etc/passwd">]><d>&e;</d>',
    "list.yaml": "- 1\n- 2\n",
    "unknown.yaml": (
        "inputs: [{id: i}]\ntasks: [{id: a, title: Fly to the moon}]\noutputs: [{id: o, gain_usd: "
        "1}]\nedges: [[i, a], [a, o]]\n"
    ),
    "cycle.yaml": (
        "inputs: [{id: i}]\ntasks: [{id: a, title: Check}, {id: b, title: Pay}]\noutputs: [{id: o, gain_usd: 1}]\n"
        "edges: [[i, a], [a, b], [b, a], [b, o]]\n"
    ),
    "latin.yaml": "title: \xe9",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_or_broken_file_is_refused_in_one_line(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = tmp_path / name
    path.write_text(HOSTILE[name], "latin-1")
    assert run(lake, "decide", "fa1", "edit", str(path))[0] == 1
    error = capsys.readouterr().err
    assert name in error
    assert "unexpected" not in error
    assert not (lake.root / "decisions").exists()


def test_an_edited_workflow_is_kept_as_the_person_wrote_it(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "inputs: [{id: i}]\ntasks: [{id: a, title: Pay}, {id: b, title: check it}]\noutputs: [{id: o, gain_usd: 1}]\n"
        "edges: [[i, a], [a, b], [b, o]]\n"
    )
    assert run(lake, "decide", "fa1", "edit", str(path), "--by", "Ines")[0] == 0
    assert "2. Check by nobody known, after 1" in capsys.readouterr().err
    (kept,) = decisions_of(lake, CLIENT, CONTRACT).all
    assert (kept.decision, kept.content.tasks, kept.content.waits) == ("edit", ("tp", "tc"), {("tp", "tc")})


def test_forgetting_the_client_takes_the_decisions(lake: Lake, tmp_path: Path) -> None:
    assert run(lake, "decide", "fa1", "reject")[0] == 0
    from opus_pipelines.wkg.upkeep import client_traces, erasure

    assert CLIENT in client_traces.clients_of(lake)
    erasure.remove_results(lake, CLIENT)
    assert not lake.folder(DECISIONS, client_key=CLIENT).exists()
    assert decisions_of(lake, CLIENT, CONTRACT).all == ()


def test_decisions_of_others_on_tasks_of_the_forgotten_client_alone_go_too(lake: Lake) -> None:
    from opus_pipelines.lake.search import Word
    from opus_pipelines.wkg.upkeep import erasure

    assert run(lake, "decide", "fa1", "reject")[0] == 0
    assert erasure.remove_decisions(lake, "Other", [Word("task", "t_nobody")]) == []
    assert len(decisions_of(lake, CLIENT, CONTRACT).all) == 1
    assert erasure.remove_decisions(lake, "Other", [Word("task", "tp")]) == [(CLIENT, CONTRACT)]
    assert decisions_of(lake, CLIENT, CONTRACT).all == ()
