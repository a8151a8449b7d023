"""Utterances from CSV and JSON Lines: what is read of a row, and why a row or a file cannot be used."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.errors import InputError
from opus_pipelines.flows.batches.inputs import UtteranceRow, read_utterances
from opus_pipelines.workflow.blocks.formats.bpmn_writer import write_bpmn
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import activities, identified
from tests.campaigns import examples

PRIOR = 'xs = A()\nfor x in xs:\n  if x.kind == "new":\n    y = B()'
# A flow that goes back to a step before: no block has a second way in.
TANGLED = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d"><process id="p">
<startEvent id="start"/><exclusiveGateway id="fork"/><task id="one" name="A"/><task id="two" name="B"/>
<exclusiveGateway id="join"/><endEvent id="end"/>
<sequenceFlow id="f1" sourceRef="start" targetRef="fork"/><sequenceFlow id="f2" sourceRef="fork" targetRef="one"/>
<sequenceFlow id="f3" sourceRef="fork" targetRef="two"/><sequenceFlow id="f4" sourceRef="one" targetRef="two"/>
<sequenceFlow id="f5" sourceRef="two" targetRef="one"/><sequenceFlow id="f6" sourceRef="two" targetRef="join"/>
<sequenceFlow id="f7" sourceRef="join" targetRef="end"/></process></definitions>"""


def rows_of(folder: Path, name: str, text: str) -> list[UtteranceRow]:
    (folder / name).write_text(text, "utf-8")
    return read_utterances(folder / name, folder)


def one_row(folder: Path, **cells: object) -> UtteranceRow:
    given = {"uid": "u1", "utterance": "Add a step"} | cells
    return rows_of(folder, "a.jsonl", json.dumps({k: v for k, v in given.items() if v is not None}))[0]


def test_a_csv_gives_utterances_with_prior_gold_and_tags(tmp_path: Path) -> None:
    (tmp_path / "before.bpmn").write_bytes(write_bpmn(identified(parse_ir(PRIOR))))
    text = (
        "UID;Utterance;prior;gold;tags\n"
        '1;"Create; a ticket";;"x = A()";linear, new\n'
        "\n"
        '2;Remove B;before.bpmn;"xs = A()\nys = C()";\n'
    )
    first, second = rows_of(tmp_path, "asked.csv", text)
    assert (first.uid, first.utterance, first.line) == ("1", "Create; a ticket", 2)
    assert first.task is not None
    assert second.task is not None
    assert (first.task.prior, first.task.sequence, first.task.tags) == (None, "x = A()", ("linear", "new"))
    assert (second.line, second.task.prior_bpmn) == (5, tmp_path / "before.bpmn")
    assert second.task.prior is not None
    assert activities(second.task.prior) == ["A", "B"]
    assert second.task.sequence == "xs = A()\nys = C()"


def test_json_lines_may_be_of_another_encoding(tmp_path: Path) -> None:
    line = json.dumps({"id": 7, "utterance": "Prüfe die Rechnung", "tags": ["x", 3]}, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_bytes(line.encode("utf-16"))
    (row,) = read_utterances(tmp_path / "a.jsonl", tmp_path)
    assert row.task is not None
    assert (row.uid, row.utterance, row.task.tags) == ("7", "Prüfe die Rechnung", ("x", "3"))


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        ({"uid": None}, "no_uid"),
        ({"uid": True}, "no_uid"),
        ({"uid": "  "}, "no_uid"),
        ({"utterance": None}, "no_utterance"),
        ({"utterance": " \t"}, "no_utterance"),
        ({"utterance": "?!"}, "no_utterance"),
        ({"utterance": 5}, "no_text"),
        ({"utterance": "do it " * 20_000}, "too_long"),
        ({"prior": "import os"}, "bad_prior"),
        ({"prior": "x = __class__.a()"}, "bad_prior"),
        ({"prior": ["x = A()"]}, "no_text"),
        ({"prior": "../../secret.bpmn"}, "outside_folder"),
        ({"prior": "missing.bpmn"}, "bad_prior"),
        ({"gold": "x = A(1, 2"}, "bad_gold"),
        ({"prior": "x = A()", "prior_bpmn": "missing.bpmn"}, "bad_prior_bpmn"),
    ],
)
def test_a_row_that_cannot_be_used_has_a_reason(tmp_path: Path, cells: dict[str, object], code: str) -> None:
    row = one_row(tmp_path, **cells)
    assert (row.task, row.code) == (None, code)
    assert row.reason


@given(
    cells=st.dictionaries(
        st.sampled_from(["uid", "utterance", "prior", "prior_bpmn", "gold", "tags"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=3), max_size=2),
    )
)
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_row_is_used_or_has_a_reason(tmp_path: Path, cells: dict[str, object]) -> None:
    for row in rows_of(tmp_path, "a.jsonl", json.dumps(cells)):
        assert (row.task is None) == bool(row.code) == bool(row.reason)
        row.utterance.encode()


def test_names_of_variables_come_from_the_text_and_ids_from_the_drawing(tmp_path: Path) -> None:
    (tmp_path / "before.bpmn").write_bytes(write_bpmn(identified(parse_ir(PRIOR))))
    row = one_row(tmp_path, prior=PRIOR, prior_bpmn="before.bpmn")
    assert row.task is not None
    assert (row.task.prior, row.task.prior_bpmn) == (parse_ir(PRIOR), tmp_path / "before.bpmn")


def test_a_prior_without_blocks_is_refused_with_its_elements(tmp_path: Path) -> None:
    (tmp_path / "tangled.bpmn").write_text(TANGLED)
    row = one_row(tmp_path, prior="tangled.bpmn")
    assert (row.task, row.code) == (None, "bad_prior")
    assert row.reason
    assert any(name in row.reason for name in ("one", "two", "fork"))


def test_hostile_text_is_data(tmp_path: Path) -> None:
    text = "import os; __class__ \u202e\ud800 <script> {{x}} '); DROP TABLE x"
    row = one_row(tmp_path, utterance=text)
    assert row.task is not None
    assert "\ud800" not in row.task.utterance
    assert "DROP TABLE" in row.task.utterance


def test_broken_lines_and_repeated_uids_cost_their_own_row(tmp_path: Path) -> None:
    lines = ['{"uid": 1, "utterance": "Do it"}', "{", "[]", "[" * 100_000, '{"uid": "1", "utterance": "Do that"}']
    rows = rows_of(tmp_path, "a.jsonl", "\n".join(lines))
    assert [row.code for row in rows] == [None, "not_json", "no_object", "not_json", "duplicate_uid"]
    assert [row.line for row in rows] == [1, 2, 3, 4, 5]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for name, text in (
        ("a.csv", "name,text\n1,x\n"),
        ("a.txt", "x"),
        ("b.csv", 'uid,utterance\n1,"' + "x" * 2_100_000),
    ):
        with pytest.raises(InputError, match=name):
            rows_of(tmp_path, name, text)
    folder, outside = tmp_path / "flows", tmp_path / "secret.csv"
    folder.mkdir()
    outside.write_text("uid,utterance\n1,Do it\n")
    (folder / "link.csv").symlink_to(outside)
    os.link(outside, folder / "hard.csv")
    for name in ("link.csv", "hard.csv", "missing.csv"):
        with pytest.raises(InputError, match=name):
            read_utterances(folder / name, folder)
