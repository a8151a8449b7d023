"""reports/reward: what each Intention's best workflow earns, against the runner-up and against history."""

from collections.abc import Sequence

from opus_pipelines.generation.flow import Generated
from opus_pipelines.generation.intake import Intake
from opus_pipelines.generation.rows import Row
from opus_pipelines.optimization.ranking import distance


def reward_rows(made: Sequence[tuple[Intake, Generated]]) -> list[Row]:
    """A row an Intention; distance by EVAL (14)."""
    return [_row(intake, generated) for intake, generated in made if generated.ranked]


def _row(intake: Intake, made: Generated) -> Row:
    best = made.ranked[0][1]
    second = made.ranked[1][1] if len(made.ranked) > 1 else None
    base = made.baseline
    known = base.cost_usd is not None and base.success is not None
    earned = intake.gain_usd * base.success - base.cost_usd if known else None  # type: ignore[operator]
    return {
        "intake_id": intake.intake_id, "intention_id": made.intention_id, "reward_usd": best.reward_usd, "penalty": best.penalty,
        "rank2_reward_usd": second.reward_usd if second else None, "distance": distance(best, second) if second else None,
        "baseline_reward_usd": earned, "uplift_usd": None if earned is None else best.reward_usd - earned,
        "feasible": best.feasible, "wkg_coverage": 1.0,
    }
