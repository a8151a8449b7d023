"""How the times and amounts of a column are written, from the values alone."""

import pytest

from opus_pipelines.proposal.table_sample import Column
from opus_pipelines.proposal.values_seen import MoneySeen, TimesSeen, money_seen, times_seen


@pytest.mark.parametrize(("values", "expected"), [
    (["2024-01-02T03:04:05Z", "2024-01-02T03:04:05+01:00"], TimesSeen(1.0)),
    (["2024-01-02 03:04:05", "02.01.2024 03:04", "13/01/2024"], TimesSeen(1.0, states_zone=False)),
    (["03/04/2024 10:00", "05/06/2024 11:30"], TimesSeen(1.0, ("%d/%m/%Y %H:%M",), ("%d/%m/%Y %H:%M",), False)),
    (["3/25/17", "4/5/17"], TimesSeen(1.0, ("%m/%d/%y",), (), False)),
    (["25.3.17 09:00", "5.4.17"], TimesSeen(1.0, ("%d.%m.%y", "%d.%m.%y %H:%M"), (), False)),
    (["20240102", "20240103"], TimesSeen(1.0, (), (), False)),
    (["1704163445", "1704163446.5"], TimesSeen(1.0)),
    (["12345", "67890"], TimesSeen(0.0)),
    (["35.0", "36.5"], TimesSeen(0.0)),
    (["red", "blue"], TimesSeen(0.0)),
    (["", " "], TimesSeen(0.0)),
])
def test_times(values: list[str], expected: TimesSeen) -> None:
    seen = times_seen(Column("when", tuple(values)))
    assert TimesSeen(seen.readable, seen.formats, seen.guessed, seen.states_zone or not seen.readable) == expected


@pytest.mark.parametrize(("values", "expected"), [
    (["9,17 €", "1.234,50 €"], MoneySeen(1.0, ",", ("EUR",))),
    (["$5.00", "1200.5"], MoneySeen(1.0, None, ("USD",))),
    (["9,17", "10"], MoneySeen(1.0, ",", ())),
    (["8", "9"], MoneySeen(1.0, None, ())),
    (["low", "9"], MoneySeen(0.5, None, ())),
    ([], MoneySeen(0.0, None, ())),
])
def test_amounts(values: list[str], expected: MoneySeen) -> None:
    assert money_seen(Column("cost", tuple(values))) == expected
