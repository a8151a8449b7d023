"""Roles and groups of people: from an export's columns to prices by role."""

import pytest

from opus_pipelines.history.ingestion.ingest import unpriced_steps
from opus_pipelines.history.records.money import price
from opus_pipelines.history.records.raw import Task
from opus_pipelines.history.records.source_settings import load_source
from tests.history_fixtures import Bench

HOUR = 3_600_000.0
CSV = (
    "case_id;activity;start_time;end_time;Wer;Abteilung\n1;Approve;2026-01-05 08:00:00;"
    "2026-01-05 10:00:00;Ann;SUPERVISOR\n"
)
SETTINGS = 'timezone = "UTC"\n[rates]\nSUPERVISOR = 60\n[columns]\n'
EVENT = """<event><string key="concept:name" value="Approve"/><string key="org:resource" value="{who}"/>
<string key="org:role" value="{role}"/><date key="time:timestamp" value="2026-01-05T{hour}:00:00Z"/>
<string key="lifecycle:transition" value="{transition}"/></event>"""


@pytest.mark.parametrize(
    ("task", "cost"),
    [
        (Task(duration_ms=HOUR, attributes={"org:role": "SUPERVISOR"}), 60.0),
        (
            Task(duration_ms=HOUR, attributes={"actor_group": "SUPERVISOR", "org:role": "clerk"}, actor_kind="human"),
            60.0,
        ),
        (Task(duration_ms=HOUR, attributes={"org:role": "SUPERVISOR"}, actor="Ann"), 90.0),
        (Task(duration_ms=HOUR, attributes={"Rolle": "SUPERVISOR"}, actor_kind="human"), 60.0),
        (Task(duration_ms=HOUR, attributes={"org:role": "clerk"}, actor_kind="human"), 30.0),
        (Task(duration_ms=HOUR, attributes={"org:role": "clerk"}), None),
        (Task(attributes={"org:role": "SUPERVISOR"}), None),
    ],
)
def test_a_rate_goes_by_the_person_then_the_role_then_the_kind(task: Task, cost: float | None) -> None:
    price(task, {"SUPERVISOR": 60.0, "Ann": 90.0, "human": 30.0})
    assert (task.cost_usd, task.cost_basis) == (cost, None if cost is None else "rate")


def test_any_column_is_a_role_where_the_source_says_so(bench: Bench) -> None:
    bench.put("s/a.csv", CSV)
    bench.put("s/source.toml", SETTINGS + 'actor = "Wer"\nactor_group = "Abteilung"\n')
    (task,) = bench.cases()["1"]["tasks"]
    assert (task["actor"], dict(task["attributes"]), task["cost_usd"], task["cost_basis"]) == (
        "Ann",
        {"actor_group": "SUPERVISOR"},
        120.0,
        "rate",
    )


@pytest.mark.parametrize("columns", ["", '[columns]\nactor_group = "org:resource"\n'])
def test_both_ways_of_reading_xes_price_by_role(bench: Bench, columns: str) -> None:
    events = "".join(
        EVENT.format(who=who, role=role, hour=hour, transition=transition)
        for who, role, hour, transition in (
            ("Ann", "SUPERVISOR", "08", "start"),
            ("Ann", "SUPERVISOR", "10", "complete"),
        )
    )
    bench.put("s/a.xes", f'<log><trace><string key="concept:name" value="1"/>{events}</trace></log>')
    bench.put("s/source.toml", f"{columns}[rates]\nSUPERVISOR = 60\n")
    (task,) = bench.cases()["1"]["tasks"]
    found = dict(task["attributes"])
    assert (task["cost_usd"], task["cost_basis"], found["org:role"]) == (120.0, "rate", "SUPERVISOR")
    assert found.get("actor_group") == ("Ann" if columns else None)


def test_a_rate_of_nobody_is_told_with_the_nearest_names(bench: Bench) -> None:
    bench.put("s/a.csv", CSV)
    misspelt = SETTINGS.replace("SUPERVISOR = 60", "SUPERVISER = 60\nhuman = 30\ncode = 1")
    bench.put("s/source.toml", misspelt + 'actor = "Wer"\nactor_group = "Abteilung"\n')
    line, of_kinds = bench.read().failed
    assert line.startswith("s/source.toml: [rates] states 'SUPERVISER'")
    assert line.endswith(" 'SUPERVISOR'")
    assert of_kinds.startswith("s/source.toml: [rates] human, code: ")
    bench.put("s/source.toml", SETTINGS + 'actor = "Wer"\nactor_group = "Abteilung"\n')
    assert bench.read().failed == []


KINDS = CSV + "2;Approve;2026-01-05 08:00:00;2026-01-05 10:00:00;Ann;SUPERVISOR\n"


@pytest.mark.parametrize(
    ("rates", "kinds", "unknown"),
    [
        ("human = 30", ("", ""), 2),
        ("human = 30", ("person", ""), 1),
        ("human = 30", ("person", "bot"), None),
        ("SUPERVISOR = 60\nhuman = 30", ("", ""), None),
        ("quill = { tokens_in = 1.0 }", ("", ""), None),
    ],
)
def test_a_price_of_a_kind_that_nothing_tells_is_counted(
    bench: Bench, rates: str, kinds: tuple[str, str], unknown: int | None
) -> None:
    head, *rows = KINDS.splitlines()
    text = "\n".join([f"{head};Art", *(f"{row};{kind}" for row, kind in zip(rows, kinds, strict=True))])
    bench.put("s/a.csv", text + "\n")
    bench.put(
        "s/source.toml",
        f'timezone = "UTC"\n[rates]\n{rates}\n[columns]\nactor_group = "Abteilung"\nactor_kind = "Art"\n',
    )
    state = bench.read()
    found = unpriced_steps(load_source(bench.history / "s").rates, state.sources[0].folder)
    assert (found and found.unknown) == unknown
    no_effect = [line for line in state.failed if "actor_kind" in line]
    assert len(no_effect) == (unknown == 2)  # where the price reaches another step, it has an effect
