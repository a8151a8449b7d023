import pytest

from opus_pipelines.core.formatting import Ticker, duration


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (200, "3 min 20 s"),
        (3600, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_line_now_and_then_with_rate_and_time_left_and_one_at_the_end() -> None:
    lines: list[str] = []
    times = iter([0.0, 4.0, 10.0, 15.0, 20.0])
    tick = Ticker("embedded passages", lines.append, clock=lambda: next(times))
    for done in (400, 1_000, 1_500, 4_000):
        tick(done, 4_000)
    assert lines == [
        "embedded passages: 1,000 of 4,000, 100 a second, 30 s left",
        "embedded passages: 4,000 of 4,000, 200 a second",
    ]


def test_without_a_total_there_is_a_rate_and_no_time_left() -> None:
    lines: list[str] = []
    times = iter([0.0, 20.0])
    Ticker("read", lines.append, clock=lambda: next(times))(5_000)
    assert lines == ["read: 5,000, 250 a second"]


def test_work_done_at_once_has_no_rate() -> None:
    lines: list[str] = []
    Ticker("embedded", lines.append, clock=lambda: 1.0)(7, 7)
    assert lines == ["embedded: 7 of 7"]


def test_another_total_is_another_piece_of_work_with_its_own_rate() -> None:
    lines: list[str] = []
    times = iter([0.0, 10.0, 50.0, 60.0])
    tick = Ticker("embedded", lines.append, clock=lambda: next(times))
    for done, of in ((100, 100), (0, 4_000), (1_000, 4_000)):
        tick(done, of)
    assert lines[0] == "embedded: 100 of 100, 10 a second"
    assert lines[-1] == "embedded: 1,000 of 4,000, 100 a second, 30 s left"
