"""Holds what published workflows claim to earn against what the truth of their sample says that they earn."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.quality.sample.reward_by_truth import PlannedStep, best_steps, earned_usd

if TYPE_CHECKING:
    import duckdb

_WORKFLOWS = """
SELECT i.client, i.contract, i.folder, n.intention_id, o.reward_usd,
    list({'title': t.title, 'actor_kind': t.actor_kind, 'model': t.model, 'start_ms': t.start_ms,
          'finish_ms': t.finish_ms, 'is_review': t.kind = 'review', 'p': t.p, 'q': t.q, 'cost_usd': t.cost_usd,
          'is_estimated': t.p_basis = 'estimated'}
         ORDER BY t.start_ms, t.position) AS steps
FROM generation_intakes i
JOIN generation_intentions n USING (intake_id)
JOIN workflows_optimized o USING (intention_id)
JOIN workflows_tasks t USING (workflow_id)
WHERE o.rank = 1 AND o.feasible AND t.kind IN ('task', 'review')
GROUP BY ALL
"""
_NEAREST = """
SELECT n.intention_id, list_transform(c.tasks, lambda task: k.titles[task]) AS titles
FROM generation_neighbours n
JOIN wkg_cases c USING (implementation_id),
(SELECT map(list(task_id), list(title)) AS titles FROM wkg_tasks) k
WHERE c.success AND len(c.tasks) > 0
QUALIFY row_number() OVER (PARTITION BY n.intention_id ORDER BY n.similarity DESC, n.implementation_id) = 1
"""
_GAINS = "SELECT client, contract, folder, gain_usd FROM generation_intakes"
NOTHING = 0.0  # what a request earns that got no workflow


@dataclass
class Earnings:
    """Means over the pieces of work that a contract's intakes ask for, in dollars.

    `claimed` by the workflows themselves; by the truth: `earned` by rank 1, by a copy of the `nearest` successful case
    (where there is one, else nothing), and the most that is `possible` with the
    regular steps of its kind of work.
    """

    work: int
    claimed: float
    earned: float
    nearest: float
    possible: float


COLUMNS = (
    "contract",
    "pieces of work",
    "claimed $",
    "earned $",
    "copy of the nearest success $",
    "best of its regular steps $",
)


def table_rows(found: Mapping[tuple[str, str], Earnings]) -> list[tuple[str, ...]]:
    """Returns the earnings for a person to read: a row for each contract, and one for all their work together."""
    work = sum(one.work for one in found.values())
    together = [
        sum(getattr(one, name) * one.work for one in found.values()) / work
        for name in ("claimed", "earned", "nearest", "possible")
    ]
    rows = [*((" / ".join(whose), one) for whose, one in found.items()), ("all", Earnings(work, *together))]
    return [
        (name, str(one.work), *(f"{usd:,.2f}" for usd in (one.claimed, one.earned, one.nearest, one.possible)))
        for name, one in rows
    ]


def earnings(connection: "duckdb.DuckDBPyConnection", truth_file: Path) -> dict[tuple[str, str], Earnings]:
    """Returns the earnings of every contract of the truth by client and contract.

    Of an intake that asks for several pieces of work, each counts with the workflow that earns most by it. Raises
    InputError where the file is no truth.
    """
    try:
        truth = json.loads(truth_file.read_text("utf-8"))
        industries = {(c["client"], c["contract"]): (c["industry"], c["gain_usd"]) for c in truth["contracts"]}
        asked = [(i["client"], i["contract"], i["intake"], i["kinds"]) for i in truth["intakes"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{truth_file} is no truth.json as `opus sample` writes it beside a sample") from None
    workflows = defaultdict(list)
    for client, contract, intake, intention, claimed, steps in connection.execute(_WORKFLOWS).fetchall():
        workflows[client, contract, intake].append((intention, claimed or NOTHING, list(map(_planned, steps))))
    stated = {
        (client, contract, intake): gain for client, contract, intake, gain in connection.execute(_GAINS).fetchall()
    }
    nearest = dict(connection.execute(_NEAREST).fetchall())
    rows: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    for client, contract, intake, kinds in asked:
        industry, usual = industries[client, contract]
        gain = stated.get((client, contract, intake)) or usual
        found = workflows[client, contract, intake]
        for kind in kinds:
            rows[client, contract].append(_of_kind((truth, industry, kind, gain), found, nearest))
    means = {whose: [sum(column) / len(own) for column in zip(*own, strict=True)] for whose, own in rows.items()}
    return {whose: Earnings(len(rows[whose]), *values) for whose, values in means.items()}


def _of_kind(
    asked: tuple[Any, str, str, float],
    found: Sequence[tuple[str, float, list[PlannedStep]]],
    nearest: Mapping[str, Any],
) -> tuple[float, float, float, float]:
    """Returns what one piece of work earns: claimed, by rank 1, by a copy of the nearest success, and at best."""
    earned, claimed = max(
        ((earned_usd(*asked, steps), claimed) for _, claimed, steps in found), default=(NOTHING, NOTHING)
    )
    copies = [[PlannedStep(title) for title in dict.fromkeys(nearest[n])] for n, *_ in found if n in nearest]
    copied = max((earned_usd(*asked, steps) for steps in copies), default=NOTHING)
    return claimed, earned, copied, best_steps(*asked)[1]


def _planned(step: Mapping[str, Any]) -> PlannedStep:
    kind, model = step["actor_kind"], step["model"]
    mode = None if kind is None else (kind, model)
    values = {name: step[name] or 0.0 for name in ("start_ms", "finish_ms", "p", "q", "cost_usd")}
    return PlannedStep(
        step["title"], mode, is_review=step["is_review"], is_estimated=bool(step["is_estimated"]), **values
    )
