"""The results of contracts in a lake: what names one, where its datasets lie, and which there are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.schemas import DATASETS, RUNS, Dataset
from opus_pipelines.lake.layout import Lake, read_table, slug, unslug

if TYPE_CHECKING:
    import pyarrow as pa

# The datasets of a result. A result is whole when it has `runs`, which is written last; so it is removed last.
RESULT_DATASETS = sorted((d for d in DATASETS.values() if "result" in d.partitions), key=lambda d: d is RUNS)
HEAD = ("client", "contract", "result")  # the columns that are the same in all rows of a result
Columns = dict[str, list[Any]]  # rows column by column, without those of the head; all columns are of one length


@dataclass(frozen=True, order=True)
class ResultKey:
    """Names one result of a contract, current or not; every row of the result begins with it."""

    client: str
    contract: str
    result: str

    @classmethod
    def of(cls, pointer: Mapping[str, Any]) -> "ResultKey":
        """Returns the key of the result that a contract's pointer names."""
        return cls(pointer["client"], pointer["contract"], pointer["result"])

    def folder(self, lake: Lake, dataset: Dataset) -> Path:
        """Returns its partition of a dataset."""
        return lake.folder(dataset, client_key=self.client, contract_key=self.contract, result=self.result)

    def read(self, lake: Lake, dataset: Dataset, columns: Sequence[str] | None = None) -> "pa.Table":
        """Returns its rows of a dataset, or the named columns of them."""
        return read_table(dataset, self.folder(lake, dataset), columns=list(columns) if columns else None)

    def rows(self, lake: Lake, dataset: Dataset) -> int:
        """Returns the number of its rows of a dataset."""
        import pyarrow.parquet as pq

        return sum(pq.read_metadata(file).num_rows for file in self.folder(lake, dataset).glob("*.parquet"))

    def table(self, dataset: Dataset, rows: Sequence[dict[str, Any]]) -> "pa.Table":
        """Returns rows as a table of one of its datasets."""
        return self.table_of_columns(dataset, by_column(dataset, rows))

    def table_of_columns(self, dataset: Dataset, columns: Columns) -> "pa.Table":
        """Returns the columns of rows, as `by_column` has them, as a table of one of its datasets."""
        import pyarrow as pa

        count = len(next(iter(columns.values())))
        head = {name: [getattr(self, name)] * count for name in HEAD}
        vectors = [len(vector) for vector in columns.get("vector", ()) if vector is not None]
        schema = dataset.with_dimension(vectors[0]) if vectors else dataset.schema
        return pa.Table.from_pydict(head | columns, schema=schema)

    def folders(self, lake: Lake) -> list[Path]:
        """Returns its partitions of all datasets that it has."""
        return [folder for dataset in RESULT_DATASETS if (folder := self.folder(lake, dataset)).is_dir()]

    def columns(self, lake: Lake) -> str | None:
        """Returns `columns_of_results` where all its files have the columns that this version declares, or None."""
        import pyarrow.parquet as pq

        files = ((d, file) for d in RESULT_DATASETS for file in self.folder(lake, d).glob("*.parquet"))
        schemas = ((dataset, pq.read_schema(file)) for dataset, file in files)
        is_declared = all(schema.equals(dataset.with_dimension_of(schema)) for dataset, schema in schemas)
        return columns_of_results() if is_declared else None

    def remove(self, lake: Lake) -> None:
        """Removes it, and first the pointer where that names it."""
        if (lake.result_pointer(self.client, self.contract) or {}).get("result") == self.result:
            lake.withdraw(lake.pointer_path(self.client, self.contract))
        for folder in self.folders(lake):
            lake.remove(folder)


def by_column(dataset: Dataset, rows: Collection[Mapping[str, Any]]) -> Columns:
    """Returns rows of a result's dataset column by column; what a row does not have is None.

    Raises LakeError for columns that the dataset does not have.
    """
    names = [name for name in dataset.schema.names if name not in HEAD]
    if unknown := set[str]().union(*rows) - set(names):
        raise LakeError(f"{dataset.name} has no columns {sorted(unknown)}")
    return {name: [row.get(name) for row in rows] for name in names}


def results_of(lake: Lake, client: str | None = None, contract: str | None = None) -> list[ResultKey]:
    """Returns every result in the lake, or those of a client, or of one of its contracts."""
    client_key, contract_key = ("*" if name is None else slug(name) for name in (client, contract))
    pattern = f"client_key={client_key}/contract_key={contract_key}/result=*"
    folders = (folder for dataset in RESULT_DATASETS for folder in (lake.root / dataset.name).glob(pattern))
    parts = {tuple(unslug(part.partition("=")[2]) for part in folder.parts[-3:]) for folder in folders}
    return sorted(ResultKey(*part) for part in parts)


@cache
def columns_of_results() -> str:
    """Returns the hash of the columns and types of all datasets of a result, as this version declares them.

    A pointer states it. Where all pointers state the same, readers need not open every file to learn its columns.
    """
    return digest([(dataset.name, dataset.declaration) for dataset in RESULT_DATASETS])
