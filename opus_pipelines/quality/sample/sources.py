"""Defines the five sources of history: contracts, format, names of tasks, and words for outcomes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from opus_pipelines.quality.sample import coding, insurance, payables, unseen
from opus_pipelines.quality.sample.model import Industry, Kind


@dataclass(frozen=True)
class Contract:
    """A client's contract: its kinds of case, the gain of a correct case, and the folder of its intakes.

    Some kinds occur in intakes only.
    """

    client: str
    name: str
    gain_usd: float
    kinds: tuple[Kind, ...]
    resource: str
    unseen: tuple[Kind, ...] = ()


@dataclass(frozen=True)
class Source:
    """A source, which is a folder of history. `synonyms` are its own words for tasks; `style` writes all others."""

    name: str
    industry: Industry
    contracts: tuple[Contract, ...]
    file: str
    outcome: tuple[str, str]
    style: Callable[[str], str] = str
    synonyms: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> str:
        """The text of its source.toml, a file next to this module."""
        return (files("opus_pipelines.quality.sample") / "source_settings" / f"{self.name}.toml").read_text("utf-8")

    def key(self, task: str) -> str:
        """Returns the raw key under which this source records a task."""
        return self.synonyms.get(task) or self.style(task)


def snake(name: str) -> str:
    """Writes `Verify Coverage` as `verify_coverage`."""
    return name.lower().replace(" ", "_")


def sentence(name: str) -> str:
    """Writes `Approve Payment` as `Approve payment`."""
    return name[:1] + name[1:].lower()


SOURCES = (
    Source(
        "brightwater_expenses",
        payables.INDUSTRY,
        (Contract("Brightwater Retail", "Employee Expenses", 45.0, payables.EXPENSES, "expenses", unseen.EXPENSES),),
        "expenses.csv.gz",
        ("accepted", "corrected later"),
        sentence,
        {
            "Assign Ledger Account": "Categorise spend",
            "Review Posting": "Second look at entries",
            "Post to Ledger": "Book to general ledger",
        },
    ),
    Source(
        "brightwater_invoices",
        payables.INDUSTRY,
        (Contract("Brightwater Retail", "Supplier Invoices", 60.0, payables.INVOICES, "invoices", unseen.INVOICES),),
        "ledger_steps.csv",
        ("paid right first time", "corrected after payment"),
    ),
    Source(
        "castellan_household",
        insurance.INDUSTRY,
        (
            Contract(
                "Castellan Insurance", "Household Claims", 260.0, insurance.HOUSEHOLD, "household", unseen.HOUSEHOLD
            ),
        ),
        "claims.jsonl",
        ("settled", "reopened"),
        snake,
        {
            "Extract Claim Details": "capture_loss_facts",
            "Inspect Property": "survey_damage_at_home",
            "Estimate Repair Cost": "price_repairs",
            "Review Settlement": "second_look_before_offer",
            "Notify Policyholder": "send_outcome_letter",
        },
    ),
    Source(
        "harbourline_claims",
        insurance.INDUSTRY,
        (
            Contract("Harbourline Mutual", "Motor Claims", 190.0, insurance.MOTOR, "motor", unseen.MOTOR),
            Contract("Harbourline Mutual", "Home Claims", 280.0, insurance.HOME, "home", unseen.HOME),
        ),
        "claims_export.xes.gz",
        ("settled", "reopened"),
    ),
    Source(
        "meridian_coding",
        coding.INDUSTRY,
        (Contract("Meridian Clinics", "Visit Coding", 85.0, coding.VISITS, "coding", unseen.VISITS),),
        "visits.xes",
        ("accepted by payer", "denied or downcoded"),
    ),
)
