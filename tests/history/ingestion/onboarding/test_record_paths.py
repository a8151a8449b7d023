"""Where JSON Lines hold the case's id and its tasks."""

import json
from pathlib import Path

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.ingestion.onboarding.propose import find_moments, find_records


def write(path: Path, records: list[object]) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records), "utf-8")
    return path


def test_usual_names_need_nothing(tmp_path: Path) -> None:
    assert find_records(write(tmp_path / "a.jsonl", [{"id": "1", "tasks": [{"name": "x"}]}])) == {}


def test_other_names(tmp_path: Path) -> None:
    records = [
        {"ticket": n, "kind": "a", "log": {"done": [{"what": "x", "action": f"step {n % 2}"}]}, "tags": ["a"]}
        for n in range(4)
    ]
    assert find_records(write(tmp_path / "a.jsonl", records)) == {
        "record": {"tasks": "log.done", "case": "ticket"},
        "task": {"activity": "action"},
    }


def test_how_a_step_ended_is_not_its_name(tmp_path: Path) -> None:
    runs = [
        {"id": n, "steps": [{"node": f"n{k}", "executionStatus": "success", "flag": "yes"} for k in range(3)]}
        for n in range(4)
    ]
    assert find_records(write(tmp_path / "a.jsonl", runs)) == {"task": {"activity": "node"}}
    alone = [{"id": n, "steps": [{"state": "done"}, {"state": "lost"}]} for n in range(4)]
    assert find_records(write(tmp_path / "b.jsonl", alone)) == {"task": {"activity": "state"}}


def test_an_id_may_lie_deeper(tmp_path: Path) -> None:
    records = [
        {
            "claim": {"reference": f"R{n}", "notice": f"a long text that differs {n}"},
            "handling": {"steps": [{"step": "pay"}]},
        }
        for n in range(4)
    ]
    assert find_records(write(tmp_path / "a.jsonl", records)) == {
        "record": {"tasks": "handling.steps", "case": "claim.reference"},
        "task": {"activity": "step"},
    }


def test_names_that_repeat_are_tasks_and_sentences_are_not(tmp_path: Path) -> None:
    records = [
        {"id": n, "request": f"please book flight {n}", "said": [f"I book {n}"], "plan": ["book", "pay"]}
        for n in range(4)
    ]
    assert find_records(write(tmp_path / "a.jsonl", records)) == {"record": {"tasks": "plan", "description": "request"}}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (["x"], "none of its first lines is a JSON object"),
        ([{"id": 1, "a": 2}], "no record holds a list of tasks; the names found are id, a"),
        ([{"a": 1, "tasks": ["x"]}, {"a": 1, "tasks": ["y"]}], "no name of a record has a different value in each"),
        ([{"id": 1, "tasks": [{"n": 5}]}], "no name of a task's object holds a text everywhere; the names are n"),
    ],
)
def test_what_cannot_be_told(tmp_path: Path, records: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_records(write(tmp_path / "a.jsonl", records))


@pytest.mark.parametrize(
    ("event", "roles", "formats"),
    [
        (
            {"action": "pay", "begin": "2025-03-01T07:00:00Z", "finish": "2025-03-01T08:00:00Z", "user_name": "Ann"},
            {"start": "begin", "end": "finish", "actor": "user_name"},
            (),
        ),
        ({"node": "pay", "startTime": 1740000000000, "executionTime": 250}, {"start": "startTime"}, ()),
        (
            {"what": "pay", "log": {"at": "2025-03-01 07:00:00"}, "employee": "Ann"},
            {"time": "log.at", "actor": "employee"},
            (),
        ),
        ({"what": "pay", "when": "03-Feb-25 07:00"}, {"time": "when"}, ("%d-%b-%y %H:%M",)),
        ({"activity": "pay", "start_time": "2025-03-01T07:00:00Z"}, {}, ()),  # the reader knows this name
        ({"activity": "pay", "pieces": 12}, {}, ()),
    ],
)
def test_moments_of_a_task_are_found_by_their_values(
    tmp_path: Path, event: dict[str, object], roles: dict[str, str], formats: tuple[str, ...]
) -> None:
    file = write(tmp_path / "a.jsonl", [{"id": n, "steps": [event]} for n in range(4)])
    assert find_moments(file, {}) == (roles, formats)
