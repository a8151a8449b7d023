"""Mines with Spark: the observations are taken out of the nested implementations by SQL, and counted by SQL."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opus_pipelines.core.schemas import IMPLEMENTATIONS
from opus_pipelines.history.records.money import GROUP_ATTRIBUTES, NO_GROUP
from opus_pipelines.wkg.mining.carried_rows import carried
from opus_pipelines.wkg.mining.queries import CASE_FIELDS, PARAMETERS, STEP_FIELDS, Source, query, spark_observations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A group of people is what the log says: what `[columns] actor_group` names, the XES standard's role or group, or a
# column of that name. `observations.actor_groups` is the same rule in Arrow.
_NONE = ", ".join(f"'{word}'" for word in NO_GROUP)
_STATED = ", ".join(
    f"IF(lower(trim(t.attributes['{n}'])) IN ({_NONE}), NULL, t.attributes['{n}'])" for n in GROUP_ATTRIBUTES
)
ACTOR_GROUP = f"IF(coalesce(t.actor_kind, 'human') = 'human', coalesce({_STATED}), NULL)"
_TYPES = {int: "BIGINT", str: "STRING"}


def mine_with_spark(
    sources: list[Source], aliases: pa.Table, names: tuple[str, ...], spark: "SparkSession", shared: bool = True
) -> dict[str, pa.Table]:
    """Returns the rows of these aggregates of all sources. `shared`: executors can read the files of the sources."""
    paths = [str(file) for source in sources for file in source.files]
    spark.createDataFrame(aliases).createOrReplaceTempView("aliases")
    return {name: _mined_by_spark(spark, name, paths, shared) for name in names}


def _mined_by_spark(spark: "SparkSession", name: str, paths: list[str], shared: bool) -> pa.Table:
    _implementations(spark, paths, STEP_FIELDS[name], shared).createOrReplaceTempView("implementations")
    spark.sql(spark_observations(name)).createOrReplaceTempView("observations")
    text, parameters = query(name), dict[str, Any]()
    for key, value in PARAMETERS.get(name, {}).items():
        if isinstance(value, list):  # Spark takes a text for a parameter, but no long list of numbers
            text = text.replace(f":{key}", f"CAST(split(:{key}, ',') AS ARRAY<{_TYPES[type(value[0])]}>)")
            value = ",".join(map(str, value))
        parameters[key] = value
    return spark.sql(text, args=parameters).toArrow()


def _implementations(spark: "SparkSession", paths: list[str], fields: tuple[str, ...], shared: bool) -> "DataFrame":
    """Returns the implementations with only these fields of their steps, so that no other field is read from disk."""
    from pyspark.sql.pandas.types import from_arrow_schema

    stored = {"attributes" if name == "actor_group" else name for name in fields}
    step = pa.struct([field for field in IMPLEMENTATIONS.schema.field("tasks").type.value_type if field.name in stored])
    schema = pa.schema(
        [*(IMPLEMENTATIONS.schema.field(name) for name in CASE_FIELDS), pa.field("tasks", pa.list_(step))]
    )
    if shared:
        rows = spark.read.schema(from_arrow_schema(schema, prefer_timestamp_ntz=False)).parquet(*paths)
    else:
        rows = carried(spark, paths, schema)
    if "actor_group" not in fields:
        return rows
    plain = ", ".join(f"'{name}', t.{name}" for name in fields if name != "actor_group")
    tasks = f"transform(tasks, t -> named_struct({plain}, 'actor_group', {ACTOR_GROUP})) AS tasks"
    return rows.selectExpr(*CASE_FIELDS, tasks)
