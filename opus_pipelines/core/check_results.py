"""The result of one check of staged data, which rebuilds, generation and the assets share."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from opus_pipelines.core.schemas import Dataset


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
