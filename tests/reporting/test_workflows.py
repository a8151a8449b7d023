"""A workflow read back from the lake and written out again: the same figures, the same Reward."""

from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect
from opus_pipelines.reporting.workflows import between, described, read_workflow
from opus_pipelines.workflow.files import Weights
from opus_pipelines.workflow.formats.bpmn import as_bpmn, from_bpmn
from opus_pipelines.workflow.formats.registry import as_mermaid

HEAD = {
    "workflow_id": "f1",
    "title": "Settle",
    "gain_usd": 20.0,
    "weights": '{"usd_per_hour_of_duration":3.0,"lambda":0.25}',
}
COLUMNS = (
    "kind",
    "task_id",
    "title",
    "description",
    "inputs",
    "outputs",
    "instructions",
    "actor_kind",
    "model",
    "actor_group",
    "p",
    "p_basis",
    "q",
    "q_basis",
    "cost_usd",
    "cost_compute_usd",
    "cost_model_usd",
    "cost_human_usd",
    "cost_basis",
    "duration_ms",
    "duration_basis",
    "memory_gb",
    "threads",
    "gain_usd",
    "success_probability",
    "cohesion",
    "coupling",
    "observability",
    "hygiene",
    "start_ms",
    "finish_ms",
    "evidence",
    "origin",
)


def row(node: str, **known: object) -> dict[str, object]:
    return dict.fromkeys(COLUMNS) | {"node": node} | known


NODES = [
    row("input", kind="input", title="Claim", success_probability=0.9),
    row(
        "a",
        kind="task",
        task_id="tc",
        title="Check",
        p=0.95,
        q=0.1,
        cost_usd=0.3,
        cost_human_usd=0.25,
        cost_basis="observed",
        duration_ms=6e4,
        instructions=[{"kind": "human", "text": "Look."}, {"kind": "human", "text": None}],
        cohesion=0.25,
        observability=0.5,
        evidence=3,
        memory_gb=0.5,
        start_ms=0.0,
        finish_ms=6e4,
    ),
    row("r", kind="review", title="Second look", p=0.99, q=0.8, cost_usd=1.0, duration_ms=1e4, origin="review"),
    row("output", kind="output", title="Letter", gain_usd=20.0),
]
LINKS = [
    {"src": s, "dst": d, "data_type": t}
    for s, d, t in (("input", "a", None), ("a", "r", "note"), ("r", "output", None))
]


def test_rows_become_the_workflow_with_its_scores_weights_and_times() -> None:
    found = described(HEAD, NODES, LINKS)
    check, review = found.workflow.tasks
    assert (check.p, check.q, check.memory_gb) == (0.95, 0.1, 0.5)
    assert (check.cost_usd, check.cost_human_usd, check.cost_model_usd) == (0.3, 0.25, None)
    assert (check.cost_basis, check.p_basis, check.instructions) == ("observed", "prior", ("Look.",))
    assert (review.kind, review.id, review.task_id) == ("review", "r", "Second look")
    assert (found.workflow.inputs[0].prior, found.workflow.outputs[0].gain_usd) == (0.9, 20.0)
    assert found.workflow.edges == (("a", "r"), ("input", "a"), ("r", "output"))
    scores = found.tasks["a"].scores
    assert scores is not None
    assert (scores.cohesion, scores.coupling, scores.observability, scores.hygiene) == (0.25, None, 0.5, None)
    assert found.file.weights == Weights(usd_per_hour_of_duration=3.0, **{"lambda": 0.25})
    assert (found.start_ms, found.evidence, found.data_types) == ({"a": 0.0}, {"a": 3}, {("a", "r"): "note"})


PLACES = {"tc": ("step", 0), "tq": ("event", 1), "tp": ("step", 2), "te": ("event", 3)}


def pair(src: str, dst: str, support: float | None) -> dict[str, object]:
    ends = {"src": src, "dst": dst, "support": support}
    return (
        ends
        | {
            f"{s}_{name}": v
            for s in ("src", "dst")
            for name, v in zip(("kind", "place"), PLACES[str(ends[s])], strict=True)
        }
        | {
            "src_title": src.upper(),
            "dst_title": dst.upper(),
        }
    )


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        ([], {}),
        ([pair("tc", "tp", 0.9)], {}),
        (
            [pair("tc", "tq", 0.45), pair("tq", "tp", 0.3), pair("tq", "tc", 0.6)],
            {("n0", "n1"): ("TQ (45 %)", "back to TC (60 %)")},
        ),
        ([pair("tc", "tc", 0.5), pair("tc", "tp", None)], {("n0", "n1"): ("again (50 %)",)}),
        ([pair("tp", "te", None)], {("n1", "out"): ("TE",)}),
    ],
)
def test_events_and_returns_stand_at_the_link_behind_their_step(
    flow: list[dict[str, object]], expected: dict[object, str]
) -> None:
    nodes = [
        row("in", kind="input"),
        row("n0", kind="task", task_id="tc"),
        row("n1", kind="task", task_id="tp"),
        row("out", kind="output"),
    ]
    links = [{"src": a, "dst": b} for a, b in (("in", "n0"), ("n0", "n1"), ("n1", "out"))]
    assert between(flow, nodes, links) == expected


def test_what_comes_before_the_first_step_stands_behind_the_input() -> None:
    flow = [pair("tq", "tp", 0.7), pair("tc", "tq", 0.25)]
    nodes = [
        row("in", kind="input"),
        row("n1", kind="task", task_id="tp"),
        row("r", kind="review"),
        row("out", kind="output"),
    ]
    links = [{"src": a, "dst": b} for a, b in (("in", "n1"), ("n1", "r"), ("r", "out"))]
    assert between(flow, nodes, links) == {("in", "n1"): ("TQ (25 %)",)}


def test_a_result_of_an_older_version_has_its_gain_from_the_whole() -> None:
    old = [*NODES[:-1], row("output", kind="output", title="Letter")]
    assert described(HEAD | {"weights": None}, old, LINKS).workflow.outputs[0].gain_usd == 20.0
    with pytest.raises(LakeError, match="f1: the gain of output output"):
        described(HEAD, [*old, row("two", kind="output", title="Copy")], LINKS)


def test_a_workflow_without_a_stated_gain_is_read_and_written_without_one() -> None:
    nodes = [*NODES[:-1], row("output", kind="output", title="Letter")]
    found = described(HEAD | {"gain_usd": None}, nodes, LINKS)
    assert found.workflow.outputs[0].gain_usd is None
    assert from_bpmn(as_bpmn(found), "w.bpmn").outputs[0].gain_usd is None


def test_a_row_that_is_no_task_is_named() -> None:
    with pytest.raises(LakeError, match=r"workflow f1 .* 1 validation error for TaskEntry"):
        described(HEAD, [row("a", kind="task", title="Check", p=1.5)], [])


def test_from_the_lake(lake: Lake) -> None:
    found = read_workflow(connect(lake), "fa1")
    assert [t.title for t in found.workflow.tasks] == ["Check", "Pay"]
    assert found.workflow.edges == (("n0", "n1"), ("n1", "n2"))


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("bpmn", b"<?xml version='1.0' encoding='UTF-8'?>"),
        ("mermaid", b"%% Settle a claim"),
        ("json", b'{\n  "title": "Settle a claim"'),
        ("yaml", b"title: Settle a claim"),
        (None, b"title: Settle a claim"),
    ],
)
def test_to_stdout(lake: Lake, capfdbinary: pytest.CaptureFixture[bytes], form: str | None, begins: bytes) -> None:
    assert main(["--lake", str(lake.root), "export", "fa1", *(["--to", form] if form else [])]) == 0
    assert capfdbinary.readouterr().out.startswith(begins)


@pytest.mark.parametrize("name", ["w.bpmn", "w.json", "w.yaml"])
def test_what_is_exported_is_scored(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["--lake", str(lake.root), "export", "fa1", "--out", str(tmp_path / name)]) == 0
    assert f"written: {tmp_path / name}" in capsys.readouterr().err
    assert main(["score", str(tmp_path / name)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "cost_usd (5) 4.00" in lines


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["export", "fa"], 1, "'fa' begins several workflows: fa1, fa2"),
        (["export", "fa3"], 1, "no current workflow is called 'fa3'; the nearest: fa2, fa1"),
        (["export", "fa1", "--to", "visio"], 2, "'visio' is not one of"),
        (["export", "fa1", "--out", "/nowhere/x.bpmn"], 1, "/nowhere: no such folder for x.bpmn"),
        (["report", "--client", "Nobody"], 1, "no results for that; there are results of: ../Nord/wind 50% / 007"),
    ],
)
def test_what_goes_wrong(
    lake: Lake, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["--lake", str(lake.root), *arguments]) == code
    assert message in capsys.readouterr().err


def test_explain_draws(lake: Lake, tmp_path: Path) -> None:
    assert main(["--lake", str(lake.root), "explain", "fa1", "--svg", str(tmp_path / "w.svg")]) == 0
    assert (tmp_path / "w.svg").read_text("utf-8").startswith("<svg ")


def test_an_unknown_cost_or_time_is_read_back_as_unknown() -> None:
    nodes = [
        NODES[0],
        NODES[1] | {"cost_usd": None, "cost_human_usd": None, "cost_basis": None, "duration_ms": None},
        *NODES[2:],
    ]
    found = described(HEAD, nodes, LINKS)
    check = found.workflow.tasks[0]
    assert (check.known_cost_usd, check.known_duration_ms, check.cost_basis, check.duration_basis) == (
        None,
        None,
        "unknown",
        "unknown",
    )
    assert "cost unknown" in as_mermaid(found)
    assert "time unknown" in as_mermaid(found)
    assert from_bpmn(as_bpmn(found), "w.bpmn").workflow().tasks[0] == check
