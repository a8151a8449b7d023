"""The best that the truth allows: the ways of doing a kind of case's regular tasks that earn most, exactly."""

from typing import Any

from tests.quality.sample.simulate import Step, kind_of


def best_steps(truth: dict[str, Any], industry: str, kind: str, gain_usd: float) -> tuple[list[Step], float]:
    """(task, actor kind, model) of every regular task, in the order of the flow, and their expected Reward in dollars.

    Each state of the search is P(right) and cost so far; one that costs more and is less often right than another leads
    nowhere, since p is at least q. Raises InputError for an unknown kind.
    """
    tasks = (
        {t["task"]: t["ways"] for t in truth["industries"][industry]["tasks"]}
        if industry in truth["industries"]
        else {}
    )
    found: list[tuple[float, float, list[Step]]] = [(1.0, 0.0, [])]
    for task in kind_of(truth, industry, (), kind)["always"]:
        longer = [
            (
                way["p"] * right + way["q"] * (1 - right),
                cost + way["cost_usd_mean"],
                [*steps, (task, way["actor_kind"], way["model"])],
            )
            for right, cost, steps in found
            for way in tasks[task]
        ]
        found = _undominated(longer)
    right, cost, steps = max(found, key=lambda point: gain_usd * point[0] - point[1])
    return steps, gain_usd * right - cost


def _undominated(points: list[tuple[float, float, list[Step]]]) -> list[tuple[float, float, list[Step]]]:
    kept: list[tuple[float, float, list[Step]]] = []
    for point in sorted(points, key=lambda p: (p[1], -p[0])):
        if not kept or point[0] > kept[-1][0]:
            kept.append(point)
    return kept
