"""Describes the decisions on a ranked workflow: those the ranking applied, and those the next one will apply."""

from typing import Any

from opus_pipelines.core.formatting import clean, usd

_Row = dict[str, Any]
_NEXT = {
    "accept": "is rank 1 from the next `opus generate` on",
    "reject": "is left out by the next `opus generate`",
    "edit": "gives way to the person's version at the next `opus generate`",
}
_PAST = {"accept": "accepted", "reject": "rejected", "edit": "edited"}


def decision_text(row: _Row) -> str | None:
    """Returns one line about the decisions on a workflow; None where there is none.

    The row has the columns `decision` to `better_by_usd` of workflows/optimized, and the last decision on the workflow.
    """
    parts = []
    if row["decision"]:
        parts.append(_with_reason(row["decision"], row["decided_by"], row["decided_why"]))
    if row["better_workflow_id"]:
        parts.append(f"a better one exists: {row['better_workflow_id']}{_by(row)}")
    if row["decision_note"]:
        parts.append(clean(row["decision_note"]))
    kind, number = row["last_decision"], row["last_number"]
    if kind and number > row["applied_number"]:
        parts.append(f"{_with_reason(_PAST[kind], row['last_by'], row['last_why'])}; it {_NEXT[kind]}")
    elif kind and not row["decision"] and number < row["applied_number"]:
        parts.append(f"{_PAST[kind]} by decision {number}; decision {row['applied_number']} on this intake came later")
    return "; ".join(parts) or None


def _with_reason(what: str, who: str | None, why: str | None) -> str:
    return f"{what}{f' by {clean(who)}' if who else ''}{f': {clean(why)}' if why else ''}"


def _by(row: _Row) -> str:
    """Returns by how much the better workflow earns more; where support decides, in what it is better.

    A workflow that ranks higher without earning more keeps constraints that the chosen one breaks.
    """
    more_usd = row["better_by_usd"]
    if row["completeness"] == "support":
        return ", which keeps the constraints or agrees more with similar cases"
    if more_usd is None:
        return ""
    return f", +{usd(more_usd)} Reward" if more_usd > 0 else f", which keeps the constraints ({usd(more_usd)} Reward)"
