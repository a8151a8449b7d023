"""How a dataset shows in Dagster: its key, schema, owner and row count. One name for the asset, the folder and the
view.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from opus_pipelines.core.schemas import DATASETS, Dataset

OWNERS = ["team:opus"]


def key(name: str) -> dg.AssetKey:
    """The asset key of a dataset's name."""
    return dg.AssetKey(name.split("/"))


def spec(
    name: str, group: str, deps: Iterable[str] = (), about: str = "", kinds: Iterable[str] = ("parquet",), **more: Any
) -> dg.AssetSpec:
    """The asset of a dataset; `about` and `kinds` are for those that are no table."""
    dataset = DATASETS.get(name)
    return dg.AssetSpec(
        key(name),
        deps=[key(dep) for dep in deps],
        description=dataset.about if dataset else about,
        metadata={"dagster/column_schema": column_schema(dataset), "dagster/table_name": dataset.view}
        if dataset
        else {},
        group_name=group,
        owners=OWNERS,
        kinds=set(kinds),
        **more,
    )


def column_schema(dataset: Dataset) -> dg.TableSchema:
    """The columns as the UI shows them."""
    return dg.TableSchema([dg.TableColumn(c.name, type=c.type_name, description=c.meaning) for c in dataset.columns])


def made(name: str, version: str, rows: int | None = None, **metadata: Any) -> dg.MaterializeResult:
    """The report that a dataset was made, or found unchanged: its version is a hash of what it was made from."""
    counted: Mapping[str, Any] = {} if rows is None else {"dagster/row_count": int(rows)}
    return dg.MaterializeResult(
        asset_key=key(name), metadata={**counted, **metadata}, data_version=dg.DataVersion(version)
    )
