import json
from pathlib import Path

import pytest

from benchmarks.exponents import exponent_of, known_costs


def test_an_exact_law_has_its_exponent_and_no_width() -> None:
    found = exponent_of({10: 2.0 * 10**1.5, 100: 2.0 * 100**1.5, 1_000: 2.0 * 1_000**1.5})
    assert (found.exponent, found.low, found.high, found.sizes) == (1.5, 1.5, 1.5, 3)


def test_costs_off_the_law_give_an_interval_around_it() -> None:
    found = exponent_of({100: 10.0, 200: 22.0, 400: 38.0, 800: 85.0})
    assert (found.low, found.exponent, found.high) == (0.785, 1.005, 1.225)


def test_two_sizes_have_no_interval_and_one_no_exponent() -> None:
    assert exponent_of({1: 1.0, 2: 4.0}).exponent == 2.0
    assert exponent_of({1: 1.0, 2: 4.0}).low is None
    with pytest.raises(ValueError, match="two sizes"):
        exponent_of({1: 1.0})


def test_costs_are_read_from_the_results_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "bulk.json").write_text(json.dumps({"intakes": {"100": {"cpu_s": 9.0}, "200": {"cpu_s": 15.0}}}))
    known = known_costs(tmp_path)
    assert known["intakes"] == {100.0: 9.0, 200.0: 15.0}
    assert known["history (events)"] == {}


def test_costs_of_the_index_are_read_by_kind_and_size(tmp_path: Path) -> None:
    taken = {
        "exact 10": {"query_cpu_ms": 1.0, "build_cpu_s": 0.0},
        "lists 10": {"query_cpu_ms": 0.5, "build_cpu_s": 2.0},
    }
    (tmp_path / "index.json").write_text(json.dumps({"taken": taken}))
    known = known_costs(tmp_path)
    assert known["tasks (exact search)"] == {10.0: 1.0}
    assert known["tasks (search in lists)"] == {10.0: 0.5}
    assert known["tasks (building the lists)"] == {10.0: 2.0}
