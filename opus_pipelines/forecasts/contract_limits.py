"""The limits that contracts set for their cases, for forecasts of running ones."""

from pathlib import Path

from opus_pipelines.forecasts.limits import COST, LEAD_TIME, SECONDS_PER_HOUR, SERVICE_LEVEL, Limit, Limits, stated
from opus_pipelines.intakes.discover import discover
from opus_pipelines.workflow.constraints import Constraints

_HOURS = {"hours": 1.0, "days": 24.0}  # of the units of a deadline that need no calendar


def contract_limits(intakes: Path) -> dict[tuple[str, str], Limits]:
    """The limits of every usable contract below the folder, by client and contract; none where there is no folder.

    Deadlines in working time are left out: a forecast counts all hours.
    """
    if not intakes.is_dir():
        return {}
    found = {
        (c.client, c.contract): _limits_of_contract(c.settings.constraints) for c in discover(intakes) if not c.problem
    }
    return {key: limits for key, limits in found.items() if limits}


def _limits_of_contract(constraints: Constraints) -> Limits:
    """The limits of lead time and cost, and the deadlines of single steps as service levels."""
    hours = constraints.max_lead_time_hours
    whole = stated([(LEAD_TIME, None if hours is None else hours * SECONDS_PER_HOUR), (COST, constraints.max_cost_usd)])
    return whole + tuple(
        Limit(SERVICE_LEVEL, d.within * _HOURS[d.unit] * SECONDS_PER_HOUR, d.step, d.after)
        for d in constraints.deadlines
        if d.unit in _HOURS
    )
