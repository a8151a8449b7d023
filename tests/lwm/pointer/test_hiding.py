"""What training hides from a case: rare tasks, and its set of tasks."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.lwm.pointer.candidates import FEATURES, PRIOR
from opus_pipelines.lwm.pointer.learning import Learning, seen_cases, unknown_tasks, without_their_sets
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans, request

CASES = plans(60)


def test_a_hidden_task_has_a_text_alone() -> None:
    candidates = memory(CASES).candidates(request(asks_for(CASES[0])), 8, 0)
    hidden = np.arange(8) == 2
    found = candidates.without_history_of(hidden)
    assert found.likelihood[2] == PRIOR
    assert found.features[2, FEATURES.index("support 0.05")] == 0
    assert found.features[2, FEATURES.index("cosine")] == candidates.features[2, FEATURES.index("cosine")]
    assert found.before[2].sum() == found.before[:, 2].sum() == found.counts[2] == 0
    others = [n for n in range(8) if n != 2]
    assert np.array_equal(found.before[np.ix_(others, others)], candidates.before[np.ix_(others, others)])
    assert np.array_equal(found.likelihood[others], candidates.likelihood[others])


def test_a_task_of_n_cases_is_unknown_a_fifth_of_the_time_divided_by_n() -> None:
    cases = [*[(TOOLS[0],)] * 4, *[(TOOLS[1], TOOLS[2])] * 2, (TOOLS[3], TOOLS[0], TOOLS[1])]
    whole, draw = memory(cases), np.random.default_rng(0)
    assert whole.counts.tolist() == [5, 3, 2, 1, 0, 0, 0, 0]
    times = sum(unknown_tasks(whole, draw).astype(int) for _ in range(4_000))
    assert times[:4] / 4_000 == pytest.approx([0.04, 0.067, 0.1, 0.2], abs=0.02)
    assert times[4:].tolist() == [0, 0, 0, 0], "no case would need it"


def test_where_tasks_are_words_those_of_one_case_are_never_unknown() -> None:
    words = memory([(TOOLS[0], TOOLS[1]), (TOOLS[0], TOOLS[2]), (TOOLS[3], TOOLS[4]), (TOOLS[5], TOOLS[6])])
    draw = np.random.default_rng(0)
    times = sum(unknown_tasks(words, draw).astype(int) for _ in range(500))
    assert np.flatnonzero(times).tolist() == [0]


def test_a_case_is_asked_of_a_memory_without_its_set_of_tasks() -> None:
    whole = memory([*CASES, (TOOLS[0], TOOLS[1]), (TOOLS[1], TOOLS[0])])
    sets = [frozenset(trace) for trace in whole.traces]
    found = list(without_their_sets(whole, [1, 60, 61]))
    assert sorted(case for _, asked in found for case in asked) == [1, 60, 61]
    for view, asked in found:
        left = [frozenset(trace) for trace in view.traces]
        assert not {sets[case] for case in asked} & set(left)
        assert left == [own for own in sets if own in set(left)], "of a set all cases are there, or none"


def test_a_tool_that_the_other_sets_lack_counts_as_declared() -> None:
    cases = [*[(TOOLS[n % 3],) for n in range(60)], (TOOLS[3], TOOLS[4])]
    ((view, asked),) = without_their_sets(memory(cases), [60])
    assert asked == [60]
    assert view.declared[[3, 4]].tolist() == [True, True]
    assert view.declared.tolist() == (view.counts == 0).tolist()


def asked(cases: Sequence[Sequence[str]], new_sets: float) -> list[tuple[int, list[float]]]:
    """Return the cases that training asks, each with how many cases its candidates have."""
    whole, requests = memory(cases), [request(asks_for(case)) for case in cases]
    how, draw = Learning(new_sets=new_sets), np.random.default_rng(0)
    found = seen_cases([(whole, requests)], range(len(cases)), how, draw)
    return [(case, candidates.counts.tolist()) for (_, case), candidates in found]


@pytest.mark.parametrize(("share", "once", "twice"), [(0.0, 52, 8), (0.5, 27, 33), (1.0, 0, 60)])
def test_a_share_of_the_cases_is_asked_a_second_time_without_its_set_of_tasks(
    share: float, once: int, twice: int
) -> None:
    times = Counter(Counter(case for case, _ in asked(CASES, share)).values())
    assert (times[1], times[2]) == (once, twice), "without a share, few cases have a rare task to be asked without"


def test_where_tasks_are_words_no_case_is_asked_without_its_set() -> None:
    words = [(TOOLS[0], TOOLS[1]), (TOOLS[0], TOOLS[2]), (TOOLS[3], TOOLS[4]), (TOOLS[5], TOOLS[6])]
    assert asked(words, 1.0) == asked(words, 0.0)
