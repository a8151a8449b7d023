"""The sample, written once, and its files read back by readers of the tests' own: what they find is held against
truth.json.
"""

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from opus_pipelines.quality.sample import SampleSummary

MANILA = timezone(timedelta(hours=8))
# ISO 8601 first: it stands in all sources but one, and costs a small part of what a stated form costs
READERS: tuple[Callable[[str], datetime], ...] = (
    datetime.fromisoformat,
    lambda text: datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f%z"),
    lambda text: datetime.strptime(text, "%d.%m.%Y %H:%M:%S.%f"),
)


@dataclass
class Row:
    key: str
    kind: str
    model: str | None
    start: datetime
    end: datetime
    right: bool
    cost: float | None
    tokens: int
    instructions: str


@dataclass
class ReadCase:
    source: str
    case: str
    title: str
    description: str
    outcome: str | None
    contract: str | None = None
    rows: list[Row] = field(default_factory=list)


@dataclass
class Written:
    summary: SampleSummary
    folder: Path
    truth: dict[str, Any]
    cases: list[ReadCase]


@pytest.fixture(scope="session")
def written(sample_files: SampleSummary) -> Written:
    folder = sample_files.directory
    history = folder / "history"
    cases = [
        *read_ledger(history / "brightwater_invoices" / "ledger_steps.csv"),
        *read_expenses(history / "brightwater_expenses" / "expenses.csv.gz"),
        *read_jsonl(history / "castellan_household" / "claims.jsonl"),
        *read_xes(history / "harbourline_claims" / "claims_export.xes.gz", "claim_type", "notice"),
        *read_xes(history / "meridian_coding" / "visits.xes", "visit_type", "request"),
    ]
    for case in cases:
        case.rows.sort(key=lambda row: row.start)
    return Written(sample_files, folder, json.loads((folder / "truth.json").read_text()), cases)


def moment(text: str) -> datetime:
    for read in READERS:
        try:
            found = read(text)
        except ValueError:
            continue
        return found if found.tzinfo else found.replace(tzinfo=MANILA)
    raise AssertionError(text)


def read_ledger(path: Path) -> list[ReadCase]:
    cases: dict[str, ReadCase] = {}
    with path.open(newline="") as file:
        for r in csv.DictReader(file):
            case = cases.setdefault(
                r["Document No"],
                ReadCase(
                    "brightwater_invoices", r["Document No"], r["Document Type"], r["Header Text"], r["Result"] or None
                ),
            )
            kind = {"employee": "human", "program": "code", "llm": "model"}[r["Processor Class"]]
            tokens = int(r["Engine Tokens In"] or 0) + int(r["Engine Tokens Out"] or 0)
            case.rows.append(
                Row(
                    r["Step"],
                    kind,
                    r["Engine"] or None,
                    moment(r["Begun"]),
                    moment(r["Finished"]),
                    r["Step Correct"] == "yes",
                    float(r["Charge USD"]),
                    tokens,
                    r["Work Instruction"],
                )
            )
    return list(cases.values())


def read_expenses(path: Path) -> list[ReadCase]:
    cases: dict[str, ReadCase] = {}
    with gzip.open(path, "rt", newline="") as file:
        for r in csv.DictReader(file):
            case = cases.setdefault(
                r["case"],
                ReadCase("brightwater_expenses", r["case"], r["title"], r["description"], r["outcome"] or None),
            )
            tokens = int(r["tokens_in"] or 0) + int(r["tokens_out"] or 0)
            case.rows.append(
                Row(
                    r["activity"],
                    r["actor_kind"],
                    r["model"] or None,
                    moment(r["start"]),
                    moment(r["end"]),
                    r["task_success"] == "true",
                    None,
                    tokens,
                    r["instructions"],
                )
            )
    return list(cases.values())


def read_jsonl(path: Path) -> list[ReadCase]:
    cases = []
    for line in path.read_text().splitlines():
        r = json.loads(line)
        claim = r["claim"]
        case = ReadCase(
            "castellan_household", claim["reference"], claim["type"], claim["notice"], r["result"]["status"]
        )
        for s in r["handling"]["steps"]:
            tokens = sum(s["spend"].get("tokens", {}).values())
            start, end = (moment(s["timing"][name]) for name in ("from", "to"))
            by = s["by"]
            case.rows.append(
                Row(s["step"], by["kind"], by["model"], start, end, s["ok"], s["spend"]["usd"], tokens, s["told"][0])
            )
        cases.append(case)
    return cases


def read_xes(path: Path, title: str, description: str) -> list[ReadCase]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    cases = []
    for trace in etree.fromstring(data).iter("{*}trace"):
        own = {a.get("key"): a.get("value") for a in trace if a.get("key")}
        told = (own[title], own[description], own.get("outcome"), own.get("contract"))
        case = ReadCase(path.parent.name, own["concept:name"], *told)
        started: dict[str, datetime] = {}
        for event in trace.iter("{*}event"):
            e = defaultdict(str, {a.get("key"): a.get("value") for a in event})
            at = moment(e["time:timestamp"])
            if e["lifecycle:transition"] == "start":
                started[e["concept:instance"]] = at
            elif e["lifecycle:transition"] == "complete":
                tokens = int(e["tokens_in"] or 0) + int(e["tokens_out"] or 0)
                case.rows.append(
                    Row(
                        e["concept:name"],
                        e["actor_kind"],
                        e["model"] or None,
                        started.pop(e["concept:instance"]),
                        at,
                        e["step_ok"] == "true",
                        float(e["cost_usd"]),
                        tokens,
                        e["instructions"],
                    )
                )
        assert not started
        cases.append(case)
    return cases
