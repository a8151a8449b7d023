"""The bid, on rows small enough to recount by hand."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta

import duckdb
import pytest
from openpyxl import load_workbook

from opus_pipelines.core.errors import InputError
from opus_pipelines.reporting.bid import Bid, Terms, bid, grade, render_bid, sentences
from opus_pipelines.reporting.spreadsheets import as_xlsx

WORKFLOWS = """
CREATE TABLE workflows_optimized AS SELECT * FROM (VALUES
    ('Acme', 'Claims', 'i1', 'w1', 1, 'Storm <b>', 'clear', 2, 0, 30e0, 0e0, 0, 6e0, 50e0, 40e0, 0.9e0, 24e0, 0.8e0),
    ('Acme', 'Claims', 'i2', 'w2', 1, 'Glass', 'clear', 1, 0, 10.0e0, 0.5e0, 0, NULL, NULL, 12.0e0, 0.5e0, NULL, NULL),
    ('Acme', 'Claims', 'i2', 'w3', 2, 'Glass', NULL, 1, 0, 9.0e0, 0.5e0, 0, NULL, NULL, 12.0e0, 0.5e0, NULL, NULL),
    ('Acme', 'Claims', 'i3', 'w4', 1, 'Theft', 'clear', 1, 0, NULL, NULL, 1, NULL, NULL, 0.0e0, NULL, NULL, NULL),
    ('Other', 'Claims', 'i4', 'w5', 1, 'Theft', 'clear', 1, 0, 1.0e0, 0.0e0, 0, NULL, NULL, 9.0e0, 1.0e0, NULL, NULL)
) AS t(client, contract, intake_id, workflow_id, rank, title, verdict, tasks, reviews, cost_usd, cost_assumed_share,
       cost_unknown_steps, repetition_usd, case_cost_usd, similar_cases, success_probability, deadline_hours,
       p_deadline);
ALTER TABLE workflows_optimized ADD COLUMN start_success_low DOUBLE;
ALTER TABLE workflows_optimized ADD COLUMN start_success_high DOUBLE;
ALTER TABLE workflows_optimized ADD COLUMN lead_time_ms_p50 DOUBLE DEFAULT 7200000;
ALTER TABLE workflows_optimized ADD COLUMN lead_time_ms_p90 DOUBLE DEFAULT 7200000;
CREATE TABLE generation_intakes AS SELECT * FROM (VALUES
    ('Acme', 'Claims', 'i1', 'storm'), ('Acme', 'Claims', 'i2', 'glass'), ('Acme', 'Claims', 'i3', 'theft'),
    ('Other', 'Claims', 'i4', 'theft')) AS t(client, contract, intake_id, folder);
CREATE TABLE workflows_tasks AS SELECT * FROM (VALUES
    ('Acme', 'Claims', 'w1', 'task', 1, 'a', 'Check', 'human', NULL, 'clerks', 20.0e0, 20.0e0, 'observed', 3600000.0e0),
    ('Acme', 'Claims', 'w1', 'task', 2, 'b', 'Pay', 'code', NULL, NULL, 10.0e0, 0.0e0, 'observed', NULL),
    ('Acme', 'Claims', 'w2', 'task', 1, 'c', 'Repair', 'human', NULL, NULL, 10.0e0, 10.0e0, 'estimated', NULL),
    ('Acme', 'Claims', 'w3', 'task', 1, 'c', 'Repair', 'human', NULL, NULL, 9.0e0, 9.0e0, 'estimated', NULL),
    ('Acme', 'Claims', 'w4', 'task', 1, 'd', 'Report', 'human', NULL, NULL, NULL, NULL, NULL, NULL)
) AS t(client, contract, workflow_id, kind, position, task_id, title, actor_kind, model, actor_group, cost_usd,
       cost_human_usd, cost_basis, duration_ms);
CREATE TABLE wkg_task_implementations AS SELECT * FROM (VALUES
    ('a', 'human', NULL, 'clerks', 4e0, 100), ('b', 'code', NULL, NULL, 0e0, 100),
    ('a', 'human', NULL, 'others', 9e0, 9)
) AS t(task_id, actor_kind, model, actor_group, cost_usd_deviation, cost_n);
CREATE TABLE process_cases (client VARCHAR, tasks VARCHAR[], started_at TIMESTAMPTZ);
"""
TERMS = Terms(0.2, {}, 100)


@pytest.fixture
def lake() -> duckdb.DuckDBPyConnection:
    """Two months of Acme: 10 cases like the storm, 4 of which lack its payment, 3 like the glass, one like nothing."""
    connection = duckdb.connect()
    connection.execute(WORKFLOWS)
    first = datetime(2026, 1, 1, tzinfo=UTC)
    done = [["a", "b"]] * 6 + [["a"]] * 4 + [["c"]] * 3 + [["x", "y", "d"]]
    cases = [["Acme", tasks, first + timedelta(days=60.875 * n / (len(done) - 1))] for n, tasks in enumerate(done)]
    connection.executemany("INSERT INTO process_cases VALUES (?, ?, ?)", [*cases, ["Other", ["d"], first]])
    return connection


def test_volumes_costs_and_prices_of_each_kind_of_work(lake: duckdb.DuckDBPyConnection) -> None:
    glass, storm, theft = bid(lake, "Acme", None, TERMS).lines
    assert (storm["intake"], storm["volume_basis"], storm["grade"]) == ("storm", "history", "A")
    assert storm["cases_a_month"] == pytest.approx(10 / 60 * 30.4375)  # full days from the first case to the last
    assert (storm["unit_cost_usd"], storm["unit_price_usd"]) == (36, 45)  # with 6 $ for steps done again
    assert storm["year_cost_usd"] == pytest.approx(12 * storm["cases_a_month"] * 36)
    assert (glass["cases_a_month"], glass["grade"]) == (pytest.approx(3 / 60 * 30.4375), "C")
    assert (theft["volume_basis"], theft["unit_cost_usd"], theft["year_price_usd"]) == ("not known", None, None)


def test_a_stated_volume_counts_before_history(lake: duckdb.DuckDBPyConnection) -> None:
    offer = bid(lake, "Acme", "Claims", Terms(0.2, {"storm": 100, "": 7}, 100))
    glass, storm, theft = offer.lines
    assert [line["cases_a_month"] for line in (glass, storm, theft)] == [7, 100, 7]
    assert offer.total["year_cost_usd"] == 12 * (100 * 36 + 7 * 10)
    assert offer.total["margin"] == pytest.approx(0.2)
    assert offer.total["not_priced"] == ["theft"]
    assert offer.total["share_within_deadline"] == pytest.approx(0.8)  # only the storm has one
    assert offer.people == [
        {"group": "clerks", "hours_a_month": 100, "people": 1, "steps_of_unknown_time": 0},
        {"group": "human", "hours_a_month": 0, "people": 0, "steps_of_unknown_time": 1},
    ]
    changes = [row["year_usd"] for row in offer.assumptions]
    assert changes == sorted(changes)
    followed, paid = (
        row["year_usd"] for word in ("followed", "paid") for row in offer.assumptions if word in row["assumption"]
    )
    assert followed == -12 * 100 * (50 - 36)
    assert paid == pytest.approx(-12 * (100 * 45 * 0.1 + 7 * 12.5 * 0.5))


def test_the_risk_grows_with_what_is_assumed_and_falls_with_the_margin(lake: duckdb.DuckDBPyConnection) -> None:
    def offered(margin: float, **volumes: float) -> Bid:
        return bid(lake, "Acme", None, Terms(margin, volumes, 100))

    surely, assumed = offered(0.2, storm=50, glass=0), offered(0.2, storm=0, glass=50)
    assert surely.total["p_loss"] < 0.001 < assumed.total["p_loss"]
    assert surely.total["margin_p05"] > assumed.total["margin_p05"]
    assert offered(0.5, storm=0, glass=50).total["p_loss"] < assumed.total["p_loss"]
    assert 0.4 < offered(0, storm=0, glass=50).total["p_loss"] < 0.6
    assert offered(0.2, storm=50, glass=0).total == surely.total, "draws are seeded"


def test_what_cannot_be_bid_is_named(lake: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(InputError, match="Nobody"):
        bid(lake, "Nobody", None, TERMS)
    with pytest.raises(InputError, match=r"hail.*glass, storm, theft"):
        bid(lake, "Acme", None, dataclasses.replace(TERMS, volumes={"hail": 1}))
    with pytest.raises(InputError, match="--volume"):
        bid(lake, "Other", None, TERMS)


def test_the_page_and_the_workbook_have_every_table(lake: duckdb.DuckDBPyConnection) -> None:
    offer = bid(lake, "Acme", None, TERMS)
    page = render_bid(offer)
    assert "clerks" in page
    assert "<b>" not in page
    assert [text for text in ("storm", "glass", "theft") if text not in page] == []
    assert any("theft" in sentence for sentence in sentences(offer))
    content, _ = as_xlsx(offer.sheets)
    book = load_workbook(io.BytesIO(content))
    assert {name: book[name].max_row - 1 for name in book.sheetnames} == {
        "lines": 3,
        "people": 2,
        "assumptions": len(offer.assumptions),
        "total": 1,
    }


def test_grades_ask_for_observed_cost_and_for_similar_cases() -> None:
    assert [grade(*figures) for figures in ((1, 30), (1, 29), (0.8, 50), (0.5, 5), (0.3, 99), (1, 0))] == list("ABBCDD")
