"""Which cases of an export were still running, and how they go on: known logs, cut at a moment, against what then
happened.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opus_pipelines.history.records.arrow_arrays import packed
from opus_pipelines.wkg.estimates.next_activity import LONGEST_REST, Events, continuations, is_held_by_end

DAY = 86_400.0
OPEN, SEND, PAY = 0, 1, 2


class Continuation(NamedTuple):
    p_ended: float
    rest: tuple[int, ...]


def log(cases: list[Any]) -> Any:
    """A case a list of (activity, day)."""
    events = [event for case in cases for event in case]
    activities, days = np.array([a for a, _ in events], int), np.array([d for _, d in events], float)
    found = continuations(Events(np.array([len(case) for case in cases], int), activities, days * DAY))
    return [Continuation(p, found.rest.get(case, ())) for case, p in enumerate(found.p_ended.tolist())]


def cut(cases: list[Any], day: int) -> Any:
    return [[event for event in case if event[1] <= day] for case in cases]


WHOLE = [[(OPEN, n), (SEND, n + 1), (PAY, n + 11)] for n in range(100)]  # paid ten days after it was sent, always


def test_a_case_that_waits_as_long_as_others_did_before_they_went_on_is_open_and_gets_its_rest() -> None:
    found = log(cut(WHOLE, 90))
    waiting = found[85]  # sent on day 86, four days of silence
    assert waiting.p_ended < 0.01
    assert waiting.rest == (PAY,)
    assert log(cut(WHOLE, 90))[90].rest == (SEND, PAY)  # begun on the last day


def test_a_case_behind_its_usual_end_has_ended() -> None:
    found = log(cut(WHOLE, 90))
    assert found[10] == Continuation(1.0, ())


def test_a_case_that_is_silent_far_beyond_every_wait_has_ended_where_it_stands() -> None:
    left = [*WHOLE, [(OPEN, 0), (SEND, 1)]]  # never paid: silent for 110 days, and nobody paid later than after 10
    assert log(left)[-1] == Continuation(1.0, ())


def test_no_event_no_time_to_come_and_one_case() -> None:
    assert log([]) == []
    assert log([[(OPEN, 1)]]) == [Continuation(1.0, ())]
    assert log([[]]) == [Continuation(1.0, ())]


def test_the_share_that_ends_early_is_told_from_the_share_that_goes_on() -> None:
    # Of every four cases one ends when it was sent; of those that are cut off half-way the estimate must not call that
    # the rule.
    cases = [case if n % 4 else case[:2] for n, case in enumerate(WHOLE * 3)]
    found = log(cut(cases, 95))
    fresh = [f for f, case in zip(found, cut(cases, 95), strict=True) if len(case) == 2 and case[-1][1] == 95]
    assert len(fresh) == 3
    assert [f.p_ended for f in fresh] == pytest.approx([0.25] * 3, abs=0.1)


def test_the_same_log_gives_the_same_continuations() -> None:
    assert log(cut(WHOLE, 50)) == log(cut(WHOLE, 50))


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=6), max_size=40))
def test_every_log_gives_probabilities_and_a_bounded_rest(cases: list[Any]) -> None:
    ordered = [sorted(case, key=lambda event: event[1]) for case in cases]
    known = {a for case in cases for a, _ in case}
    for found in log(ordered):
        assert 0.0 <= found.p_ended <= 1.0
        assert len(found.rest) <= LONGEST_REST
        assert known.issuperset(found.rest)


def test_an_export_of_finished_cases_only_has_no_open_case() -> None:
    """Each case ended in the last month; some began long before it, and a fifth is audited long after it was paid."""
    rng = np.random.default_rng(3)
    ended = [
        [(OPEN, day), (SEND, day + 1 + int(rng.integers(9))), (PAY, day + 30)] + [(3, day + 60)] * (n % 5 == 0)
        for n, day in enumerate(rng.integers(0, 150, 1_000).tolist())
    ]
    ended = [case for case in ended if 120 <= case[-1][1] < 150]
    found = log(ended)
    assert (len(found) > 100, sum(one.p_ended < 0.5 for one in found)) == (True, 0)
    # The same work, cut on day 120: what was opened or sent by then waits, and goes on.
    waiting = [one for one, case in zip(found, log(cut(ended, 120)), strict=False) if case.p_ended < 0.5]
    assert len(waiting) > 20


def test_what_followed_late_in_few_cases_is_not_expected_of_all_others() -> None:
    """One case of eight is audited, at any time up to the end of the log: a paid case is still a finished one."""
    rng = np.random.default_rng(5)
    cases = []
    for n, day in enumerate(rng.integers(0, 700, 2_000).tolist()):
        audit = [(3, day + int(rng.integers(100, 700)))] if n % 8 == 0 else []
        cases.append([(OPEN, day), (PAY, day + 5), *audit])
    paid = [one for one, case in zip(log(cut(cases, 700)), cut(cases, 700), strict=True) if case[-1][0] == PAY]
    assert sum(one.p_ended < 0.5 for one in paid) <= 0.01 * len(paid)


def test_what_is_stated_of_a_case_wins_over_its_silence() -> None:
    lengths, days = np.array([2, 2]), np.array([0.0, 1.0, 0.0, 300.0])
    found = continuations(Events(lengths, np.array([0, 1, 0, 1]), days * DAY), None, np.array([0.0, np.nan]))
    assert found.p_ended.tolist() == [0.0, 1.0]


def test_a_log_that_holds_cases_by_their_end_begins_late() -> None:
    even = np.arange(100.0)
    assert not is_held_by_end(even, even + 30)
    # Closed in the last week: the log reaches back for years only where a case took years.
    began = np.concatenate([np.array([0.0, 200.0, 400.0]), 1_000 + even[:40] / 10])
    assert is_held_by_end(began, np.full(43, 1_005.0))
    assert not is_held_by_end(np.zeros(1), np.zeros(1))


@pytest.mark.long
def test_a_source_may_have_thousands_of_activities() -> None:
    """Three codes of 32 bits, multiplied in 32 bits, were out of bounds from 1,290 activities on."""
    activities = np.arange(5_000, dtype=np.int32)
    events = Events(np.array([2_500, 2_500]), activities, np.arange(5_000, dtype=float))
    found = continuations(events)
    assert len(found.p_ended) == 2
    assert all(0 <= chance <= 1 for chance in found.p_ended.tolist())


def test_codes_are_packed_in_64_bits_or_refused() -> None:
    codes = np.array([0, 99_999], np.int32)
    number = packed((codes, 100_000), (codes, 100_000), (codes, 100_000))
    assert number.tolist() == [0, 10**15 - 1]
    assert [column.tolist() for column in np.unravel_index(number, (100_000,) * 3)] == [[0, 99_999]] * 3
    with pytest.raises(OverflowError, match="64 bits"):
        packed(*[(codes, 100_000)] * 4)
