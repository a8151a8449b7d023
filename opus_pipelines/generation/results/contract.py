"""A contract's intakes to its tables, and their publishing: one `result`, visible in one step."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from opus_pipelines.core.schemas import (
    DATASETS,
    EXPECTED_FLOW,
    OPTIMIZED,
    RUNS,
    WORKFLOW_EDGES,
    WORKFLOW_TASKS,
    Dataset,
)
from opus_pipelines.generation.results.changes import write_changes
from opus_pipelines.generation.results.rows import DATASETS_OF_GENERATION, Row
from opus_pipelines.generation.results.staged import StagedTables
from opus_pipelines.lake.damage import files_of
from opus_pipelines.lake.file_lists import sealed_text
from opus_pipelines.lake.layout import Lake, write_table
from opus_pipelines.lake.results import ResultKey

TABLES = (*DATASETS_OF_GENERATION, OPTIMIZED, WORKFLOW_TASKS, WORKFLOW_EDGES, EXPECTED_FLOW)


@dataclass
class ContractResult:
    """All that a contract's intakes led to, its tables in memory or staged on disk. `failed` and `refused`: a line
    each for a person.

    `attempt`: see `result_id`; `memory_mb`: the most that a process which worked on it took; `texts_missed`: passages
    that nobody had encoded before the work began.
    """

    client: str
    contract: str
    result: str
    snapshot: str
    model_version: str
    tables: MutableMapping[str, pa.Table]
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    attempt: int = 1
    memory_mb: float = 0.0
    texts_missed: int = 0

    def tell(self, status: str, intake: str, reason: str) -> None:
        """Remember what a person must be told of an intake (its folder's name)."""
        lines = {"failed": self.failed, "refused": self.refused}.get(status)
        if lines is not None:
            lines.append(f"{self.client}/{self.contract}/{intake}: {reason}")

    @property
    def key(self) -> ResultKey:
        """What names it."""
        return ResultKey(self.client, self.contract, self.result)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Rows by dataset; first asked for before the tables are published, for staged ones are moved then."""
        staged = self.tables
        return {
            name: staged.rows(name) if isinstance(staged, StagedTables) else staged[name].num_rows for name in staged
        }


def result_table(result: ContractResult, dataset: Dataset, rows: list[Row]) -> pa.Table:
    """Rows as a table of a result's dataset, each with its client, contract and result."""
    return result.key.table(dataset, rows)


def publish_contract(lake: Lake, result: ContractResult, now: datetime) -> None:
    """Write every table of the result aside, where it is not staged there yet, move all into place, runs last (a
    result that has it is whole), then replace the contract's pointer: the one visible step.
    """
    assert result.counts is not None  # counted while the tables are there
    with lake.staging() as scratch:
        tables = result.tables
        staged = tables.folder if isinstance(tables, StagedTables) else scratch
        for name in tables:
            if not (staged / name).is_dir():  # in memory, or staged without a row
                write_table(DATASETS[name], tables[name], staged / name)
        for name in sorted(tables, key=lambda name: name == RUNS.name):
            lake.publish(staged / name, result.key.folder(lake, DATASETS[name]))
    before = lake.result_pointer(result.client, result.contract)
    if before and before["result"] == result.result:
        before = None  # it is current already: what it followed stands in its own rows
    pointer = {
        "client": result.client,
        "contract": result.contract,
        "result": result.result,
        "snapshot": result.snapshot,
        "model_version": result.model_version,
        "attempt": result.attempt,
        "published_at": now.isoformat(),
        "before": before["result"] if before else None,
    }
    write_changes(lake, pointer, before)
    path = lake.pointer_path(result.client, result.contract)
    text = sealed_text({**pointer, "columns": result.key.columns(lake), "files": files_of(lake, result.key)})
    lake.replace(path, lambda temporary: temporary.write_text(text, "utf-8"))
