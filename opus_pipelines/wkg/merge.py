"""The sum of the sources' aggregates, divided once: tasks, their ways, edges. Rows in the form of schemas.py."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from opus_pipelines.wkg.columns import KEYS, MEASURES, summed
from opus_pipelines.wkg.gamma import gamma
from opus_pipelines.wkg.statistics import Estimate
from opus_pipelines.wkg.success import SuccessModel

PER_MS, PER_UNIT = 1_000, 1_000_000  # microseconds a millisecond; millionths a dollar, gigabyte or thread
TEXTS_SHOWN = {"instruction": 8, "input": 20, "output": 20}
Row = dict[str, Any]


@dataclass
class Said:
    """What is said of tasks and ways, counted by field and value."""

    by_task: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    by_way: dict[tuple[str, str | None, str | None], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, texts: pa.Table) -> "Said":
        """From the `texts` aggregate of all sources."""
        said = cls()
        for row in texts.to_pylist():
            said.by_task[row["task_id"], row["field"]][row["value"]] += row["count"]
            if row["field"] == "instruction":
                said.by_way[row["task_id"], row["actor_kind"], row["model"]][row["value"]] += row["count"]
        return said

    def most(self, task: str, what: str) -> list[str] | None:
        """The most frequent values of a task's field, None where nothing is said."""
        return most_frequent(self.by_task.get((task, what)), TEXTS_SHOWN.get(what, 1))


def most_frequent(counts: Counter[str] | None, limit: int) -> list[str] | None:
    """The `limit` most frequent, ties by alphabet; None of none."""
    return sorted(counts, key=lambda value: (-counts[value], value))[:limit] if counts else None


def ways_and_tasks(ways: pa.Table) -> tuple[list[Row], list[Row]]:
    """The `ways` aggregate of all sources added up by way (industry, task, actor kind, model), and by task (industry, task)."""
    drop = ("client",)
    by_way = summed(ways.drop_columns(drop), tuple(k for k in KEYS["ways"] if k not in drop))
    by_task = summed(by_way.drop_columns(["actor_kind", "model"]), ("industry", "task_id"))
    return by_way.to_pylist(), by_task.to_pylist()


def task_row(row: Row, title: str, said: Said, clients: list[str], sources: list[str], p: Estimate, q: Estimate) -> Row:
    """One row of wkg/tasks, but for what the graph says of it."""
    description = said.most(row["task_id"], "description")
    return {
        "task_id": row["task_id"], "title": title, "description": description[0] if description else None,
        "instructions": said.most(row["task_id"], "instruction"),
        "inputs": said.most(row["task_id"], "input"), "outputs": said.most(row["task_id"], "output"),
        "industries": [row["industry"]] if row["industry"] is not None else [], "clients": clients, "sources": sources,
        "implementations": row["implementations"], "first_seen": row["first_seen"], "last_seen": row["last_seen"],
        **_estimate("p", p), **_estimate("q", q), **_duration(row), "wait_ms_mean": mean(row, "wait", PER_MS), **_cost(row),
    }


def way_row(row: Row, said: Said, p: Estimate, q: Estimate) -> Row:
    """One row of wkg/task_implementations."""
    way = row["task_id"], row["actor_kind"], row["model"]
    return {
        "task_id": way[0], "actor_kind": way[1], "model": way[2], "implementations": row["implementations"],
        "instructions": most_frequent(said.by_way.get(way), TEXTS_SHOWN["instruction"]),
        "p": p.value, "p_n": p.n, "q": q.value, "q_n": q.n, "basis": p.basis, **_duration(row), **_cost(row),
        **{f"cost_{part}_usd": mean(row, part, PER_UNIT) for part in ("compute", "model", "human")},
        **{name: mean(row, name, 1) for name in ("tokens_in", "tokens_out")},
        "memory_gb": mean(row, "memory", PER_UNIT), "threads": mean(row, "threads", PER_UNIT),
    }


def edge_rows(edges: pa.Table, variants: Mapping[tuple[str, str], int], unit: str, lambda_: float) -> list[Row]:
    """wkg/edges of the `edges` aggregate of all sources: γ by LWM (2) over `unit`, probability among all transitions out of src."""
    rows = summed(edges, KEYS["edges"]).to_pylist()
    out: Counter[str] = Counter()
    for row in rows:
        out[row["src"]] += row["transitions"]
    return [_edge(row, variants[row["src"], row["dst"]], unit, lambda_, out[row["src"]]) for row in rows]


def gamma_counts(edges: pa.Table, variants: Mapping[tuple[str, str], int], unit: str) -> list[int]:
    """|ξ| of every edge, over the unit."""
    return sorted(variants.values()) if unit == "variant" else sorted(summed(edges, KEYS["edges"])["transitions"].to_pylist())


def estimates(tasks: Iterable[Row], model: SuccessModel) -> dict[str, tuple[Estimate, Estimate]]:
    """(p, q) of every task."""
    return {row["task_id"]: (model.p(row["task_id"], row["industry"], row), model.q(row["task_id"], row["industry"], row)) for row in tasks}


def mean(row: Row, measure: str, per: int) -> float | None:
    """Mean of a measure's known values in its unit of datasets.md; None where none is known. The one division of its exact sum."""
    if measure not in MEASURES:
        raise KeyError(measure)
    n = row[f"{measure}_n"]
    return float(Decimal(row[f"{measure}_sum"]) / (n * per)) if n else None


def _edge(row: Row, variants: int, unit: str, lambda_: float, out: int) -> Row:
    return {
        "src": row["src"], "dst": row["dst"], "transitions": row["transitions"], "variants": variants,
        "gamma": gamma(lambda_, variants if unit == "variant" else row["transitions"]),
        "probability": row["transitions"] / out, "wait_ms_mean": mean(row, "wait", PER_MS),
        "implementations": row["implementations"], "first_seen": row["first_seen"], "last_seen": row["last_seen"],
    }


def _estimate(name: str, estimate: Estimate) -> Row:
    return {
        name: estimate.value, f"{name}_lower": estimate.lower, f"{name}_upper": estimate.upper,
        f"{name}_basis": estimate.basis, f"{name}_n": estimate.n,
    }


def _duration(row: Row) -> Row:
    n = row["duration_n"]
    return {"duration_ms_mean": mean(row, "duration", PER_MS), "duration_n": n, "duration_basis": "observed" if n else None}


def _cost(row: Row) -> Row:
    n = row["cost_n"]
    basis = None if not n else "rate" if 2 * row["cost_rate_n"] >= n else "observed"
    return {"cost_usd_mean": mean(row, "cost", PER_UNIT), "cost_n": n, "cost_basis": basis}
