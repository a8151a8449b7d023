"""Jobs for worker processes that count."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.pool import Report


@dataclass(frozen=True)
class Counting:
    """A setup whose state is a number."""

    number: int

    @contextmanager
    def open(self) -> Iterator[int]:
        yield self.number

    def there(self) -> "Counting":
        return self


@dataclass(frozen=True)
class Doubling:
    """Answers with the state and twice the number; leaves a file where it ran, when one is named."""

    ANSWER: ClassVar[type] = int
    number: int
    ran: Path | None = None

    def at(self, read: Path, made: Path) -> "Doubling":
        return self

    def run(self, state: int, report: Report) -> int:
        if self.ran is not None:
            self.ran.touch()
        return state + 2 * self.number


@dataclass(frozen=True)
class Failing:
    """Fails with a reason."""

    ANSWER: ClassVar[type] = int
    reason: str

    def at(self, read: Path, made: Path) -> "Failing":
        return self

    def run(self, state: int, report: Report) -> int:
        raise OpusError(self.reason)
