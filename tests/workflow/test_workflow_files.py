"""Workflow files: what is read of them, and what is refused with which words."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import InputError, SettingsError, WorkflowError
from opus_pipelines.workflow.files import schema
from opus_pipelines.workflow.formats.registry import read_file

GOOD = """
title: Pay a claim
inputs: [{id: claim, prior: 0.9, data_type: pdf}]
tasks:
  - {id: check, p: 0.95, q: 0.2, cost_human_usd: 2.5, cost_model_usd: 0.5, duration_ms: 60000, actor_kind: human, holds: {desk: 1}}
  - {id: pay, title: Pay out, consumes: {kwh: 0.1}, instructions: [open the account, pay]}
outputs: [{id: paid, gain_usd: 20}]
edges: [[claim, check], [check, pay], [pay, paid]]
"""


def write(folder: Path, text: str, name: str = "w.yaml") -> Path:
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def test_a_file_becomes_a_workflow(tmp_path: Path) -> None:
    file = read_file(write(tmp_path, GOOD))
    workflow = file.workflow()
    check, pay = workflow.tasks
    assert (file.title, workflow.inputs[0].prior, workflow.outputs[0].gain_usd) == ("Pay a claim", 0.9, 20.0)
    assert (check.cost_usd, check.cost_human_usd, check.duration_ms, check.holds) == (3.0, 2.5, 60_000.0, {"desk": 1.0})
    assert (pay.title, pay.task_id, pay.p, pay.q, pay.consumes, pay.instructions) == (
        "Pay out",
        "Pay out",
        1.0,
        0.0,
        {"kwh": 0.1},
        ("open the account", "pay"),
    )


def test_a_price_of_a_catalogue_is_a_basis_of_a_cost_and_of_nothing_else(tmp_path: Path) -> None:
    priced = GOOD.replace("cost_human_usd: 2.5", "cost_human_usd: 2.5, cost_basis: declared")
    assert read_file(write(tmp_path, priced)).workflow().tasks[0].cost_basis == "declared"
    with pytest.raises(SettingsError, match="duration_basis"):
        read_file(write(tmp_path, priced.replace("cost_basis", "duration_basis")))


def test_json_is_the_same(tmp_path: Path) -> None:
    text = '{"inputs": [{"id": "a"}], "outputs": [{"id": "b", "gain_usd": 1}], "edges": [["a", "b"]]}'
    assert read_file(write(tmp_path, text, "w.json")).workflow().edges == (("a", "b"),)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("a: &x [1]\nb: *x\n", InputError, r"line 2: aliases \(\*x\) are not read"),
        ("inputs: [\n", InputError, "w.yaml: while parsing"),
        ("- 1\n", InputError, "a workflow is a table"),
        ("taskz: []\n", SettingsError, "unknown key taskz; did you mean tasks?"),
        ("tasks: [{id: a, p: 1.5}]\n", SettingsError, r"tasks.0.p: Input should be less than or equal to 1"),
        ("tasks: [{id: a, cost_usd: -1}]\n", SettingsError, "tasks.0.cost_usd"),
        ("tasks: [{id: a, duration_ms: .nan}]\n", SettingsError, "tasks.0.duration_ms"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        read_file(write(tmp_path, text))


def test_every_defect_of_the_graph_is_listed_at_once(tmp_path: Path) -> None:
    text = """
tasks: [{id: a}, {id: b}, {id: a}]
outputs: [{id: o, gain_usd: 1}]
edges: [[a, b], [b, a], [x, o]]
"""
    with pytest.raises(WorkflowError) as caught:
        read_file(write(tmp_path, text)).workflow()
    for words in ("node 'a' occurs 2 times", "edge 'x' -> 'o': no node 'x'", "cycle 'a' -> 'b' -> 'a'"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"), [("w.txt", "is read from .yaml, .yml, .json or .bpmn"), ("none.yaml", "no such file")]
)
def test_other_files_are_refused(tmp_path: Path, name: str, words: str) -> None:
    if name == "w.txt":
        write(tmp_path, GOOD, name)
    with pytest.raises(InputError, match=words):
        read_file(tmp_path / name)


def test_deep_nesting_and_wrong_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_file(write(tmp_path, "[" * 100_000, "w.json"))
    (tmp_path / "latin.yaml").write_bytes("title: Prüfung\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        read_file(tmp_path / "latin.yaml")


def test_the_schema_says_what_each_key_means() -> None:
    task = schema()["$defs"]["TaskEntry"]["properties"]
    assert task["p"]["description"] == "P(it succeeds | all its parents did)"
    assert task["p"]["maximum"] == 1
    assert set(schema()["properties"]) == {"title", "weights", "inputs", "tasks", "outputs", "edges"}


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("cost_eur: 3", "tasks.0.cost_eur: its unit is 'eur', US dollars are read; convert it and write cost_usd"),
        ("cost_human_gbp: 3", "tasks.0.cost_human_gbp: its unit is 'gbp', US dollars are read"),
        (
            "duration_s: 180",
            "tasks.0.duration_s: its unit is 's', milliseconds are read; convert it and write duration_ms",
        ),
        ("duration: 3 min", "tasks.0.duration: it does not say its unit; write duration_ms, a number of milliseconds"),
        (
            "duration_ms: 3 min",
            "tasks.0.duration_ms: '3 min' comes with the unit 'min'; write a plain number of milliseconds",
        ),
        ("cost_usd: €3.50", "tasks.0.cost_usd: '€3.50' comes with the unit '€'; write a plain number of US dollars"),
        ("memory_mb: 512", "tasks.0.memory_mb: its unit is 'mb', gigabytes are read"),
        ("cost_total: 3", "unknown key tasks.0.cost_total; did you mean"),
        ("duration_ms: soon", "tasks.0.duration_ms: Input should be a valid number"),
    ],
)
def test_mixed_units_are_named_with_their_field(tmp_path: Path, task: str, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_file(write(tmp_path, f"tasks: [{{id: a, {task}}}]\n"))
    assert words in str(caught.value)


def test_every_mixed_unit_is_named_at_once(tmp_path: Path) -> None:
    text = "tasks: [{id: a, cost_eur: 3, duration_h: 1}, {id: b}]\noutputs: [{id: o, gain_eur: 9}]\n"
    with pytest.raises(SettingsError, match=r"tasks\.0\.cost_eur.*tasks\.0\.duration_h.*outputs\.0\.gain_eur"):
        read_file(write(tmp_path, text))
