"""reports/reward: what each Intention's best workflow earns, against the runner-up and against history."""

from collections import defaultdict
from collections.abc import Iterable

from opus_pipelines.generation.results.rows import Row

COLUMNS = (
    "intake_id", "intention_id", "rank", "reward_usd", "penalty", "feasible", "best_share", "gain_usd", "case_cost_usd",
    "baseline_success", "tasks", "new_tasks", "cost_assumed_share", "cost_unknown_steps", "duration_unknown_steps",
    "verdict_reason",
)


def reward_rows(optimized: Iterable[Row], clear_share: float) -> list[Row]:
    """A row an Intention, from rows of workflows/optimized (`COLUMNS`); distance by EVAL (14).

    Its ranking is undecided where rank 1 is the best of the ranked with a probability below `clear_share`, or the evidence is thin.
    """
    ranked: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in optimized:
        if row["rank"] <= 2:
            ranked[row["intention_id"]][row["rank"]] = row
    return [_row(found[1], found.get(2), clear_share) for _, found in sorted(ranked.items())]


def _row(best: Row, second: Row | None, clear_share: float) -> Row:
    known = all(best[name] is not None for name in ("gain_usd", "case_cost_usd", "baseline_success"))
    earned = best["gain_usd"] * best["baseline_success"] - best["case_cost_usd"] if known else None
    return {
        "intake_id": best["intake_id"], "intention_id": best["intention_id"], "reward_usd": best["reward_usd"], "penalty": best["penalty"],
        "rank2_reward_usd": second["reward_usd"] if second else None,
        "distance": abs(best["reward_usd"] - second["reward_usd"]) if second and best["reward_usd"] is not None else None,
        **{name: best[name] for name in ("cost_assumed_share", "cost_unknown_steps", "duration_unknown_steps")},
        "baseline_reward_usd": earned, "uplift_usd": None if earned is None else best["reward_usd"] - earned,
        "feasible": best["feasible"], "wkg_coverage": 1 - best["new_tasks"] / best["tasks"] if best["tasks"] else None,
        "verdict": "undecided" if best["verdict_reason"] else _verdict(best["best_share"], clear_share),
    }


def _verdict(best_share: float | None, clear_share: float) -> str | None:
    if best_share is None:
        return None
    return "clear" if best_share >= clear_share else "undecided"
