"""The blocking checks as Dagster knows them: which dataset, which check. What they test is in `opus_pipelines`."""

from collections.abc import Iterable, Iterator

import dagster as dg

from assets.specs import key
from opus_pipelines.schemas import DATASETS
from opus_pipelines.wkg.checks import CheckResult


def declared(dataset: str, name: str, about: str) -> dg.AssetCheckSpec:
    """A check that stops the run."""
    return dg.AssetCheckSpec(name, asset=key(dataset), description=about, blocking=True)


def reported(found: Iterable[CheckResult]) -> Iterator[dg.AssetCheckResult]:
    """The outcomes, with what was found."""
    for check in found:
        yield dg.AssetCheckResult(passed=bool(check.passed), asset_key=key(check.dataset), check_name=check.name, description=check.detail)
