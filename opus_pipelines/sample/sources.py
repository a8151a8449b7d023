"""The five sources of history: whose cases, in what format, under which names, with what `source.toml`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from opus_pipelines.sample import coding, insurance, payables
from opus_pipelines.sample.model import Industry, Kind


@dataclass(frozen=True)
class Contract:
    """A client's contract: its kinds of case, what a correct case is worth, and the folder of its intakes."""

    client: str
    name: str
    gain_usd: float
    kinds: tuple[Kind, ...]
    resource: str


@dataclass(frozen=True)
class Source:
    """A source: a folder of history. `synonyms` are its own words for tasks; `style` writes all others."""

    name: str
    industry: Industry
    contracts: tuple[Contract, ...]
    file: str
    settings: str
    outcome: tuple[str, str]
    style: Callable[[str], str] = str
    synonyms: Mapping[str, str] = field(default_factory=dict)

    def key(self, task: str) -> str:
        """The raw key under which this source records a task."""
        return self.synonyms.get(task) or self.style(task)


def snake(name: str) -> str:
    """`Verify Coverage` → `verify_coverage`."""
    return name.lower().replace(" ", "_")


def sentence(name: str) -> str:
    """`Approve Payment` → `Approve payment`."""
    return name[:1] + name[1:].lower()


CLAIMS_XES = """\
# Claims of Harbourline Mutual, as its claims system exports them: start and complete of each activity, and schedule events that are no work.
industry = "insurance claims"
client = "Harbourline Mutual"
contract = { column = "contract" }

[columns]
case = "concept:name"
title = "claim_type"
description = "notice"
activity = "concept:name"
time = "time:timestamp"
transition = "lifecycle:transition"
actor = "org:resource"
actor_kind = "actor_kind"
model = "model"
instructions = "instructions"
cost = "cost_usd"
task_success = "step_ok"
task_description = "activity_description"
tokens_in = "tokens_in"
tokens_out = "tokens_out"
inputs = "inputs"
outputs = "outputs"
attributes = ["place", "channel"]

[success]
column = "outcome"
equals = "settled"

[redact]
drop = ["policyholder_email"]
"""

HOUSEHOLD_JSONL = """\
# Household claims of Castellan Insurance: one JSON record a claim, its steps nested in it.
industry = "insurance claims"
client = "Castellan Insurance"
contract = "Household Claims"

[record]
case = "claim.reference"
title = "claim.type"
description = "claim.notice"
process_context = "handling.procedure"
tasks = "handling.steps"

[task]
activity = "step"
task_description = "purpose"
start = "timing.from"
end = "timing.to"
actor = "by.name"
actor_kind = "by.kind"
model = "by.model"
instructions = "told"
cost = "spend.usd"
success = "ok"
tokens_in = "spend.tokens.in"
tokens_out = "spend.tokens.out"
inputs = "reads"
outputs = "writes"

[success]
column = "result.status"
equals = "settled"
"""

INVOICES_CSV = """\
# Supplier invoices of Brightwater Retail, exported from its ledger: one row a step, columns named by the ledger.
industry = "accounts payable"
client = "Brightwater Retail"
contract = "Supplier Invoices"

[columns]
case = "Document No"
title = "Document Type"
description = "Header Text"
activity = "Step"
task_description = "Step Purpose"
start = "Begun"
end = "Finished"
actor = "Processed By"
actor_kind = "Processor Class"
model = "Engine"
instructions = "Work Instruction"
cost = "Charge USD"
cost_human = "Labour USD"
cost_model = "Engine USD"
cost_compute = "Compute USD"
task_success = "Step Correct"
tokens_in = "Engine Tokens In"
tokens_out = "Engine Tokens Out"
inputs = "Needs"
outputs = "Yields"
attributes = ["Company Code"]

[success]
column = "Result"
equals = "paid right first time"
"""

EXPENSES_CSV = """\
# Employee expenses of Brightwater Retail. The tool states no costs: they follow from time and tokens by the rates below.
# Its clocks changed with each release (four formats); times without a zone are Manila's.
industry = "accounts payable"
client = "Brightwater Retail"
contract = "Employee Expenses"
timezone = "Asia/Manila"
currency = "USD"

[columns]
case = "case"
title = "title"
description = "description"
activity = "activity"
start = "start"
end = "end"
actor = "actor"
actor_kind = "actor_kind"
model = "model"
instructions = "instructions"
task_success = "task_success"
task_description = "task_description"
tokens_in = "tokens_in"
tokens_out = "tokens_out"
inputs = "inputs"
outputs = "outputs"

[success]
column = "outcome"
equals = "accepted"

[rates]
human = 27.0
code = 0.6
quill-small-2 = 0.4
quill-large-2 = 6.0
"""

CODING_XES = """\
# Coded visits of Meridian Clinics: start and complete of each activity.
industry = "medical coding"
client = "Meridian Clinics"
contract = "Visit Coding"

[columns]
case = "concept:name"
title = "visit_type"
description = "request"
process_context = "procedure"
activity = "concept:name"
time = "time:timestamp"
transition = "lifecycle:transition"
actor = "org:resource"
actor_kind = "actor_kind"
model = "model"
instructions = "instructions"
cost = "cost_usd"
task_success = "step_ok"
task_description = "activity_description"
tokens_in = "tokens_in"
tokens_out = "tokens_out"
inputs = "inputs"
outputs = "outputs"

[success]
column = "outcome"
equals = "accepted by payer"
"""

SOURCES = (
    Source("brightwater_expenses", payables.INDUSTRY, (Contract("Brightwater Retail", "Employee Expenses", 45.0, payables.EXPENSES, "expenses"),),
           "expenses.csv.gz", EXPENSES_CSV, ("accepted", "corrected later"), sentence,
           {"Assign Ledger Account": "Categorise spend", "Review Posting": "Second look at entries", "Post to Ledger": "Book to general ledger"}),
    Source("brightwater_invoices", payables.INDUSTRY, (Contract("Brightwater Retail", "Supplier Invoices", 60.0, payables.INVOICES, "invoices"),),
           "ledger_steps.csv", INVOICES_CSV, ("paid right first time", "corrected after payment")),
    Source("castellan_household", insurance.INDUSTRY, (Contract("Castellan Insurance", "Household Claims", 260.0, insurance.HOUSEHOLD, "household"),),
           "claims.jsonl", HOUSEHOLD_JSONL, ("settled", "reopened"), snake,
           {"Extract Claim Details": "capture_loss_facts", "Inspect Property": "survey_damage_at_home", "Estimate Repair Cost": "price_repairs",
            "Review Settlement": "second_look_before_offer", "Notify Policyholder": "send_outcome_letter"}),
    Source("harbourline_claims", insurance.INDUSTRY,
           (Contract("Harbourline Mutual", "Motor Claims", 190.0, insurance.MOTOR, "motor"),
            Contract("Harbourline Mutual", "Home Claims", 280.0, insurance.HOME, "home")),
           "claims_export.xes.gz", CLAIMS_XES, ("settled", "reopened")),
    Source("meridian_coding", coding.INDUSTRY, (Contract("Meridian Clinics", "Visit Coding", 85.0, coding.VISITS, "coding"),),
           "visits.xes", CODING_XES, ("accepted by payer", "denied or downcoded")),
)
