"""The five sources of history with their contracts, and the intakes of each contract.

A source has a format, its own names of tasks, and its words for outcomes. Some kinds of case occur in intakes only:
each combines the work of two known kinds in one case with one outcome. No case of history holds their tasks, so no case
can be looked up. What damages the cases of either kind damages these too.

`contracts/*.toml` in this package hold all files of a contract as text. `by_mail` makes intakes that say less than they
should, and intakes that ask for two things. An incomplete intake is a letter alone: neither title, nor process context,
nor the output that the client wants. A mixed one is the letters of two intakes of one contract in one folder. Both come
in a contract of their own, whose folder has no documents, so that nothing but history can tell what is missing.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.resources import files
from itertools import pairwise
from typing import Any

from opus_pipelines.quality.sample import coding, insurance, payables
from opus_pipelines.quality.sample.model import Check, Do, Element, Industry, Kind, Needed


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

UNSEEN_MOTOR = (
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
UNSEEN_HOME = (
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
UNSEEN_HOUSEHOLD = (
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
UNSEEN_INVOICES = (
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
UNSEEN_EXPENSES = (
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
UNSEEN_VISITS = (
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
        payables.ACCOUNTS_PAYABLE,
        (
            Contract(
                "Brightwater Retail",
                "Employee Expenses",
                45.0,
                payables.EXPENSE_KINDS,
                "expenses",
                UNSEEN_EXPENSES,
            ),
        ),
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
        payables.ACCOUNTS_PAYABLE,
        (
            Contract(
                "Brightwater Retail",
                "Supplier Invoices",
                60.0,
                payables.INVOICE_KINDS,
                "invoices",
                UNSEEN_INVOICES,
            ),
        ),
        "ledger_steps.csv",
        ("paid right first time", "corrected after payment"),
    ),
    Source(
        "castellan_household",
        insurance.INSURANCE_CLAIMS,
        (
            Contract(
                "Castellan Insurance",
                "Household Claims",
                260.0,
                insurance.HOUSEHOLD_KINDS,
                "household",
                UNSEEN_HOUSEHOLD,
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
        insurance.INSURANCE_CLAIMS,
        (
            Contract("Harbourline Mutual", "Motor Claims", 190.0, insurance.MOTOR_KINDS, "motor", UNSEEN_MOTOR),
            Contract("Harbourline Mutual", "Home Claims", 280.0, insurance.HOME_KINDS, "home", UNSEEN_HOME),
        ),
        "claims_export.xes.gz",
        ("settled", "reopened"),
    ),
    Source(
        "meridian_coding",
        coding.MEDICAL_CODING,
        (Contract("Meridian Clinics", "Visit Coding", 85.0, coding.VISIT_KINDS, "coding", UNSEEN_VISITS),),
        "visits.xes",
        ("accepted by payer", "denied or downcoded"),
    ),
)


@dataclass(frozen=True)
class ContractFiles:
    """A contract's folder, the texts of its files by path, and the kinds of case that each intake asks for."""

    contract: Contract
    folder: str
    texts: dict[str, str]
    kinds: dict[str, list[str]]


def all_contracts() -> list[ContractFiles]:
    """Returns every contract with its files, in the order of the sources."""
    return [_read(contract) for source in SOURCES for contract in source.contracts]


def _read(contract: Contract) -> ContractFiles:
    resource = files("opus_pipelines.quality.sample") / "contracts" / f"{contract.resource}.toml"
    data: dict[str, Any] = tomllib.loads(resource.read_text("utf-8"))
    texts = dict(data["files"])
    for intake in data["intakes"]:
        texts |= {f"{intake['name']}/{path}": text for path, text in intake["files"].items()}
    kinds = {i["name"]: i["kind"] if isinstance(i["kind"], list) else [i["kind"]] for i in data["intakes"]}
    return ContractFiles(contract, data["folder"], texts, kinds)


SUFFIX, NAMED = "-by-mail", ", by mail"
KEPT = ("received_at", "gain_usd")  # what an incomplete intake's settings keep: neither title nor constraints
_SETTINGS = ("client", "industry", "gain_usd")


def by_mail(files: ContractFiles) -> ContractFiles:
    """Returns a contract with an incomplete twin of each intake of one kind, and a mixed one of each two neighbours.

    Neighbours of the same kind of case make no mixed intake.
    """
    single = {name: kinds[0] for name, kinds in files.kinds.items() if len(kinds) == 1}
    contract = replace(files.contract, name=files.contract.name + NAMED)
    texts = {"contract.toml": _toml({"contract": contract.name} | _stated(files.texts["contract.toml"], _SETTINGS))}
    kinds: dict[str, list[str]] = {}
    for name, kind in single.items():
        kinds[name] = [kind]
        texts |= _letter(files, name, name, "")
    for first, second in pairwise(single):
        if single[first] != single[second]:
            both = f"{first}-and-{second}"
            kinds[both] = [single[first], single[second]]
            texts |= _letter(files, second, both, "second_") | _letter(files, first, both, "first_")
    return ContractFiles(contract, files.folder + SUFFIX, texts, kinds)


def _letter(files: ContractFiles, of: str, to: str, prefix: str) -> dict[str, str]:
    """Returns the client input and the settings of an intake, as files of another one."""
    begin = f"{of}/input/"
    inputs = {
        f"{to}/input/{prefix}{path.removeprefix(begin)}": text
        for path, text in files.texts.items()
        if path.startswith(begin)
    }
    return {f"{to}/intake.toml": _toml(_stated(files.texts[f"{of}/intake.toml"], KEPT)), **inputs}


def _stated(text: str, keys: tuple[str, ...]) -> dict[str, object]:
    known = tomllib.loads(text)
    return {key: known[key] for key in keys if key in known}


def _toml(values: dict[str, object]) -> str:
    written = lambda v: v.isoformat() if isinstance(v, datetime) else f'"{v}"' if isinstance(v, str) else str(v)
    return "".join(f"{key} = {written(value)}\n" for key, value in values.items())
