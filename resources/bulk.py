"""What generations share: the worker process with its snapshot, and the encoder.

They can be kept between the runs of one process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.generation.contracts import contracts_of
from opus_pipelines.intakes.intake import ContractFolder
from opus_pipelines.lake.layout import Lake
from resources.encoder import EncoderResource
from resources.spark import SparkResource

if TYPE_CHECKING:
    from opus_pipelines.generation.bulk.chunks import GenerationSetup
    from opus_pipelines.generation.bulk.run import BulkRun, Progress


@dataclass
class _Kept:
    """The last bulk run of this process, while `kept` is open."""

    is_open: bool = False
    setup: "GenerationSetup | None" = None
    bulk: "BulkRun | None" = None
    contracts: dict[tuple[Path, Path], dict[str, ContractFolder]] = field(default_factory=dict)

    def end(self) -> None:
        if self.bulk is not None:
            self.bulk.__exit__(None, None, None)
        self.setup = self.bulk = None
        self.contracts.clear()


_KEPT = _Kept()


@contextmanager
def kept() -> Iterator[None]:
    """Keeps the worker, the encoder and the list of contracts of a run for the next runs of this process.

    So many contracts, each in a run of its own, cost little more than all in one. The intakes folder must not change
    meanwhile.
    """
    _KEPT.is_open = True
    try:
        yield
    finally:
        _KEPT.is_open = False
        _KEPT.end()


@contextmanager
def bulk_run(
    setup: "GenerationSetup", encoder: EncoderResource, spark: SparkResource, progress: "Progress"
) -> Iterator["BulkRun"]:
    """Opens a bulk run, or the one that `kept` holds for the same lake, snapshot and settings."""
    from opus_pipelines.generation.bulk.encoding import SparkEncoder
    from opus_pipelines.generation.bulk.run import BulkRun

    if _KEPT.bulk is not None and _KEPT.setup == setup:
        yield _KEPT.bulk
        return
    _KEPT.end()
    session = spark.cluster_session
    on_cluster = None if session is None else encoder.around(SparkEncoder(setup.settings.encoder, session))
    bulk = BulkRun(setup, on_cluster or encoder.encoder, session, progress)
    if _KEPT.is_open:
        _KEPT.setup, _KEPT.bulk = setup, bulk
        yield bulk
        return
    with bulk:
        yield bulk


def contracts_by_key(lake: Lake, intakes: Path) -> dict[str, ContractFolder]:
    """Returns the contracts below `intakes` by their keys."""
    found = _KEPT.contracts.get((lake.root, intakes))
    if found is None:
        found = {contract.key: contract for contract in contracts_of(lake, intakes)}
        if _KEPT.is_open:
            _KEPT.contracts[lake.root, intakes] = found
    return found
