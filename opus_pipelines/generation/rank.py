"""Stage 5: the ranked workflows, and the figures of history that they are compared with."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from opus_pipelines.core.settings import Cost
from opus_pipelines.generation.planning.candidates import NEEDED, rank_candidates
from opus_pipelines.generation.planning.ranking_context import Candidate
from opus_pipelines.generation.planning.standing_decisions import all_rejected
from opus_pipelines.generation.records import GenerationContext, Planned, Ranked, Refused, Retrieved
from opus_pipelines.generation.search.baseline import Baseline, baseline, task_baselines
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.workflow.files import Weights

BASELINE_CASES = 25


def rank(planned: Planned, context: GenerationContext) -> Ranked:
    """Returns the plans in their order, with Reward, Penalty and confidence.

    Raises Refused where people rejected every workflow, or where even the best one lacks a critical task.
    """
    retrieved, cost = planned.drafted.retrieved, context.terms.cost
    ranked = rank_candidates(planned.context, planned.candidates)
    if not ranked and retrieved.evidence.decided.rejected_ids:
        raise Refused(all_rejected(retrieved.evidence.decided))
    if violation := _missing_critical_task(ranked):
        raise Refused(f"no feasible workflow: {violation}")
    nearest = _compared_cases(retrieved)
    compared = [_row(case) for case in nearest]
    return Ranked(
        planned,
        ranked,
        _baseline(compared, retrieved.evidence.cases, cost),
        _median_lead_time_ms(nearest),
        task_baselines(compared, cost),
        Weights.of(cost, context.settings.reward),
        frozenset(case.implementation_id for case in nearest),
    )


def _missing_critical_task(ranked: list[tuple[int, Candidate]]) -> str | None:
    """Returns the violation that says which critical task the best workflow lacks.

    It is None where the workflow lacks none, or where a person chose it all the same.
    """
    best = [candidate for _, candidate in ranked[:1] if candidate.decision is None or candidate.decision.kind is None]
    return next((v for candidate in best for v in candidate.violations if v.startswith(NEEDED)), None)


def _compared_cases(retrieved: Retrieved) -> list[SimilarCase]:
    """Returns the nearest cases that people carried out.

    There are none where several processes are combined: no case did all of that work, so none tells what it costs.
    """
    if len(retrieved.processes) > 1:
        return []
    return _carried_out(retrieved.processes[0].cases)[:BASELINE_CASES]


def _carried_out(cases: Sequence[SimilarCase]) -> list[SimilarCase]:
    return [case for case in cases if not case.is_decision]


def _baseline(compared: list[dict[str, object]], cases: Sequence[SimilarCase], cost: Cost) -> Baseline:
    """Returns medians over the compared cases.

    Successes are counted over all similar cases, as `opus explain` counts them, so that both show one figure.
    """
    outcomes = [c.success for c in _carried_out(cases) if c.success is not None and not c.outcome_by_activities]
    return replace(baseline(compared, cost), success=sum(outcomes) / len(outcomes) if compared and outcomes else None)


def _median_lead_time_ms(cases: Sequence[SimilarCase]) -> float | None:
    known = [c.lead_time_ms for c in cases if c.lead_time_ms is not None]
    return statistics.median(known) if known else None


def _row(case: SimilarCase) -> dict[str, object]:
    return {
        "tasks": case.tasks,
        "task_cost_usd": case.task_cost_usd,
        "task_duration_ms": case.task_duration_ms,
        "actor_kinds": case.actor_kinds,
        "models": case.models,
        "actor_groups": case.actor_groups,
        "success": case.success,
    }
