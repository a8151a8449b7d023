"""Amounts in other currencies: read by the settings' rates, kept as they were, unknown without a rate - in every
format.
"""

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.ingestion.ingest import HistoryState
from opus_pipelines.history.ingestion.plan import plan_history
from opus_pipelines.history.records.money import Money, remark
from opus_pipelines.history.records.source_settings import SourceSettings
from opus_pipelines.history.records.values import BadValueError
from opus_pipelines.lake.layout import read_table
from tests.history_fixtures import Bench

RATES = {"EUR": 1.25, "GBP": 1.5, "JPY": 0.01, "CAD": 0.5}


def money(currency: str | None = None, decimal: Any = None) -> Money:
    return Money(SourceSettings(currency=currency, decimal=decimal, usd_per_unit=RATES))


@pytest.mark.parametrize(
    ("written", "stated", "default", "decimal", "number", "currency", "usd"),
    [
        ("12.5", None, None, None, 12.5, "USD", 12.5),
        (12, None, "EUR", None, 12.0, "EUR", 15.0),
        (12, "gbp", "EUR", None, 12.0, "GBP", 18.0),
        ("€ 1.234,50", None, None, ",", 1234.5, "EUR", 1543.125),
        ("1.234,50€", "EUR", "USD", ",", 1234.5, "EUR", 1543.125),
        ("EUR 1,234.50", None, None, ".", 1234.5, "EUR", 1543.125),
        ("8 eur", "€", None, None, 8.0, "EUR", 10.0),
        ("$8", None, "EUR", None, 8.0, "USD", 8.0),
        ("$8", None, "CAD", None, 8.0, "CAD", 4.0),
        ("$8", "CAD", None, None, 8.0, "CAD", 4.0),
        ("US$8", None, "CAD", None, 8.0, "USD", 8.0),
        ("¥ 500", None, "JPY", None, 500.0, "JPY", 5.0),
        ("1e3", None, None, None, 1000.0, "USD", 1000.0),
        ("7", "SEK", None, None, 7.0, "SEK", None),
        ("7 kr", None, "SEK", None, 7.0, "SEK", None),
    ],
)
def test_amounts(
    written: Any, stated: Any, default: str | None, decimal: str | None, number: float, currency: str, usd: float | None
) -> None:
    amount = money(default, decimal).read(written, stated)
    assert (amount.number, amount.currency, amount.usd) == (number, currency, usd)


@pytest.mark.parametrize(
    ("written", "stated", "code", "reason"),
    [
        ("¥ 500", None, "bad_currency", "a sign of CNY and JPY"),
        ("7 kr", None, "bad_currency", "a sign of DKK and ISK and NOK and SEK"),
        ("5 apples", None, "bad_currency", "'apples' is no currency"),
        ("5", "euros", "bad_currency", "'euros' is no currency; write its three letters"),
        ("€5", "GBP", "bad_currency", "is in EUR, but the record's currency is GBP"),
        ("€5 EUR", None, "bad_number", "is no amount"),
        ("€ 1,5", None, "bad_number", 'decimal = "," or "."'),
        ("€ -5", None, "negative_number", "negative"),
        ("€ 9e12", None, "bad_number", "out of range"),
        ("GBP 900000000000", None, "bad_number", "in dollars is out of range"),
        ("nan", "EUR", "not_finite", "not finite"),
        ("€" * 5_000_000, "EUR", "bad_number", "is no number"),
        ("x" + " " * 5_000_000 + "1", None, "bad_number", "is no number"),
    ],
)
def test_amounts_that_cannot_be_told_are_refused(written: Any, stated: Any, code: str, reason: str) -> None:
    with pytest.raises(BadValueError) as error:
        money().read(written, stated)
    assert error.value.code == code
    assert reason in error.value.reason


def test_a_column_of_dollars_holds_dollars_whatever_the_source_says() -> None:
    assert money("EUR").read("5", "EUR", "cost_usd").usd == 5.0


def test_a_line_says_once_what_lacks_a_rate() -> None:
    settings = SourceSettings(usd_per_unit={"EUR": 1.25})
    assert remark(["EUR"], settings) is None
    said = remark(["SEK", "EUR", "NOK"], settings) or ""
    assert said.startswith("no rate for NOK, SEK")
    assert "usd_per_unit = { NOK = ... }" in said


CSV = "case,activity,cost,currency,x\n1,A,4,EUR,q\n1,B,2,,q\n1,C,6,SEK,q\n"
JSONL = json.dumps(
    {
        "id": "1",
        "currency": "EUR",
        "total": 12,
        "tasks": [
            {"activity": "A", "cost": 4},
            {"activity": "B", "cost": 2, "currency": "USD"},
            {"activity": "C", "cost": 6, "currency": "SEK"},
        ],
    }
)
XES = """<log><trace><string key="concept:name" value="1"/><string key="cost:currency" value="EUR"/>
<event><string key="concept:name" value="A"/><float key="cost:total" value="4"/></event>
<event><string key="concept:name" value="B"/><float key="cost:total" value="2"/><string key="cost:currency" value="USD"/></event>
<event><string key="concept:name" value="C"/><float key="cost:total" value="6"/><string key="cost:currency" value="SEK"/></event>
</trace></log>"""
OCEL = json.dumps(
    {
        "objects": [{"id": "1", "type": "order"}],
        "events": [
            {
                "id": str(n),
                "type": "ABC"[n],
                "time": "2020-01-01T00:00:00Z",
                "relationships": [{"objectId": "1"}],
                "attributes": [
                    {"name": "cost", "value": [4, 2, 6][n]},
                    {"name": "currency", "value": ["EUR", "USD", "SEK"][n]},
                ],
            }
            for n in range(3)
        ],
    }
)


def parquet() -> bytes:
    packed = io.BytesIO()
    table = {
        "case": ["1", "1", "1"],
        "activity": ["A", "B", "C"],
        "cost": [4.0, 2.0, 6.0],
        "currency": ["EUR", None, "SEK"],
    }
    pq.write_table(pa.table(table), packed)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        ("log.csv", CSV, ""),
        ("log.parquet", parquet(), ""),
        ("log.xes", XES, ""),
        ("log.ocel.json", OCEL, ""),
        ("log.jsonl", JSONL, '[task]\ncost = "cost"\n'),
    ],
)
def test_every_format_keeps_the_original_amount(bench: Bench, name: str, content: str | bytes, settings: str) -> None:
    said: list[str] = []
    bench.put("s/source.toml", settings)
    bench.put(f"s/{name}", content)
    state = bench.read(usd_per_unit={"EUR": 1.25}, progress=said.append)
    tasks = next(iter(rows(state).values()))["tasks"]
    assert [t["cost_usd"] for t in tasks] == [5.0, 2.0, None]
    assert [t["cost_basis"] for t in tasks] == ["observed", "observed", None]
    kept = [{k: v for k, v in t["attributes"] if k.startswith("cost_")} for t in tasks]
    assert kept == [
        {"cost_original": "4", "cost_currency": "EUR"},
        {},
        {"cost_original": "6", "cost_currency": "SEK"},
    ]
    (row,) = state.files
    assert (row["status"], row["records_rejected"], row["currencies"]) == ("loaded", 0, ["EUR", "SEK"])
    assert row["reason"].startswith("no rate for SEK")
    assert sum("no rate for SEK" in line for line in said) == 1


def rows(state: HistoryState) -> dict[str, dict[str, Any]]:
    return {row["case_id"]: row for row in read_table(IMPLEMENTATIONS, *(s.folder for s in state.sources)).to_pylist()}


def test_what_a_case_costs_is_unknown_without_a_rate_whatever_its_tasks_cost(bench: Bench) -> None:
    bench.put("s/source.toml", '[record]\ncase_cost = "total"\n[task]\ncost = "cost"\n')
    bench.put("s/log.jsonl", JSONL)
    case = rows(bench.read())["1"]
    assert case["cost_usd"] is None
    assert dict(case["attributes"]) == {"cost_original": "12", "cost_currency": "EUR"}
    case = rows(bench.read(usd_per_unit={"EUR": 1.25}))["1"]
    assert case["cost_usd"] == 15.0


def test_unknown_costs_are_not_made_up_from_hours_or_tokens(bench: Bench) -> None:
    cases, *_ = bench.one(
        "log.csv",
        "case,activity,start_time,end_time,actor_kind,cost\n1,A,2020-01-01T00:00Z,2020-01-01T01:00Z,human,5\n",
        'currency = "SEK"\n[rates]\nhuman = 30\n',
    )
    assert cases["1"]["tasks"][0]["cost_usd"] is None
    assert cases["1"]["cost_usd"] is None


def test_a_sources_own_rate_wins_and_rates_an_hour_are_dollars(bench: Bench) -> None:
    bench.put("s/source.toml", 'currency = "EUR"\nusd_per_unit = { EUR = 2.0 }\n[rates]\nhuman = 30\n')
    bench.put(
        "s/log.csv",
        "case,activity,start_time,end_time,actor_kind,cost\n"
        "1,A,2020-01-01T00:00Z,2020-01-01T01:00Z,human,5\n1,B,2020-01-01T01:00Z,2020-01-01T02:00Z,human,\n",
    )
    tasks = rows(bench.read(usd_per_unit={"EUR": 1.25}))["1"]["tasks"]
    assert [(t["cost_usd"], t["cost_human_usd"], t["cost_basis"]) for t in tasks] == [
        (10.0, 10.0, "observed"),
        (30.0, 30.0, "rate"),
    ]


def test_start_and_complete_of_an_unrated_cost(bench: Bench) -> None:
    cases, *_ = bench.one(
        "log.csv",
        "case,activity,lifecycle,timestamp,actor_kind,cost\n1,A,start,2020-01-01T00:00Z,human,\n"
        "1,A,complete,2020-01-01T01:00Z,human,5\n",
        'currency = "SEK"\n[rates]\nhuman = 30\n',
    )
    assert cases["1"]["tasks"][0]["cost_usd"] is None


def test_a_currency_column_without_amounts_is_an_attribute(bench: Bench) -> None:
    cases, *_ = bench.one("log.csv", "case,activity,currency\n1,A,EUR\n")
    assert dict(cases["1"]["tasks"][0]["attributes"]) == {"currency": "EUR"}


def test_only_a_rate_that_a_source_uses_makes_it_read_again(bench: Bench) -> None:
    bench.put("euro/log.csv", "case,activity,cost,currency\n1,A,4,EUR\n")
    bench.put("dollar/log.csv", "case,activity,cost\n1,A,4\n")

    def night(**rates: float) -> dict[str, str]:
        return {s.source: s.status for s in bench.read(usd_per_unit=rates).sources}

    assert night() == {"dollar": "loaded", "euro": "loaded"}
    assert night() == {"dollar": "unchanged", "euro": "unchanged"}
    assert night(GBP=1.5) == {"dollar": "unchanged", "euro": "unchanged"}
    assert night(GBP=1.5, EUR=1.25) == {"dollar": "unchanged", "euro": "loaded"}
    assert bench.read(usd_per_unit={"EUR": 1.25}).files[1]["reason"] is None
    assert night(GBP=1.7, EUR=1.25) == {"dollar": "unchanged", "euro": "unchanged"}
    assert night(EUR=1.3) == {"dollar": "unchanged", "euro": "loaded"}
    assert night() == {"dollar": "unchanged", "euro": "unchanged"}  # what it made without rates is still there
    assert bench.read().files[1]["reason"].startswith("no rate for EUR")


def test_reading_from_nothing_gives_the_same_content(make_bench: Callable[..., Any]) -> None:
    def contents(bench: Bench, *nights: dict[str, float]) -> list[str]:
        bench.put("s/log.csv", "case,activity,cost,currency\n1,A,4,EUR\n")
        return [s.content for rates in nights for s in bench.read(usd_per_unit=rates).sources][-1:]

    assert contents(make_bench(), {}, {"EUR": 1.0}, {"EUR": 1.25, "SEK": 0.1}) == contents(make_bench(), {"EUR": 1.25})
    bench = make_bench()
    assert contents(bench, {"EUR": 1.25}) == [p.content for p in plan_history(bench.history, {"EUR": 1.25}, bench.lake)]
