"""Costs, outcomes and masked text."""

import pytest

from opus_pipelines.history.ingestion import plan
from opus_pipelines.history.records import money
from opus_pipelines.history.records.column_mapping import succeeded
from opus_pipelines.history.records.money import price
from opus_pipelines.history.records.private_text import mask_text
from opus_pipelines.history.records.raw import Task
from opus_pipelines.history.records.redaction import Redactor
from opus_pipelines.history.records.source_settings import Redact, Success, TokenPrice

RATES = {"human": 36.0, "Ann": 72.0, "small": 2.0, "large": TokenPrice(tokens_in=1.0, tokens_out=10.0)}
HOUR = 3_600_000.0


@pytest.mark.parametrize(
    ("task", "cost", "parts", "basis"),
    [
        (Task(cost_usd=5.0), 5.0, (None, None, None), "observed"),
        (Task(cost_usd=5.0, actor_kind="human"), 5.0, (None, None, 5.0), "observed"),
        (Task(cost_human_usd=1.0, cost_model_usd=2.0, actor_kind="human"), 3.0, (None, 2.0, 1.0), "observed"),
        (Task(duration_ms=HOUR, actor_kind="human"), 36.0, (None, None, 36.0), "rate"),
        (Task(duration_ms=HOUR, actor_kind="human", actor="Ann"), 72.0, (None, None, 72.0), "rate"),
        (Task(duration_ms=HOUR, actor_kind="code"), None, (None, None, None), None),
        (Task(actor_kind="human"), None, (None, None, None), None),
        (Task(model="small", tokens_in=500_000, actor_kind="model"), 1.0, (None, 1.0, None), "rate"),
        (Task(model="large", tokens_in=500_000, tokens_out=100_000), 1.5, (None, 1.5, None), "rate"),
        (Task(model="large", actor_kind="model"), None, (None, None, None), None),
        (Task(model="vendor/Large-2024-05-01", tokens_in=500_000), 0.5, (None, 0.5, None), "rate"),
        (
            Task(model="large", tokens_in=500_000, actor_kind="human", duration_ms=HOUR),
            36.0,
            (None, None, 36.0),
            "rate",
        ),
        (Task(model="small", actor="small", tokens_in=500_000, duration_ms=HOUR), 1.0, (None, 1.0, None), "rate"),
        (
            Task(model="openai/gpt-4o-mini-2024-07-18", tokens_in=1_000_000, tokens_out=1_000_000),
            0.75,
            (None, 0.75, None),
            "rate",
        ),
        (Task(model="gpt-4o-2024-05-13", tokens_in=1_000_000), 5.0, (None, 5.0, None), "rate"),
        (Task(model="gpt-4o:batch", tokens_in=1_000_000), None, (None, None, None), None),
        (Task(model="gpt-4o"), None, (None, None, None), None),
        (Task(model="gpt-4o", tokens_in=7, cost_basis="unrated"), None, (None, None, None), None),
        (Task(cost_model_usd=2.0, cost_basis="unrated"), None, (None, 2.0, None), None),
    ],
)
def test_costs(task: Task, cost: float | None, parts: tuple, basis: str | None) -> None:
    price(task, RATES)
    assert (task.cost_usd, task.cost_basis) == (cost, basis)
    assert (task.cost_compute_usd, task.cost_model_usd, task.cost_human_usd) == parts


def test_a_changed_price_makes_everything_read_again() -> None:
    text = money.FILE.read_text()
    dearer = text.replace('"gpt-4o" = [2.50', '"gpt-4o" = [2.60')
    versions = [plan.reading_version(money.prices_in(t)) for t in (f"# A comment changes nothing.\n{text}", dearer)]
    assert [version == plan.reading_version() for version in versions] == [True, False]


@pytest.mark.parametrize(
    ("rule", "fields", "stated", "done", "outcome"),
    [
        (Success(), {}, None, "ab", None),
        (Success(), {"success": False}, None, "ab", False),
        (Success(column="x", equals=True), {}, "true", "", True),
        (Success(column="x", equals=True), {}, None, "ab", None),
        (Success(column="x", equals="ok"), {}, " ok ", "", True),
        (Success(column="x", equals="ok"), {}, "OK", "", False),
        (Success(column="x", equals=1), {}, "1.0", "", True),
        (Success(column="x", equals=["a", "b"]), {}, "b", "", True),
        (Success(last_activity_in="b"), {}, None, "ab", True),
        (Success(last_activity_in="a"), {}, None, "ab", False),
        (Success(last_activity_in="a"), {}, None, "", None),
        (Success(contains_activity=["a", "z"]), {}, None, "ab", True),
        (Success(contains_none_of=["z"]), {}, None, "ab", True),
        (Success(contains_none_of=["a"]), {}, None, "ab", False),
        (Success(contains_none_of=["a"]), {}, None, "", None),
    ],
)
def test_outcomes(rule: Success, fields: dict, stated: object, done: str, outcome: bool | None) -> None:
    assert succeeded(rule, fields, stated, [Task(task_key=key) for key in done]) is outcome


@pytest.mark.parametrize(
    ("written", "masked"),
    [
        ("write to ann.b+c@mail.example.org.", "write to [email]."),
        ("call +31 (0)20 123-4567 now", "call [number] now"),
        ("NL91 ABNA 0417 1643 00", "[account]"),
        ("account 123456789", "account [account]"),
        ("2016-08-04T11:39:29 and 03/04/2020 10:00", "2016-08-04T11:39:29 and 03/04/2020 10:00"),
        ("case 173688, 12.50 USD", "case 173688, 12.50 USD"),
    ],
)
def test_masked_text(written: str, masked: str) -> None:
    assert mask_text(written) == masked


def test_records_are_cut_to_four_kib_and_masking_can_be_off() -> None:
    assert len(Redactor(Redact()).record("é" * 5000).encode()) == 4096
    assert Redactor(Redact(mask_text=False)).record("a@b.org") == "a@b.org"


@pytest.mark.parametrize(
    ("rule", "by_activities"),
    [
        (Success(last_activity_in="Pay"), True),
        (Success(contains_activity="Pay"), True),
        (Success(contains_none_of="Claim rejected"), False),
        (Success(column="state", equals="paid"), False),
        (Success(), False),
    ],
)
def test_an_outcome_by_what_was_done_is_no_judgement_of_the_work(rule: Success, by_activities: bool) -> None:
    assert rule.by_activities is by_activities
