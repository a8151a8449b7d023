"""The protocol between a run and its worker processes: a setup, which is sent first, and jobs."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

Report = Callable[[str], None]  # takes a line for the person who started the run


class Setup(Protocol):
    """What a worker process must know before its first job; it is pickled."""

    def open(self) -> AbstractContextManager[Any]:
        """Returns a context in the worker process, whose value is the state that all its jobs share."""
        ...


@dataclass(frozen=True)
class NoSetup:
    """The setup of worker processes whose jobs hold all that they depend on."""

    def open(self) -> AbstractContextManager[None]:
        """Returns a context without a state."""
        return nullcontext()

    def there(self) -> "NoSetup":
        """Returns the setup on an executor."""
        return self


class Job(Protocol):
    """A piece of work; it is pickled, and `str` names it in messages."""

    def run(self, state: Any, report: Report) -> Any:
        """Returns the answer, which is pickled. An OpusError that it raises is passed on with its message."""
        ...
