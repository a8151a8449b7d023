"""The aggregates that are mined: the text of each query, its parameters, and the fields that it needs."""

from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from opus_pipelines.wkg.estimates.aggregate_columns import BINNED
from opus_pipelines.wkg.estimates.histograms import BORDERS

CASE_FIELDS = (
    "implementation_id",
    "case_id",
    "source",
    "industry",
    "client",
    "title",
    "success",
    "expected_outcome",
    "weight",
)
VALUES_KEPT = 64  # distinct descriptions, instructions, inputs, outputs of an execution mode in a source
MODE_COLUMNS = ("actor_kind", "model", "actor_group")
STEP_FIELDS = {  # of a step, what each query reads from disk
    "ways": ("task_key", *MODE_COLUMNS, "started_at", "ended_at", "cost_usd", "cost_basis", "success", "predecessors"),
    "histograms": (
        "task_key",
        *MODE_COLUMNS,
        "duration_ms",
        "wait_ms",
        "cost_usd",
        "cost_compute_usd",
        "cost_model_usd",
        "cost_human_usd",
        "tokens_in",
        "tokens_out",
        "memory_gb",
        "threads",
    ),
    "edges": ("task_key", "started_at", "ended_at", "predecessors"),
    "waits": ("task_key", *MODE_COLUMNS, "started_at", "ended_at", "duration_ms", "wait_ms", "predecessors"),
    "pairs": ("task_key", *MODE_COLUMNS, "duration_ms", "cost_usd", "success", "predecessors"),
    "variants": ("task_key", "predecessors"),
    "texts": ("task_key", *MODE_COLUMNS, "description", "instructions", "inputs", "outputs"),
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "histograms": {"borders": BORDERS, "binned": list(BINNED)},
    "waits": {"borders": BORDERS},
    "texts": {"values_kept": VALUES_KEPT},
}


class Source(NamedTuple):
    """A source to mine: its name, the folder of its implementations, and its aliases (industry, task_key, task_id)."""

    name: str
    folder: Path
    aliases: tuple[tuple[str | None, str, str], ...]

    @property
    def files(self) -> list[Path]:
        """The Parquet files of its implementations."""
        return sorted(self.folder.glob("*.parquet"))


def query(name: str) -> str:
    """Returns the SQL of one aggregate, for both engines."""
    return (files("sql") / "wkg" / f"{name}.sql").read_text("utf-8")


def spark_observations(name: str) -> str:
    """Returns the SQL by which Spark makes the view that the query of this aggregate reads."""
    return (files("sql") / "wkg" / "spark" / f"{name}.sql").read_text("utf-8")
