"""What all evaluations share: rows of scores by system and item, their means with intervals, and publishing."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from opus_pipelines.core.schemas import Dataset
from opus_pipelines.lake.layout import Lake, table_of, write_table
from opus_pipelines.workflow.metrics.plan_scores import interval

Row = dict[str, Any]


@dataclass(frozen=True)
class Evaluation:
    """The rows of an evaluation, one for each system and item, and its id, which names all that they depend on."""

    id: str
    rows: list[Row]


@dataclass(frozen=True)
class Mean:
    """The mean of a score with its 95 % bootstrap interval; n is the number of items that have the score."""

    mean: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float], groups: Sequence[str]) -> "Mean":
        """Returns the mean of values, each of one group; items of a group are alike and are drawn together."""
        return cls(fmean(values), *interval(values, groups), len(values))


def by_system(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Returns the rows of each system, in the order in which the systems come."""
    systems: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        systems[row["system"]].append(row)
    return systems


def means(rows: Sequence[Row], score: str, group: str = "item_group") -> dict[str, Mean]:
    """Returns for each system the mean of a score over the items that have it; `group` is the column of the groups."""
    found: dict[str, Mean] = {}
    for system, own in by_system(rows).items():
        scored = [row for row in own if row[score] is not None]
        if scored:
            found[system] = Mean.of([float(row[score]) for row in scored], [row[group] for row in scored])
    return found


def publish(lake: Lake, dataset: Dataset, evaluation: Evaluation) -> None:
    """Writes the rows into the lake in one step; the same evaluation is written once."""
    lake.ensure_empty()  # an older lake has no empty file of this dataset, which its view needs
    with lake.staging() as staged:
        write_table(dataset, table_of(dataset, evaluation.rows), staged / "rows")
        final = lake.folder(dataset, evaluation_key=evaluation.id)
        final.parent.mkdir(parents=True, exist_ok=True)
        lake.publish(staged / "rows", final)
