"""JSONL: nested records by dotted paths; SOPBench's runs by settings alone."""

import json
from typing import Any

import pytest

SOPBENCH = """\
industry = { column = "domain" }

[record]
case = "trace_id"
title = "user_goal"
description = "user_prompt"
process_context = "procedure"
expected_outcome = "action_should_succeed"
tasks = "steps"
drop_tasks = ["exit_conversation"]
attributes = ["task_key", "tool_list", "tool_call_mode", "model"]

[task]
activity = "tool"

[success]
column = "eval.success"
equals = true
"""

RUN = {
    "trace_id": "s006841",
    "domain": "healthcare",
    "model": "m",
    "tool_call_mode": "act-only",
    "tool_list": "full",
    "task_key": "02a1",
    "user_goal": "update_policy",
    "user_prompt": "Hello!\nPlease update my policy.",
    "action_should_succeed": False,
    "steps": [
        {"tool": "login_user", "args": "{}", "ac": 0, "result": "True", "malformed_tool_name": False},
        {"tool": "update_policy", "args": "{}", "ac": 0, "result": "True", "malformed_tool_name": False},
        {"tool": "exit_conversation", "args": "{}", "ac": 0, "malformed_tool_name": False},
    ],
    "eval": {"success": False, "database_match": True},
    "repeat_of": None,
    "procedure": "Actions with Constraints: ...",
}


def lines(*records: Any) -> Any:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)


def test_sopbench_loads_by_settings_alone(bench: Any, keys: Any) -> None:
    refused = RUN | {
        "trace_id": "s2",
        "eval": {"success": True},
        "steps": [RUN["steps"][2]],
        "action_should_succeed": True,
    }
    cases, rejects, state = bench.one("history.jsonl.gz", lines(RUN, refused), SOPBENCH)
    assert rejects == []
    case = cases["s006841"]
    assert keys(case) == ["login_user", "update_policy"]
    assert (case["industry"], case["title"], case["description"]) == (
        "healthcare",
        "update_policy",
        "Hello!\nPlease update my policy.",
    )
    assert (case["process_context"], case["expected_outcome"], case["success"]) == (
        "Actions with Constraints: ...",
        False,
        False,
    )
    assert case["attributes"] == [
        ("model", "m"),
        ("task_key", "02a1"),
        ("tool_call_mode", "act-only"),
        ("tool_list", "full"),
    ]
    assert (case["started_at"], case["tasks"][0]["started_at"], case["tasks"][0]["wait_ms"]) == (None, None, None)
    assert dict(case["tasks"][0]["attributes"])["malformed_tool_name"] == "false"
    assert (cases["s2"]["tasks"], cases["s2"]["success"], cases["s2"]["expected_outcome"]) == ([], True, True)
    assert (state.files[0]["records"], state.files[0]["records_used"], state.files[0]["task_implementations"]) == (
        2,
        2,
        2,
    )


def test_everything_a_task_may_state(bench: Any) -> None:
    task = {
        "name": "Decide",
        "label": "Decide the claim",
        "from": "2020-01-01T00:00:00Z",
        "to": "2020-01-01T01:00:00Z",
        "by": {"who": "q-2", "kind": "llm"},
        "model": "q-2",
        "use": {"in": 2000, "out": 500},
        "ok": True,
        "reads": ["claim"],
        "writes": "decision; letter",
        "told": ["Be fair."],
        "gb": 1.5,
        "threads": 2,
        "extra": {"note": [1]},
    }
    settings = (
        '[record]\ncase = "id"\ntasks = "run.steps"\ncost = "total"\n[task]\nactivity = "name"\n'
        'title = "label"\nstart = "from"\nend = "to"\n'
        'actor = "by.who"\nactor_kind = "by.kind"\nmodel = "model"\ntokens_in = "use.in"\ntokens_out = "use.out"\n'
        'success = "ok"\ninputs = "reads"\n'
        'outputs = "writes"\ninstructions = "told"\nmemory_gb = "gb"\nthreads = "threads"\n'
        '[rates]\n"q-2" = { tokens_in = 1.0, tokens_out = 4.0 }\n'
    )
    cases, _, _ = bench.one(
        "a.jsonl",
        lines({"id": 7, "run": {"steps": [task, "Close"]}, "total": 3, "facts": {"place": "x", "n": None}}),
        settings,
    )
    case = cases["7"]
    made, close = case["tasks"]
    assert case["cost_usd"] == 3.0
    assert case["attributes"] == [("facts.place", "x")]
    assert (made["title"], made["actor"], made["actor_kind"], made["model"]) == (
        "Decide the claim",
        "q-2",
        "model",
        "q-2",
    )
    assert (made["duration_ms"], made["tokens_in"], made["tokens_out"], made["success"]) == (
        3_600_000.0,
        2000,
        500,
        True,
    )
    assert (made["cost_usd"], made["cost_model_usd"], made["cost_basis"]) == (0.004, 0.004, "rate")
    assert (made["inputs"], made["outputs"], made["instructions"]) == (["claim"], ["decision", "letter"], ["Be fair."])
    assert (made["memory_gb"], made["threads"], made["attributes"]) == (1.5, 2.0, [("extra.note", "[1]")])
    assert (close["task_key"], close["started_at"], close["cost_usd"]) == ("Close", None, None)


def test_of_what_a_task_returned_the_names_of_fields_are_kept_and_no_values(bench: Any) -> None:
    returned = [{"colour": "red", "owner": {"name": "Ann"}}, '{"price": 3}', "True", None]
    steps = [{"name": f"Step {n}", "back": {"data": value}} for n, value in enumerate(returned)]
    cases, _, _ = bench.one(
        "a.jsonl",
        lines({"id": 7, "steps": steps}),
        '[record]\ncase = "id"\ntasks = "steps"\n[task]\nactivity = "name"\nresult = "back.data"\n',
    )
    assert [(t["outputs"], t["attributes"]) for t in cases["7"]["tasks"]] == [
        (["colour", "owner"], []),
        (["price"], []),
        ([], []),
        (None, []),
    ]


def test_usual_names_need_no_settings(bench: Any, keys: Any) -> None:
    cases, _, _ = bench.one(
        "a.jsonl",
        lines({"case_id": "0", "tasks": []}, {"case_id": "1", "tasks": [{"activity": "A", "time": 1583298367}]}),
    )
    assert keys(cases["1"]) == ["A"]
    assert cases["1"]["started_at"].isoformat() == "2020-03-04T05:06:07+00:00"
    assert keys(cases["0"]) == []


def test_predecessors_survive_dropped_tasks(bench: Any) -> None:
    tasks = [
        {"a": "A", "p": []},
        {"a": "drop", "p": [0]},
        {"a": "B", "p": [1]},
        {"a": "C", "p": [0]},
        {"a": "D", "p": [2, 3]},
    ]
    settings = '[record]\ncase = "id"\ntasks = "t"\ndrop_tasks = "drop"\n[task]\nactivity = "a"\npredecessors = "p"\n'
    cases, _, _ = bench.one("a.jsonl", lines({"id": "1", "t": tasks}), settings)
    assert [(t["task_key"], t["predecessors"]) for t in cases["1"]["tasks"]] == [
        ("A", []),
        ("B", [0]),
        ("C", [0]),
        ("D", [1, 2]),
    ]


def test_records_that_cannot_be_used_are_rejected_and_the_rest_goes_on(bench: Any) -> None:
    good = {"case_id": "1", "tasks": [{"activity": "A"}]}
    bad = {
        "bad_json": '{"case_id": ',
        "no_case": {"tasks": []},
        "no_tasks": {"case_id": "2"},
        "bad_task": {"case_id": "3", "tasks": [7]},
        "no_activity": {"case_id": "4", "tasks": [{"x": 1}]},
        "no_timezone": {"case_id": "5", "tasks": [{"activity": "A", "time": "2020-01-01"}]},
        "negative_duration": {"case_id": "6", "tasks": [{"activity": "A", "start": 1583298367, "end": 1583298366}]},
        "not_finite": '{"case_id": "7", "tasks": [{"activity": "A", "price": Infinity}]}',
        "encoding": r'{"case_id": "\ud800", "tasks": []}',
    }
    settings = '[task]\ncost = "price"\nstart = "start"\nend = "end"\ntime = "time"\n'
    cases, rejects, state = bench.one("a.jsonl", lines(good, "", good, *bad.values(), "[]", "[" * 100_000), settings)
    assert list(cases) == ["1"]
    assert [r["reason_code"] for r in rejects] == [*bad, "bad_json", "bad_json"]
    assert [r["position"] for r in rejects] == list(range(4, 15))
    row = state.files[0]
    assert (row["records"], row["records_used"], row["records_not_work"], row["records_rejected"]) == (13, 1, 1, 11)
    assert (row["records_duplicate"], row["records_corrected"], row["cases_quarantined"]) == (1, 0, 11)
    assert all(len(r["record"].encode()) <= 4096 for r in rejects)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
        ('{"ref": 1, "tasks": []}\n', "where a record has its case"),
        ('{"case_id": 1, "work": []}\n', "where a record has its tasks"),
    ],
)
def test_whole_files_that_are_refused(bench: Any, content: str, reason: str) -> None:
    _, rejects, state = bench.one("a.jsonl", content)
    assert reason in state.files[0]["reason"]
    assert (state.files[0]["status"], state.files[0]["records"], rejects) == ("rejected", 0, [])


def test_redaction_reaches_into_records(bench: Any) -> None:
    record = {
        "case_id": "1",
        "who": {"name": "Ann", "age": 5},
        "tasks": [{"activity": "A", "who": {"name": "Ann"}, "mail": "a@b.org"}],
    }
    cases, _, _ = bench.one("a.jsonl", lines(record), '[redact]\ndrop = "who.name"\nmask = "mail"')
    assert cases["1"]["attributes"] == [("who.age", "5")]
    assert dict(cases["1"]["tasks"][0]["attributes"]) == {"mail": "***", "who.name": "Ann"}
