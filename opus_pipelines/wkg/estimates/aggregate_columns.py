"""The columns of the mergeable aggregates, one Arrow schema each.

Sums are exact integers, so the order of adding does not matter.
"""

import pyarrow as pa
import pyarrow.compute as pc

SUM = pa.decimal128(
    38, 0
)  # of microseconds, or of millionths of a dollar, gigabyte or thread; int64 would overflow on long waits
COUNT = pa.int64()
TIME = pa.timestamp("us", tz="UTC")
TEXT = pa.string()
FOLDS = 5  # of cases, as in sql/wkg/pairs.sql
MODE_COLUMNS = ("actor_kind", "model", "actor_group")  # of an execution mode of a task
BINNED = ("duration", "wait", "cost")  # measures whose quantiles are asked for

_MODE = [("task_id", TEXT), ("actor_kind", TEXT), ("model", TEXT), ("actor_group", TEXT)]
EXECUTION_MODES = pa.schema(
    [
        ("industry", TEXT),
        ("client", TEXT),
        *_MODE,
        ("implementations", COUNT),
        ("first_seen", TIME),
        ("last_seen", TIME),
        ("p_n", COUNT),
        ("p_successes", COUNT),
        ("q_n", COUNT),
        ("q_successes", COUNT),
        ("cost_rate_n", COUNT),
    ]
)
HISTOGRAMS = pa.schema(
    [
        *_MODE,
        ("measure", TEXT),
        ("bin", pa.int32()),
        ("count", COUNT),
        ("sum", SUM),
        ("value_min", COUNT),
        ("value_max", COUNT),
    ]
)
EDGES = pa.schema(
    [
        ("src", TEXT),
        ("dst", TEXT),
        ("transitions", COUNT),
        ("implementations", COUNT),
        ("first_seen", TIME),
        ("last_seen", TIME),
    ]
)
WAITS = pa.schema(
    [
        ("src", TEXT),
        ("dst", TEXT),
        ("actor_kind", TEXT),
        ("model", TEXT),
        ("actor_group", TEXT),
        ("with_work", pa.bool_()),
        ("bin", pa.int32()),
        ("count", COUNT),
        ("sum", SUM),
        ("value_min", COUNT),
        ("value_max", COUNT),
    ]
)
PAIRS = pa.schema(
    [
        ("src", TEXT),
        ("dst", TEXT),
        ("actor_kind", TEXT),
        ("model", TEXT),
        ("actor_group", TEXT),
        ("fold", pa.int32()),
        ("count", COUNT),
        ("p_n", COUNT),
        ("p_successes", COUNT),
        ("q_n", COUNT),
        ("q_successes", COUNT),
        ("duration_n", COUNT),
        ("duration_sum", SUM),
        ("cost_n", COUNT),
        ("cost_sum", SUM),
    ]
)
VARIANTS = pa.schema(
    [
        ("industry", TEXT),
        ("client", TEXT),
        ("kind_of_case", TEXT),
        ("tasks", pa.list_(TEXT)),
        ("predecessors", pa.list_(pa.list_(pa.int32()))),
        ("implementations", COUNT),
        ("success_known", COUNT),
        ("successes", COUNT),
    ]
)
# With the source's own task keys, before any translation into task ids.
RAW_VARIANTS = pa.schema([field.with_name("task_keys") if field.name == "tasks" else field for field in VARIANTS])
TEXTS = pa.schema([("client", TEXT), *_MODE, ("field", TEXT), ("value", TEXT), ("count", COUNT)])
AGGREGATES = {
    "ways": EXECUTION_MODES,
    "histograms": HISTOGRAMS,
    "edges": EDGES,
    "waits": WAITS,
    "pairs": PAIRS,
    "variants": VARIANTS,
    "texts": TEXTS,
}
KEYS = {
    "ways": ("industry", "client", "task_id", "actor_kind", "model", "actor_group"),
    "histograms": ("task_id", "actor_kind", "model", "actor_group", "measure", "bin"),
    "edges": ("src", "dst"),
    "waits": ("src", "dst", "actor_kind", "model", "actor_group", "with_work", "bin"),
    "pairs": ("src", "dst", "actor_kind", "model", "actor_group", "fold"),
    "texts": ("client", "task_id", "actor_kind", "model", "actor_group", "field", "value"),
}


def summed(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Adds up rows with equal keys and sorts the result.

    `first_*` and `*_min` become the minimum, `last_*` and `*_max` the maximum, all other columns the sum.
    """
    rest = [name for name in table.schema.names if name not in keys]
    grouped = table.group_by(list(keys)).aggregate([(name, _how(name)) for name in rest])
    grouped = grouped.rename_columns([*keys, *rest]).select(table.schema.names).cast(table.schema)
    return grouped.take(pc.sort_indices(grouped, sort_keys=[(k, "ascending", "at_start") for k in keys]))


def _how(name: str) -> str:
    if name.startswith("first_") or name.endswith("_min"):
        return "min"
    return "max" if name.startswith("last_") or name.endswith("_max") else "sum"
