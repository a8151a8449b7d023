"""The outcome of one check of staged data: what was looked at and, where it failed, the first offenders."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from opus_pipelines.schemas import Dataset


@dataclass(frozen=True)
class CheckResult:
    """One check: what it is called, whether it passed, what was seen, of which dataset; one that does not block only warns."""

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
