"""Defines kinds of case that history never had: each combines the work of two known kinds in one case with one outcome.

No case of history holds their tasks, so no case can be looked up. What damages the cases of either kind damages these
too.
"""

from opus_pipelines.quality.sample.model import Check, Do, Element, Kind, Needed


def _kind(title: str, *flow: Element) -> Kind:
    return Kind(title, "", {}, "", flow, 0)


def _needed(task: str, damage: float) -> Needed:
    return Needed(task, 0.0, damage)


_CLAIM = (Do("Register Claim"), Do("Verify Coverage"), Do("Extract Claim Details"))
_SETTLED = (Do("Approve Settlement"), Do("Issue Payment"), Do("Notify Policyholder"), Do("Close Claim"))
_PRICED = (Do("Estimate Repair Cost"), Check("Review Settlement", "Estimate Repair Cost", 0.75), *_SETTLED)
_POSTED = (
    Do("Assign Ledger Account"),
    Check("Review Posting", "Assign Ledger Account", 0.7),
    Do("Approve Payment"),
    Do("Post to Ledger"),
)

MOTOR = (
    _kind(
        "Collision with broken glass",
        *_CLAIM,
        Do("Determine Liability"),
        Do("Check Fraud Indicators"),
        _needed("Inspect Vehicle", 0.82),
        _needed("Assess Glass Damage", 0.5),
        _needed("Book Glass Fitter", 0.5),
        *_PRICED,
    ),
)
HOME = (
    _kind(
        "Burglary with water damage",
        *_CLAIM,
        _needed("Arrange Drying", 0.6),
        Do("Check Fraud Indicators"),
        Do("Obtain Police Report"),
        _needed("Interview Policyholder", 0.8),
        Do("Value Stolen Items"),
        _needed("Inspect Property", 0.82),
        *_PRICED,
    ),
)
HOUSEHOLD = (
    _kind(
        "Storm damage with escape of water",
        *_CLAIM,
        _needed("Check Weather Record", 0.6),
        Do("Secure Property"),
        _needed("Arrange Drying", 0.6),
        _needed("Inspect Property", 0.82),
        *_PRICED,
    ),
)
INVOICES = (
    _kind(
        "Purchase order invoice with an unordered service",
        Do("Receive Invoice"),
        Do("Extract Invoice Fields"),
        Do("Validate Supplier"),
        Do("Match Purchase Order"),
        _needed("Confirm Goods Receipt", 0.82),
        Do("Identify Cost Owner"),
        _needed("Confirm Order with Requester", 0.82),
        Do("Check Duplicate Invoice"),
        Do("Check Tax Treatment"),
        *_POSTED,
        Do("Schedule Payment"),
        Do("Archive Document"),
    ),
)
EXPENSES = (
    _kind(
        "Travel on card and private money",
        Do("Receive Expense Report"),
        Do("Read Receipts"),
        _needed("Match Card Statement", 0.5),
        _needed("Check Receipts against Policy", 0.82),
        Do("Check Tax Treatment"),
        *_POSTED,
        _needed("Reimburse Employee", 0.6),
        _needed("Settle Card Account", 0.6),
        Do("Archive Document"),
    ),
)
VISITS = (
    _kind(
        "Visit of doubtful status",
        Do("Receive Visit Note"),
        Do("Verify Patient Identity"),
        _needed("Confirm New Patient Status", 0.6),
        _needed("Compare Prior Visits", 0.6),
        Do("Count Data Points"),
        Do("Count Problem Points"),
        Do("Assess Level of Risk"),
        Do("Determine Visit Level"),
        Do("Assign Diagnosis Codes"),
        _needed("Audit Code Level", 0.8),
        Check("Check Payer Edits", "Determine Visit Level", 0.7),
        Do("Release Charge"),
        Do("File Coding Record"),
    ),
)
