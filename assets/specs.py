"""What all assets have in common: how a dataset is described to Dagster, the partition of each contract, and failures
that begin with their reason.

The asset, the folder and the view of a dataset have one name.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

import dagster as dg

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.schemas import DATASETS, Dataset

OWNERS = ["team:opus"]
POOL = "lake"  # the steps that write to the lake: runs with such steps take turns


def key(name: str) -> dg.AssetKey:
    """Returns the asset key of a dataset's name."""
    return dg.AssetKey(name.split("/"))


def spec(
    name: str, group: str, deps: Iterable[str] = (), about: str = "", kinds: Iterable[str] = ("parquet",), **more: Any
) -> dg.AssetSpec:
    """Returns the asset of a dataset; `about` and `kinds` are for those that are no table."""
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
    """Returns the columns as the UI shows them."""
    return dg.TableSchema([dg.TableColumn(c.name, type=c.type_name, description=c.meaning) for c in dataset.columns])


def made(name: str, version: str, rows: int | None = None, **metadata: Any) -> dg.MaterializeResult[None]:
    """Reports that a dataset was made, or was unchanged.

    Its version is a hash of its inputs.
    """
    counted: Mapping[str, Any] = {} if rows is None else {"dagster/row_count": int(rows)}
    return dg.MaterializeResult(
        asset_key=key(name), metadata={**counted, **metadata}, data_version=dg.DataVersion(version)
    )


def finished(
    name: str, partition: str, version: str, rows: int | None = None, **metadata: Any
) -> dg.AssetMaterialization:
    """Records in a run of several partitions, which fails at its end, that this partition of a dataset was made."""
    counted: Mapping[str, Any] = {} if rows is None else {"dagster/partition_row_count": int(rows)}
    return dg.AssetMaterialization(
        key(name), partition=partition, metadata={**counted, **metadata}, tags={"dagster/data_version": version}
    )


CONTRACT = "contract"  # the name under which Dagster keeps the keys
CONTRACTS = dg.DynamicPartitionsDefinition(name=CONTRACT)


def register(instance: dg.DagsterInstance, keys: Iterable[str]) -> None:
    """Tells Dagster of the contracts that it does not know yet, sorted."""
    known = set(instance.get_dynamic_partitions(CONTRACT))
    if new := sorted(set(keys) - known):
        instance.add_dynamic_partitions(CONTRACT, new)


P = ParamSpec("P")
T = TypeVar("T")


def reason_first(compute: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Wraps an asset's function, so that its errors are raised as `dg.Failure` with their own message.

    Without this the first line is Dagster's ("Error occurred while executing op ..."), and the reason comes after two
    tracebacks.
    """

    @functools.wraps(compute)
    def told(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from compute(*args, **kwargs)
        except dg.Failure:
            raise
        except OpusError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        except Exception as error:
            raise dg.Failure(description=f"unexpected {type(error).__name__}: {error}") from error

    return told
