"""The result of a contract: staged tables, its checks, and its publishing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.errors import CheckResult, LakeError
from opus_pipelines.core.schemas import (
    DATASETS,
    INTAKES,
    OPTIMIZED,
    RUNS,
    WORKFLOW_EDGES,
    WORKFLOW_TASKS,
    Dataset,
)
from opus_pipelines.generation.results.changes import write_changes
from opus_pipelines.generation.results.rows import Row
from opus_pipelines.intakes.elements import INHERITED
from opus_pipelines.lake.damage import files_of
from opus_pipelines.lake.file_lists import sealed_text
from opus_pipelines.lake.layout import Lake, read_table, write_table
from opus_pipelines.lake.results import Columns, ResultKey
from opus_pipelines.wkg.checks import added_checks, run_check


def write_part(heading: ResultKey, rows: Mapping[str, Columns], folder: Path, part: str) -> Counter[str]:
    """A file `part` for each dataset with rows, sorted by its key; returns the numbers of rows."""
    counts = Counter[str]()
    for name, columns in rows.items():
        table = heading.table_of_columns(DATASETS[name], columns)
        write_table(DATASETS[name], table, folder / name, part)
        counts[name] = table.num_rows
    return counts


class StagedTables(MutableMapping[str, pa.Table]):
    """The tables of `names` below a folder, each read when it is asked for; a dataset without files is an empty table.
    One that is set is
    written: nothing is held in memory.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self._names = folder, tuple(names)

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._names:
            raise KeyError(name)
        return read_table(DATASETS[name], self.folder / name)

    def __setitem__(self, name: str, table: pa.Table) -> None:
        if any((self.folder / name).glob("*")):
            raise LakeError(f"{name} is written already")
        write_table(DATASETS[name], table, self.folder / name)
        self._names = (*self._names, name) if name not in self._names else self._names

    def __delitem__(self, name: str) -> None:
        raise TypeError("what is staged is never taken back")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def rows(self, name: str) -> int:
        """How many rows a table has; its footers tell."""
        return sum(pq.ParquetFile(file).metadata.num_rows for file in sorted((self.folder / name).glob("*.parquet")))

    def schemas(self, name: str) -> list[pa.Schema]:
        """The schema of each of a table's files."""
        return [pq.read_schema(file) for file in sorted((self.folder / name).glob("*.parquet"))]


def columns_of(tables: Mapping[str, pa.Table], name: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a table; of a staged one no others are read."""
    if isinstance(tables, StagedTables):
        return read_table(DATASETS[name], tables.folder / name, columns=list(columns))
    return tables[name].select(list(columns))


def schemas_of(tables: Mapping[str, pa.Table], name: str) -> list[pa.Schema]:
    """The schemas of a table's parts: one, where it is in memory."""
    return tables.schemas(name) if isinstance(tables, StagedTables) else [tables[name].schema]


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


def left_out_lines(result: ContractResult) -> list[str]:
    """Returns a line for each document of which a part was left out; a contract's own documents are named once."""
    lines = {
        f"{'' if e['role'] == INHERITED else row['folder'] + '/'}{e['role']}/{e['name']}: {e['left_out']}": None
        for row in result.tables[INTAKES.name].select(["folder", "elements"]).to_pylist()
        for e in row["elements"] or ()
        if e["left_out"]
    }
    return list(lines)


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


def check_result(result: ContractResult, intakes: int) -> list[CheckResult]:
    """Schemas, keys, probabilities, ranks, ends of edges, and that each of the contract's `intakes` has its row."""
    tables = result.tables
    return [
        *(_schema(name, schemas_of(tables, name)) for name in tables),
        *(_probabilities(name, tables) for name in tables if _probability_columns(name)),
        _ranks(columns_of(tables, OPTIMIZED.name, ["intake_id", "intention_id", "rank"])),
        _ends(*(columns_of(tables, d.name, ends) for d, ends in _ENDS.items())),
        _intakes(result.counts[INTAKES.name], intakes),
        *(run_check(check, columns_of(tables, check.dataset, check.columns)) for check in added_checks(tables)),
    ]


_ENDS = {WORKFLOW_EDGES: ["workflow_id", "src", "dst"], WORKFLOW_TASKS: ["workflow_id", "node"]}


def _schema(name: str, schemas: Iterable[pa.Schema]) -> CheckResult:
    dataset = DATASETS[name]
    wrong = set()
    for schema in schemas:
        wrong |= {f.name for f in dataset.with_dimension_of(schema) if f not in list(schema)}
    return _said("schema", name, sorted(wrong))


def _probability_columns(name: str) -> list[str]:
    return [c.name for c in DATASETS[name].columns if c.type_name == "prob"]


def _probabilities(name: str, tables: Mapping[str, pa.Table]) -> CheckResult:
    columns = _probability_columns(name)
    table = columns_of(tables, name, columns)
    ends = {column: pc.min_max(table[column]).as_py() for column in columns}
    return _said(
        "probabilities",
        name,
        [c for c, e in ends.items() if e["min"] is not None and not 0 <= e["min"] <= e["max"] <= 1],
    )


def _ranks(optimized: pa.Table) -> CheckResult:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in optimized.to_pylist():
        found[row["intake_id"], row["intention_id"]].append(row["rank"])
    off = [key for key, ranks in found.items() if sorted(ranks) != list(range(1, len(ranks) + 1))]
    return _said("ranks_without_gaps", OPTIMIZED.name, off)


def _ends(edges: pa.Table, tasks: pa.Table) -> CheckResult:
    nodes = set(_pairs(tasks, "node"))
    off = [end for column in ("src", "dst") for end in _pairs(edges, column) if end not in nodes]
    return _said("ends_are_nodes", WORKFLOW_EDGES.name, off)


def _intakes(found: int, expected: int) -> CheckResult:
    return _said("every_intake_has_a_row", INTAKES.name, [] if found == expected else [f"{found} of {expected}"])


def _pairs(table: pa.Table, column: str) -> Iterator[tuple[str, str]]:
    return zip(table["workflow_id"].to_pylist(), table[column].to_pylist(), strict=True)


def _said(name: str, dataset: str, wrong: Iterable[object]) -> CheckResult:
    off = list(wrong)
    return CheckResult(name, not off, f"{len(off)} wrong: {', '.join(map(str, off[:5]))}" if off else "", dataset)
