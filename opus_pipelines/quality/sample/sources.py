"""The five sources of history with their contracts, and the intakes of each contract.

A source has a format, its own names of tasks, and its words for outcomes.

`contracts/*.toml` in this package hold all files of a contract as text. `by_mail` makes intakes that say less than they
should, and intakes that ask for two things. An incomplete intake is a letter alone: neither title, nor process context,
nor the output that the client wants. A mixed one is the letters of two intakes of one contract in one folder. Both come
in a contract of their own, whose folder has no documents, so that nothing but history can tell what is missing.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.resources import files
from itertools import pairwise
from typing import Any

from opus_pipelines.quality.sample.industries import IndustryKinds, read_industry
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
    file: str = ""
    outcome: tuple[str, str] = ("", "")
    style: Callable[[str], str] = str
    synonyms: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_history(self) -> bool:
        """Whether there is a file of cases; else the client is new and there are intakes only."""
        return bool(self.file)

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


def _contract(of: IndustryKinds, resource: str, client: str, name: str, gain_usd: float) -> Contract:
    return Contract(client, name, gain_usd, of.kinds.get(resource, ()), resource, of.unseen.get(resource, ()))


_PAYABLES, _INSURANCE, _CODING = map(read_industry, ("payables", "insurance", "coding"))
_PERMITS, _FREIGHT, _LEASING = map(read_industry, ("permits", "freight", "leasing"))
SOURCES = (
    Source(
        "brightwater_expenses",
        _PAYABLES.industry,
        (_contract(_PAYABLES, "expenses", "Brightwater Retail", "Employee Expenses", 45.0),),
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
        _PAYABLES.industry,
        (_contract(_PAYABLES, "invoices", "Brightwater Retail", "Supplier Invoices", 60.0),),
        "ledger_steps.csv",
        ("paid right first time", "corrected after payment"),
    ),
    Source(
        "castellan_household",
        _INSURANCE.industry,
        (_contract(_INSURANCE, "household", "Castellan Insurance", "Household Claims", 260.0),),
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
        _INSURANCE.industry,
        (
            _contract(_INSURANCE, "motor", "Harbourline Mutual", "Motor Claims", 190.0),
            _contract(_INSURANCE, "home", "Harbourline Mutual", "Home Claims", 280.0),
        ),
        "claims_export.xes.gz",
        ("settled", "reopened"),
    ),
    Source(
        "meridian_coding",
        _CODING.industry,
        (_contract(_CODING, "coding", "Meridian Clinics", "Visit Coding", 85.0),),
        "visits.xes",
        ("accepted by payer", "denied or downcoded"),
    ),
)
# What the five sources lack: offices that work in parallel, an order that decides, a class of risk, running cases, a
# review, and a rule that is newer than history; another language; a new client in a known industry; and a catalogue in
# an industry without history.
HARDER = (
    Source(
        "eastmere_permits",
        _PERMITS.industry,
        (_contract(_PERMITS, "permits", "Town of Eastmere", "Building Permits", 1400.0),),
        "permits.xes",
        ("upheld", "overturned"),
    ),
    Source(
        "nordhafen_transport",
        _FREIGHT.industry,
        (_contract(_FREIGHT, "transport", "Nordhafen Logistik", "Transportschäden", 150.0),),
        "schaeden.jsonl",
        ("erledigt", "wiedereröffnet"),
    ),
    Source(
        "northfold",
        _INSURANCE.industry,
        (_contract(_INSURANCE, "northfold", "Northfold Insurance", "Home Claims", 270.0),),
    ),
    Source(
        "fernwick",
        _LEASING.industry,
        (_contract(_LEASING, "returns", "Fernwick Leasing", "Vehicle Returns", 110.0),),
    ),
)


@dataclass(frozen=True)
class ContractFiles:
    """A contract's folder, the texts of its files by path, and the kinds of case that each intake asks for."""

    contract: Contract
    folder: str
    texts: dict[str, str]
    kinds: dict[str, list[str]]


def all_contracts(sources: Sequence[Source] = SOURCES) -> list[ContractFiles]:
    """Returns every contract of the sources with its files, in their order."""
    return [_read(contract) for source in sources for contract in source.contracts]


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
