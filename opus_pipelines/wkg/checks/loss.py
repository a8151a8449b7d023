"""Checks that history did not lose its cases since the current snapshot, as it does when a mount is gone.

Drift compares two graphs and may be allowed; a loss of cases is compared with the history behind the current snapshot,
before anything is written, and blocks whatever the settings say of drift.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from opus_pipelines.core.check_results import CheckResult, result
from opus_pipelines.core.errors import CheckFailed, LakeError
from opus_pipelines.core.schemas import SOURCES
from opus_pipelines.lake.layout import Lake

if TYPE_CHECKING:
    from opus_pipelines.history.ingestion.ingest import SourceState

LOSS = "cases are not lost"
LOSS_MEANINGS = {
    LOSS: "History has at most the share `checks.max_lost_share` fewer cases than the history behind the current "
    "snapshot, and not none at all. `opus rebuild --allow-loss` allows a loss for one run."
}
_NAMED = 3  # sources that a message names


class CasesLost(CheckFailed):
    """History lost too many cases. `check` is the failed check."""

    def __init__(self, check: CheckResult) -> None:
        super().__init__(f"nothing was published: {check.detail}")
        self.check = check


@dataclass(frozen=True)
class Loss:
    """The cases of history by source: behind the current snapshot, and now."""

    before: dict[str, int]
    now: dict[str, int]

    @property
    def share(self) -> float:
        """The share of the cases behind the snapshot that are lost, 0 where there are more than before."""
        before = sum(self.before.values())
        return max(0, before - sum(self.now.values())) / before if before else 0.0

    def __str__(self) -> str:
        change = {name: self.now.get(name, 0) - cases for name, cases in self.before.items()}
        lost = sorted((name for name in change if change[name] < 0), key=lambda name: (change[name], name))
        named = ", ".join(f"{name} {self.before[name]:,} -> {self.now.get(name, 0):,}" for name in lost[:_NAMED])
        more = f" and {len(lost) - _NAMED} more sources" if len(lost) > _NAMED else ""
        return (
            f"the current snapshot rests on {sum(self.before.values()):,} cases, and history has "
            f"{sum(self.now.values()):,} now, {self.share:.0%} fewer ({named}{more})"
        )


def loss_of(home: Lake, sources: "Iterable[SourceState]") -> Loss | None:
    """Returns the cases behind the current snapshot and those of `sources`, or None where there is no snapshot yet."""
    snapshot = home.current_snapshot()
    if snapshot is None or not (home.snapshot_folder(snapshot) / "manifest.json").is_file():
        return None
    parts = home.manifest(snapshot)["inputs"]["sources"]
    before = {part["source"]: _stored_rows(home.root / part["folder"]) for part in parts if "folder" in part}
    return Loss(before, {source.source: source.implementations for source in sources})


def check_loss(loss: Loss | None, max_lost_share: float, is_allowed: bool) -> CheckResult:
    """Returns the check of a loss. Raises CasesLost where it is larger than `max_lost_share` and not allowed."""
    if loss is None:
        return result(LOSS, SOURCES, [], "no snapshot to compare with")
    is_lost = loss.share > max_lost_share or (loss.share == 1.0 and bool(loss.before))
    if not is_lost or is_allowed:
        return result(LOSS, SOURCES, [], f"{loss.share:.1%} fewer cases")
    advice = (
        f"at most {max_lost_share:.0%} may be lost (checks.max_lost_share). Is a folder or a mount missing? "
        "`opus rebuild --allow-loss` publishes it all the same"
    )
    raise CasesLost(CheckResult(LOSS, False, f"{loss}; {advice}", SOURCES.name))


def _stored_rows(folder: Path) -> int:
    try:
        return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted(folder.glob("*.parquet")))
    except OSError as error:
        raise LakeError(f"{folder} cannot be read: {error}") from None
