"""The errors whose message a person reads, and the results of checks that rebuilds, generation and assets share.

The errors whose message a person reads: what is wrong, where, and what to do. The CLI prints them without a traceback.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opus_pipelines.core.schemas import Dataset

STOPPED = "stopped; what was published before stays as it is"  # the line of whoever pressed Ctrl-C


class OpusError(Exception):
    """Base of every error with a message for a person."""


class SettingsError(OpusError, ValueError):
    """A settings file or variable has an unknown key or an impossible value."""


class InputError(OpusError, ValueError):
    """A file or record of history, or an intake, cannot be used."""


class UnclearColumn(InputError):
    """Several `columns` of a table are nearly as likely for a `role`, so that a person has to choose one."""

    def __init__(self, message: str, role: str = "", columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.role, self.columns = role, tuple(columns)


class LakeError(OpusError, RuntimeError):
    """The lake lacks something, its disk is full, or another run holds it (LakeHeld)."""


class LakeHeld(LakeError):
    """Another run holds the lake."""


class CheckFailed(OpusError, RuntimeError):
    """A blocking check failed, so nothing was published."""


class WorkflowError(OpusError, ValueError):
    """A workflow, or its description, is not well formed."""


class PluginError(OpusError, RuntimeError):
    """An installed distribution declares an extension that cannot be used."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check of staged data.

    It has the name of the check, whether it passed, what was seen (with the first offenders when it failed), and the
    dataset. A check that is not `blocking` only warns.
    """

    name: str
    passed: bool
    detail: str
    dataset: str
    blocking: bool = True

    def as_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


def result(name: str, dataset: Dataset, offenders: Iterable[Any], good: str, blocking: bool = True) -> CheckResult:
    """Passed where there are no offenders; `good` is then the detail."""
    off = list(offenders)
    detail = f"{len(off)} wrong: {', '.join(map(str, off[:5]))}" if off else good
    return CheckResult(name, not off, detail, dataset.name, blocking)


def equal(name: str, dataset: Dataset, found: int, expected: int) -> CheckResult:
    """Passed where two counts agree."""
    return result(name, dataset, [] if found == expected else [f"{found} instead of {expected}"], str(expected))
