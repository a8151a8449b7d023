import numpy as np
import pytest

from opus_pipelines.forecasts.context_counts import ContextCounts

# Two cases: 1 2 1 3 end, and 1 2 2 3 end; 0 is the end.
SYMBOLS = np.array([1, 2, 1, 3, 1, 2, 2, 3])
POSITION = np.array([0, 1, 2, 3, 0, 1, 2, 3])
FOLLOWING = np.array([2, 1, 3, 0, 2, 2, 3, 0])


def test_a_context_outweighs_what_the_shorter_one_says() -> None:
    counts = ContextCounts(SYMBOLS, POSITION, FOLLOWING, kinds=4, max_depth=3)

    found = counts.probabilities(np.array([1, 2, 1]), np.array([0, 1, 2]))

    assert found.argmax(axis=1).tolist() == [2, 2, 3]  # after "1 2" the second 2 and the 1 tie until the context "2"
    assert found.sum(axis=1) == pytest.approx(np.ones(3))


def test_discounting_of_one_step() -> None:
    counts = ContextCounts(np.array([1, 1]), np.array([0, 0]), np.array([0, 0]), kinds=2, max_depth=1)

    # n(1 → 0) = 2, so Ney's discount is 0 / (0 + 2·1) = 0, raised to the least, .1; the unigram is (2.5, .5) / 3.
    assert counts.probabilities(np.array([1]), np.array([0]))[0] == pytest.approx(
        [1.9 / 2 + 0.1 / 2 * 2.5 / 3, 0.1 / 2 * 0.5 / 3]
    )


def test_an_unknown_activity_falls_back_to_what_is_frequent() -> None:
    counts = ContextCounts(SYMBOLS, POSITION, FOLLOWING, kinds=4)

    assert counts.probabilities(np.array([9]), np.array([0]))[0] == pytest.approx(np.array([2.5, 1.5, 3.5, 2.5]) / 10)


def test_an_event_whose_follower_nobody_saw_counts_in_no_context() -> None:
    open_end = np.where(FOLLOWING == 0, -1, FOLLOWING)

    counts = ContextCounts(SYMBOLS, POSITION, open_end, kinds=4)

    assert counts.evidence(np.array([1, 2, 1, 3]), np.array([0, 1, 2, 3]))[1].tolist() == [2, 2, 1, 0]


def test_a_context_does_not_reach_over_the_start_of_a_case() -> None:
    counts = ContextCounts(SYMBOLS, POSITION, FOLLOWING, kinds=4)

    longest, seen = counts.evidence(np.array([1, 1]), np.array([0, 0]))

    assert longest.tolist() == [2, 2]  # "1", and "start 1"
    assert seen.tolist() == [2, 2]


def test_events_that_are_taken_out_leave_the_counts_of_the_others() -> None:
    second = np.arange(8) >= 4
    counts = ContextCounts(SYMBOLS, POSITION, FOLLOWING, kinds=4).without(
        SYMBOLS, POSITION, np.where(second, FOLLOWING, -1)
    )

    longest, seen = counts.evidence(SYMBOLS, POSITION)

    assert longest[:4].tolist() == [2, 3, 4, 5]  # the whole case with its start
    assert seen[:4].tolist() == [1, 1, 1, 1]
    assert longest[6] == 1  # after "2 2" only the "2" of the other case is known
    assert counts.probabilities(SYMBOLS, POSITION).sum(axis=1) == pytest.approx(np.ones(8))


def test_without_all_events_everything_is_as_likely() -> None:
    counts = ContextCounts(SYMBOLS, POSITION, FOLLOWING, kinds=4).without(SYMBOLS, POSITION, FOLLOWING)

    assert counts.probabilities(SYMBOLS, POSITION) == pytest.approx(np.full((8, 4), 0.25))
