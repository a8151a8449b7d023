"""Columns of traces: what is known of the end of a case that had not ended, or began before ends were recorded."""

import numpy as np

from opus_pipelines.forecasts.traces import Trace, Vocabulary

TRACES = [
    Trace("old", ["a", "b"], [0.0, 100.0]),
    Trace("new", ["a", "b"], [90.0, 130.0]),
    Trace("open", ["a"], [120.0], is_open=True),
]


def test_an_open_case_lasts_at_least_until_the_newest_event_of_all() -> None:
    table = Vocabulary.of(TRACES).table(TRACES)

    assert table.remaining.tolist() == [100.0, 0.0, 40.0, 0.0, 10.0]


def test_no_end_is_seen_before_the_earliest_one() -> None:
    table = Vocabulary.of(TRACES).table(TRACES)

    assert table.end_seen_from.tolist() == [100.0, 0.0, 10.0, 0.0, 0.0]


def test_without_any_end_nothing_is_known_of_when_ends_were_recorded() -> None:
    only = [TRACES[2]]

    assert np.array_equal(Vocabulary.of(only).table(only).end_seen_from, [0.0])


def test_events_before_the_first_recorded_end_do_not_teach_what_follows() -> None:
    """A thousand cases began long before the first one ended: of them the history has those that went on."""
    begun = [Trace(f"old{n}", ["a", "b", "c"], [float(n), 3_000.0, 4_000.0 + n]) for n in range(1_000)]
    table = Vocabulary.of(begun).table(begun)

    assert np.flatnonzero(table.taught >= 0)[0] == 2 + 3 * 9  # a hundredth of the ends came before that of old9
    assert (table.taught >= 0).sum() == 991
    few = Vocabulary.of(begun).table(begun[:100])
    assert np.array_equal(few.taught, few.following)


def test_the_events_of_some_cases_are_numbered_anew() -> None:
    part = Vocabulary.of(TRACES).table(TRACES).of_cases(np.array([True, False, True]))

    assert part.code.tolist() == [1, 2, 1]
    assert part.time.tolist() == [0.0, 100.0, 120.0]
    assert part.case.tolist() == [0, 0, 1]
    assert part.position.tolist() == [0, 1, 0]
    assert part.is_open.tolist() == [False, True]
