"""Reports the progress of long work: records done, their rate, and the time left."""

from collections.abc import Callable
from time import monotonic

EVERY_SECONDS = 10.0


class Ticker:
    """Reports progress when it is called with (done, of): at most one line every `every` seconds, and one at the end.

    `of` is None where the total is unknown; then no time left is reported. Another `of` begins another piece of work.
    """

    def __init__(
        self,
        label: str,
        say: Callable[[str], None],
        every: float = EVERY_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._label, self._say, self._every, self._clock = label, say, every, clock
        self._began = self._said = clock()
        self._of: int | None = None

    def __call__(self, done: int, of: int | None = None) -> None:
        """Reports a line where one is due; `done` and `of` count records."""
        now = self._clock()
        if of != self._of:
            self._began, self._of = self._said if self._of is None else now, of
        if now - self._said < self._every and done != of:
            return
        self._said = now
        self._say(f"{self._label}: {_progress(done, of, now - self._began)}")


def _progress(done: int, of: int | None, seconds: float) -> str:
    parts = [f"{done:,}" if of is None else f"{done:,} of {of:,}"]
    if done and seconds >= 1:
        parts.append(f"{done / seconds:,.0f} a second")
        if of is not None and of > done:
            parts.append(f"{duration(seconds * (of - done) / done)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Formats seconds: 45 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
