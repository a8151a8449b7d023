"""p and q from how cases ended, on histories drawn from a known truth."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.wkg.estimates.outcome_attribution import (
    Judged,
    OutcomeAttribution,
    Paths,
    Prior,
    attribute_outcomes,
    hmm_scores,
)

PRIOR = Prior(0.95, 0.2, 5)


def paths_of(counts: dict[tuple[int, ...], tuple[int, int]], size: int) -> Paths:
    """Sequences with (cases, successes)."""
    keys = sorted(counts)
    flat = np.array([t for key in keys for t in key], np.int64)
    cases, successes = np.array([counts[key] for key in keys]).T
    return Paths.of(flat, np.array([len(key) for key in keys]), cases, successes, size)


def drawn(seed: int, cases: int, done: float, returning: float = 0.0) -> tuple[Paths, np.ndarray, np.ndarray]:
    """Cases of twenty tasks, each done with chance `done`; after every fifth a case that is wrong goes back three
    tasks.
    """
    random = np.random.default_rng(seed)
    p, q = 1 - random.gamma(1, 0.03, 20).clip(0.001, 0.3), random.beta(1, 4, 20)
    seen, right_ends = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for _ in range(cases):
        plan = [t for t in range(20) if random.random() < done]
        right, path, at = True, [], 0
        while at < len(plan):
            task = plan[at]
            path.append(task)
            right = bool(random.random() < (p[task] if right else q[task]))
            back = task % 5 == 4 and not right and len(path) < 100 and random.random() < returning
            at = max(0, at - 2) if back else at + 1
        if path:
            seen[tuple(path)] += 1
            right_ends[tuple(path)] += right
    return paths_of({key: (n, right_ends[key]) for key, n in seen.items()}, 20), p, q


def estimated(paths: Paths, size: int = 20, judged: Judged | None = None) -> OutcomeAttribution:
    zero = np.zeros(size), np.zeros(size)
    return attribute_outcomes(paths, judged or Judged(zero, zero), np.zeros(size, int), PRIOR)


def covered(found: OutcomeAttribution, p: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    of_p, of_q = (
        float(np.mean((low <= true) & (true <= high))) for (low, high), true in ((found.p_range, p), (found.q_range, q))
    )
    return of_p, of_q


@pytest.mark.long
@pytest.mark.parametrize(("done", "returning"), [(1.0, 0.0), (0.8, 0.0), (0.8, 0.7)])
def test_intervals_hold_the_truth_and_say_something(done: float, returning: float) -> None:
    results, widths = [], []
    for seed in range(4):
        paths, p, q = drawn(seed, 400, done, returning)
        found = estimated(paths)
        results.append(covered(found, p, q))
        widths.append((np.median(found.p_range[1] - found.p_range[0]), np.median(found.q_range[1] - found.q_range[0])))
    assert np.mean(results) >= 0.88
    assert np.mean([p for p, _ in widths]) < 0.2
    assert np.mean([q for _, q in widths]) < 0.7


def test_outcomes_that_follow_rejections_have_intervals() -> None:
    """Reduced from DomesticDeclarations under "succeeded when nothing was rejected": p_lower was not a number, and
    nothing was published. L submitted, A approved, E rejected by the employee, G rejected by the administration.
    """
    letters = "ABDEGLMN"
    sequences = {"LADNM": (4566, 4566), "LEGLABDNM": (183, 0)}
    found = estimated(paths_of({tuple(map(letters.index, key)): counts for key, counts in sequences.items()}, 8), 8)
    for low, high in (found.p_range, found.q_range):
        assert np.all((low >= 0) & (low < high) & (high <= 1))
    approved, rejected = letters.index("A"), letters.index("E")
    assert found.p_range[0][approved] > 0.99
    assert found.p_range[0][rejected] < 0.1


def rejecting(seed: int) -> tuple[Paths, np.ndarray, np.ndarray]:
    """800 cases of nine tasks that succeed, and of three rejections (9 to 11) after which a case is all but lost."""
    random = np.random.default_rng(seed)
    p, q = 1 - random.gamma(1, 0.02, 12).clip(0.001, 0.3), random.beta(1, 4, 12)
    p[9:], q[9:] = random.uniform(0.0, 0.2, 3), random.uniform(0, 0.02, 3)
    seen, right_ends = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for _ in range(800):
        plan = [t for t in range(9) if random.random() < 0.85]
        for rejection in (9, 10, 11):
            if random.random() < 0.08:
                plan.insert(int(random.integers(0, len(plan) + 1)), rejection)
        right = True
        for task in plan:
            right = bool(random.random() < (p[task] if right else q[task]))
        seen[tuple(plan)] += 1
        right_ends[tuple(plan)] += right
    return paths_of({key: (n, right_ends[key]) for key, n in seen.items() if key}, 12), p, q


@pytest.mark.long
def test_intervals_hold_the_truth_of_rejections_too() -> None:
    held = []
    for seed in range(12):
        paths, p, _ = rejecting(seed)
        low, high = estimated(paths, 12).p_range
        held.append((low <= p) & (p <= high))
    assert np.mean(held) >= 0.92
    assert np.mean(np.array(held)[:, 9:]) >= 0.85  # 0.56 where the prior falls exponentially


def test_cases_with_and_without_a_step_tell_which_one_fails() -> None:
    paths = paths_of({(0, 1): (400, 396), (0, 1, 2): (400, 300), (0, 2): (200, 150)}, 3)
    found = estimated(paths, 3)
    assert found.p[2] == pytest.approx(0.75, abs=0.02)
    assert min(found.p[:2]) > 0.98
    assert found.p_range[1][2] < min(found.p_range[0][:2])


@pytest.mark.long
def test_the_value_of_p_reproduces_outcomes_if_nothing_is_mended() -> None:
    paths, _, _ = drawn(3, 2000, 0.8)
    p = estimated(paths).p
    right = np.exp(np.bincount(paths.row, np.log(p[paths.tasks])))
    assert paths.cases @ right == pytest.approx(paths.successes.sum(), rel=0.01)


def test_steps_that_were_judged_count_as_evidence() -> None:
    paths = paths_of({(0, 1): (200, 160)}, 2)
    alike = estimated(paths, 2)
    assert alike.p[0] == pytest.approx(alike.p[1], abs=0.02)
    counts = np.array([500.0, 0.0])
    judged = estimated(paths, 2, Judged((counts, np.zeros(2)), (np.zeros(2), np.zeros(2))))
    assert judged.p[0] > 0.995
    assert judged.p[1] == pytest.approx(0.8, abs=0.03)


@pytest.mark.long
def test_the_order_of_the_rows_and_a_second_run_change_nothing() -> None:
    paths, _, _ = drawn(1, 200, 0.9)
    assert np.array_equal(estimated(paths).p_range, estimated(paths).p_range)


def test_no_case_at_all_and_no_failure_at_all() -> None:
    nothing = np.zeros(0, np.int64)
    none = estimated(Paths.of(nothing, nothing, nothing, nothing, 2), 2)
    assert none.p.tolist() == pytest.approx([0.95, 0.95], abs=1e-6)
    assert all(0.5 < low < 0.95 < high <= 1 for low, high in zip(*none.p_range, strict=True))
    perfect = estimated(paths_of({(0, 1): (100, 100)}, 2), 2)
    assert all(0.98 < low < p < 1 for p, low in zip(perfect.p, perfect.p_range[0], strict=True))


chance = st.floats(0.05, 0.95)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.lists(chance, min_size=8, max_size=8))
def test_scores_are_the_derivatives_of_the_likelihood(path: list[int], chances: list[float]) -> None:
    paths = paths_of({tuple(path): (5, 3)}, 4)
    p, q, returning = np.array(chances[:4]), np.array(chances[4:]), (np.full(4, 0.1), np.full(4, 0.4))
    found = hmm_scores(paths, p, q, returning)
    for which, sides in (("p", found.p), ("q", found.q)):
        slope = paths.by_task(3 * sides[0] + 2 * sides[1])
        for task in range(4):
            step = np.zeros(4)
            step[task] = 1e-6
            ends = [
                hmm_scores(paths, p + s * step * (which == "p"), q + s * step * (which == "q"), returning)
                for s in (1, -1)
            ]
            assert (ends[0].log_likelihood - ends[1].log_likelihood) / 2e-6 == pytest.approx(
                slope[task], rel=1e-4, abs=1e-5
            )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(chance, chance), min_size=1, max_size=6))
def test_a_sequence_ends_right_as_eval_4_says(figures: list[tuple[float, float]]) -> None:
    right = 1.0
    for p, q in figures:
        right = p * right + q * (1 - right)
    p, q = (np.array(column) for column in zip(*figures, strict=True))
    paths = paths_of({tuple(range(len(figures))): (1, 1)}, len(figures))
    assert hmm_scores(paths, p, q, (p, p)).right[0] == pytest.approx(right)
