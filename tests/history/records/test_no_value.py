"""Words that say that there is no value are as good as an empty cell, in every column and every format."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.history.records.values import says_nothing

WORDS = ["nan", "NaN", "NULL", "None", "N/A", "#N/A", "#DIV/0!", "-", "#NV", "\\N", "–", "<NA>", " n/a "]


def csv(word: str, padding: int) -> str:
    rows = [
        "1,A,2024-01-01T00:00:00Z,Ann,10,red,acme",
        f"1,B,2024-01-01T01:00:00Z,{word},{word},{word},{word}",
        f"2,A,{word},{word},{word},blue,{word}",
        f"{word},A,2024-01-01T00:00:00Z,Ann,10,red,acme",
        f"3,{word},2024-01-01T00:00:00Z,Ann,10,red,acme",
        *(f"p{n},A,2024-01-01T00:00:00Z,u{n},{n},green,acme" for n in range(padding)),
    ]
    return "\n".join(["case_id,activity,timestamp,resource,cost,colour,case:client", *rows, ""])


@pytest.mark.parametrize("padding", [0, 2_000])
@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_no_person_case_activity_cost_or_attribute(bench: Any, word: str, padding: int) -> None:
    cases, rejects, _ = bench.one("log.csv", csv(word, padding))
    first, second = cases["1"]["tasks"]
    assert (second["actor"], second["cost_usd"], second["attributes"]) == (None, None, [])
    assert (first["actor"], first["cost_usd"], cases["1"]["attributes"]) == ("Ann", 10.0, [("client", "acme")])
    assert (cases["2"]["tasks"][0]["started_at"], cases["2"]["attributes"]) == (None, [])
    assert [row["reason_code"] for row in rejects] == ["no_case", "no_activity"]
    assert len(cases) == 2 + padding


@pytest.mark.parametrize("word", ["NAN", "NIL", "nancy", "None of these", "-5", "0", "NA"])
def test_what_only_looks_like_such_a_word_is_a_value(bench: Any, word: str) -> None:
    content = f"case_id,activity,timestamp,resource\n{word},{word},2024-01-01T00:00:00Z,{word}\n"
    (case,) = bench.one("log.csv", content)[0].values()
    assert (case["case_id"], case["tasks"][0]["task_key"], case["tasks"][0]["actor"]) == (word, word, word)


def test_gaps_of_other_formats(bench: Any) -> None:
    task = {"activity": "A", "time": "2024-01-01T00:00:00Z", "actor": "null", "size": "N/A", "cost": float("nan")}
    bench.put("s/source.toml", '[task]\ncost = "cost"\nactor = "actor"\n')
    bench.put("s/log.jsonl", json.dumps({"case_id": "j", "tasks": [task], "note": "#N/A"}) + "\n")
    event = (
        '<event><string key="concept:name" value="A"/><string key="org:resource" value="nan"/>'
        '<float key="cost:total" value="nan"/><string key="size" value="None"/></event>'
    )
    bench.put("s/log.xes", f'<log><trace><string key="concept:name" value="x"/>{event}</trace></log>')
    table = pa.table({"case_id": ["p"], "activity": ["A"], "cost": [float("nan")], "resource": [None], "size": ["NaN"]})
    pq.write_table(table, bench.history / "s" / "log.parquet")
    cases = bench.cases()
    for name in "jxp":
        (done,) = cases[name]["tasks"]
        assert (done["actor"], done["cost_usd"], done["attributes"], cases[name]["attributes"]) == (None, None, [], [])


@pytest.mark.parametrize(
    ("value", "says"), [(None, True), (float("nan"), True), (0, False), (False, False), ([], False)]
)
def test_values_that_are_no_text(value: Any, says: bool) -> None:
    assert says_nothing(value) is says
