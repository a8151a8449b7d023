"""What was decided on a ranked workflow, in words: what the ranking follows already, and what it will follow when it
is made again.
"""

from typing import Any

from opus_pipelines.core.formatting import usd
from opus_pipelines.core.safe_text import clean

Row = dict[str, Any]
_NEXT = {
    "accept": "is rank 1 from the next `opus generate` on",
    "reject": "is left out by the next `opus generate`",
    "edit": "gives way to the person's version at the next `opus generate`",
}
_PAST = {"accept": "accepted", "reject": "rejected", "edit": "edited"}


def decision_text(row: Row) -> str | None:
    """One line for a row with the columns `decision` to `better_by_usd` of workflows/optimized and the last decision
    on it; None where nobody decided.
    """
    said = []
    if row["decision"]:
        said.append(_with_reason(row["decision"], row["decided_by"], row["decided_why"]))
    if row["better_workflow_id"]:
        said.append(f"a better one exists: {row['better_workflow_id']}{_by(row)}")
    if row["decision_note"]:
        said.append(clean(row["decision_note"]))
    kind, number = row["last_decision"], row["last_number"]
    if kind and number > row["applied_number"]:
        said.append(f"{_with_reason(_PAST[kind], row['last_by'], row['last_why'])}; it {_NEXT[kind]}")
    elif kind and not row["decision"] and number < row["applied_number"]:
        said.append(f"{_PAST[kind]} by decision {number}; decision {row['applied_number']} on this intake came later")
    return "; ".join(said) or None


def _with_reason(what: str, who: str | None, why: str | None) -> str:
    return f"{what}{f' by {clean(who)}' if who else ''}{f': {clean(why)}' if why else ''}"


def _by(row: Row) -> str:
    """How much more it earns; where support decides, by what it is better. One that ranks higher though it earns no
    more keeps constraints that the chosen one does not.
    """
    more_usd = row["better_by_usd"]
    if row["completeness"] == "support":
        return ", which keeps the constraints or agrees more with similar cases"
    if more_usd is None:
        return ""
    return f", +{usd(more_usd)} Reward" if more_usd > 0 else f", which keeps the constraints ({usd(more_usd)} Reward)"
