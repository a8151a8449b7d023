"""What asking an endpoint took, day by day, and the most that it may take: `language/spent.json` in the lake.

The most that a request may cost is booked before it is sent, and corrected when its answer is there. So workers that
ask at the same time stay within the limit together, and a request whose worker was killed counts as asked.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from opus_pipelines.core.errors import OpusError
from opus_pipelines.lake.layout import read_json, write_json


class SpendLimitReached(OpusError):
    """One more request could exceed the limit of the day."""


class Ledger:
    """The bookings of a lake, by day (UTC)."""

    def __init__(self, folder: Path, limit_usd: float | None) -> None:
        self._file, self._limit = folder / "spent.json", limit_usd

    def book(self, most_usd: float | None) -> None:
        """Book a request that may cost so much, None where prices are unknown.

        Raises SpendLimitReached where the day's limit would be exceeded.
        """
        with self._day() as day:
            if self._limit is not None and day["usd"] + (most_usd or 0.0) > self._limit:
                raise SpendLimitReached(
                    f"a request may cost {most_usd or 0.0:.4f} USD, {day['usd']:.4f} are spent today, and "
                    f"openai_compatible.spend_limit_usd is {self._limit:g}; raise it, or go on tomorrow (UTC)"
                )
            day["requests"] += 1
            day["usd"] += most_usd or 0.0

    def correct(self, most_usd: float | None, usd: float | None) -> None:
        """Replace what was booked by what it was; where that is unknown, the booking stays."""
        if usd is not None:
            with self._day() as day:
                day["usd"] += usd - (most_usd or 0.0)

    def today(self) -> dict[str, float]:
        """Return the requests and dollars of the day."""
        days = read_json(self._file) or {}
        found: dict[str, float] = days.get(_today(), {"requests": 0, "usd": 0.0})
        return found

    @contextmanager
    def _day(self) -> Iterator[dict[str, float]]:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            day = self.today()
            yield day
            days = read_json(self._file) or {}
            write_json(self._file, {**days, _today(): {**day, "usd": round(max(0.0, day["usd"]), 9)}})


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
