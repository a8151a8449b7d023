"""The sample in which the order of steps decides: what history shows, what is asked, and what the truth makes of it."""

import json
from pathlib import Path

import pytest

from opus_pipelines.quality.sample.order import FIRST, LAST, PRODUCTS, p_of, true_reward_usd, write_order_sample


def test_no_case_of_history_has_the_three_steps_that_an_intake_asks_for(tmp_path: Path) -> None:
    write_order_sample(tmp_path)
    cases = [json.loads(line) for line in (tmp_path / "history/halden/productions.jsonl").read_text().splitlines()]
    assert len(cases) == 6 * 3 * 60
    done = [{step["step"] for step in case["steps"]} for case in cases]
    for product in PRODUCTS:
        assert not any({product.good, product.bad, product.join} <= tasks for tasks in done)
        assert any({product.good, product.join} <= tasks for tasks in done)
        intake = (tmp_path / f"intakes/halden/productions/{product.name}/intake.toml").read_text()
        assert all(name in intake for name in (product.good, product.bad, product.join))


def test_both_orders_of_the_preparations_are_about_as_frequent(tmp_path: Path) -> None:
    write_order_sample(tmp_path, seed=3)
    lines = (tmp_path / "history/halden/productions.jsonl").read_text().splitlines()
    orders = [[s["step"] for s in case["steps"]] for case in map(json.loads, lines) if "-2-" in case["case"]]
    good = {product.good for product in PRODUCTS}
    assert 0.35 < sum(order[1] in good for order in orders) / len(orders) < 0.65


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_order_sample(tmp_path / name, seed)
    a, b, c = ((tmp_path / name / "history/halden/productions.jsonl").read_bytes() for name in "abc")
    assert a == b != c


def test_the_reward_by_the_truth() -> None:
    product = PRODUCTS[0]
    good = true_reward_usd((FIRST, product.bad, product.good, product.join, *LAST))
    bad = true_reward_usd((FIRST, product.good, product.bad, product.join, *LAST))
    assert (p_of(product.join, product.good), p_of(product.join, product.bad), p_of(product.join, None)) == (
        0.97,
        0.7,
        0.85,
    )
    assert (good, bad) == (pytest.approx(33.14, abs=0.01), pytest.approx(20.57, abs=0.01))
    assert true_reward_usd((FIRST,)) == pytest.approx(60 * 0.97 - 3)
