"""The best ways against every choice of ways."""

from itertools import product
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from tests.quality.sample.optimum import best_steps
from tests.quality.sample.simulate import simulate_chain

pytestmark = pytest.mark.long

GLASS = "Motor glass claim"


def earned(truth: Any, steps: Any, gain: Any) -> Any:
    right, cost = 1.0, 0.0
    for way in steps:
        right, cost = way["p"] * right + way["q"] * (1 - right), cost + way["cost_usd_mean"]
    return gain * right - cost


@pytest.mark.parametrize("gain", [1.0, 190.0, 5000.0])
def test_no_choice_of_ways_earns_more(written: Any, gain: Any) -> None:
    industry = written.truth["industries"]["insurance claims"]
    ways = {t["task"]: t["ways"] for t in industry["tasks"]}
    always = next(k for k in industry["kinds"] if k["kind"] == GLASS)["always"]
    best = max(earned(written.truth, chosen, gain) for chosen in product(*(ways[t] for t in always)))
    steps, usd = best_steps(written.truth, "insurance claims", GLASS, gain)
    assert [s[0] for s in steps] == always
    assert usd == pytest.approx(best)


def test_it_is_what_simulation_earns(written: Any) -> None:
    steps, usd = best_steps(written.truth, "insurance claims", GLASS, 190.0)
    assert simulate_chain(
        written.truth, "insurance claims", steps, 190.0, 50_000, kind=GLASS
    ).mean_reward == pytest.approx(usd, rel=0.01)


def test_what_the_truth_lacks_is_refused(written: Any) -> None:
    with pytest.raises(InputError, match="'Flood' is no kind of case"):
        best_steps(written.truth, "insurance claims", "Flood", 1.0)
    with pytest.raises(InputError, match="'shipping' is no industry"):
        best_steps(written.truth, "shipping", "Flood", 1.0)
