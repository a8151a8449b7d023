"""Defines the sources of the gallery: shared logs, n8n flows, BPMN models and an ugly export.

Each gives files of history and a few requests.
"""

import csv
import gzip
import json
import random
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

CLIENT, CONTRACT, UGLY = "gallery", "requests", "ugly_csv"

MODELS = {
    "dispatch of goods": "Dispatch of goods: a customer of the hardware retailer ordered goods. Prepare the package "
    "for the carrier.",
    "credit scoring": "Credit scoring: a bank employee asks for a customer's credit score. Ask the agency for it and "
    "tell the result.",
}


@dataclass(frozen=True)
class Request:
    """What is asked; `plan` is what was really done, where that is known."""

    name: str
    text: str
    plan: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The name of its intake."""
        return re.sub(r"[^A-Za-z0-9-]+", "-", self.name)[:60]


@dataclass(frozen=True)
class Source:
    """One source to run.

    `write` puts its files of history into a folder; `is_table`: `opus init` reads them; `activity`: the name that the
    requests' plans use for a raw name of history.
    """

    name: str
    write: Callable[[Path], list[Path]]
    requests: tuple[Request, ...]
    is_table: bool = True
    activity: Callable[[str], str] = str


def sources(
    data: Path, bench: Path, work: Path, most: int, cases: int, is_wanted: Callable[[str], bool]
) -> Iterator[Source]:
    """Yields every wanted source (by its name) with data below `data`; `bench` holds logplans.py."""
    for log in sorted((data / "event_logs").glob("*.gz")):
        if is_wanted(_name(log)):
            yield _of_log(log, bench, work, most, cases)
    ugly = data / "event_logs" / "bpic2020_DomesticDeclarations.xes.gz"
    if ugly.exists() and is_wanted(UGLY):
        yield _ugly(_of_log(ugly, bench, work, most, cases))
    if (data / "n8n" / "workflows.tar.gz").exists() and is_wanted("n8n"):
        yield _n8n(data, most, cases)
    if (data / "bpmn" / "models.tar.gz").exists() and is_wanted("bpmn"):
        requests = tuple(Request(name.replace(" ", "-"), text) for name, text in MODELS.items())
        yield Source(
            "bpmn",
            lambda folder: _unpacked(data / "bpmn" / "models.tar.gz", folder, r"\.bpmn$"),
            requests,
            is_table=False,
        )


def write_intakes(source: Source, folder: Path) -> None:
    """The requests as a contract's intakes."""
    contract = folder / CLIENT / CONTRACT
    for request in source.requests:
        place = contract / request.folder / "input"
        place.mkdir(parents=True)
        if request.attributes:
            (place / "request.json").write_text(json.dumps(request.attributes, ensure_ascii=False, indent=1), "utf-8")
        else:
            (place / "request.txt").write_text(request.text, "utf-8")


def _name(log: Path) -> str:
    return log.name.split(".")[0]


def _of_log(log: Path, bench: Path, work: Path, most: int, cases: int) -> Source:
    name = _name(log)
    out = work / "asked" / name
    if not (out / "ask" / "train.csv").exists():
        command = [sys.executable, str(bench / "logplans.py"), str(log), str(out), "--max-cases", str(most)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    gold = {row["id"]: tuple(row["plan"]) for row in _rows(out / "gold" / "test.jsonl.gz")}
    requests = tuple(
        Request(f"case-{n}", "\n".join(row["request"].split("; ")), gold[row["id"]], row["attributes"])
        for n, row in enumerate(_rows(out / "ask" / "requests.jsonl")[:most], start=1)
    )
    return Source(
        name, lambda folder: [_some_cases(out / "ask" / "train.csv", folder / f"{name}.csv", cases)], requests
    )


def _some_cases(train: Path, to: Path, cases: int) -> Path:
    """Returns the events of some cases of a log, drawn with a fixed seed.

    The last cases are those that history has cut short.
    """
    with train.open(newline="") as file:
        rows = list(csv.DictReader(file))
    begun = list(dict.fromkeys(row["case_id"] for row in rows))
    kept = set(random.Random(0).sample(begun, min(cases, len(begun))) if cases else begun)
    with to.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row for row in rows if row["case_id"] in kept)
    return to


def _ugly(source: Source) -> Source:
    """Writes the same log as a German office would export it.

    It has semicolons, cp1252, three forms of dates, and decimal commas with a euro sign.
    """

    def write(folder: Path) -> list[Path]:
        (plain,) = source.write(folder)
        with plain.open(newline="") as file:
            rows = list(csv.DictReader(file))
        plain.unlink()
        amounts = [name for name in rows[0] if "amount" in name.lower()]
        others = [name for name in rows[0] if name not in {"case_id", "activity", "timestamp", "resource", *amounts}]
        path = folder / "Reisekosten Übersicht.csv"
        with path.open("w", newline="", encoding="cp1252", errors="replace") as file:
            writer = csv.writer(file, delimiter=";")
            writer.writerow(
                [
                    "Vorgangsnr.",
                    "Tätigkeit",
                    "Zeitpunkt",
                    "Bearbeiter",
                    *(f"Betrag {n}".removesuffix(" 1") for n, _ in enumerate(amounts, start=1)),
                    *others,
                ]
            )
            for number, row in enumerate(rows):
                writer.writerow(
                    [
                        row["case_id"],
                        row["activity"],
                        _date(row["timestamp"], number % 3),
                        row["resource"],
                        *(_euro(row[name]) for name in amounts),
                        *(row[name] for name in others),
                    ]
                )
        return [path]

    def asked(request: Request) -> Request:
        names = [name for name in request.attributes if "amount" in name.lower()]
        renamed = {
            (f"Betrag {names.index(k) + 1}".removesuffix(" 1") if k in names else k): v
            for k, v in request.attributes.items()
        }
        return replace(request, attributes=renamed)

    return Source(UGLY, write, tuple(map(asked, source.requests)))


def _date(iso: str, form: int) -> str:
    year, month, day, clock = iso[:4], iso[5:7], iso[8:10], iso[11:19]
    return (f"{day}.{month}.{year} {clock}", f"{year}-{month}-{day} {clock}", f"{day}/{month}/{year} {clock}")[form]


def _euro(value: str) -> str:
    return (
        f"{float(value):,.2f} €".replace(",", " ").replace(".", ",").replace(" ", ".", value.count(","))
        if value
        else ""
    )


def _n8n(data: Path, most: int, cases: int) -> Source:
    """Some flows are history, but for those that are asked for and their duplicates."""
    rows = _rows(data / "plans" / "n8n.jsonl.gz")
    asked = random.Random(0).sample(rows, most)
    numbers = {row["id"].split("_")[0].removeprefix("n") for row in asked}
    flows = _rows(data / "n8n" / "index.jsonl.gz")
    same = {flow["path"]: flow["duplicate_of"] or flow["path"] for flow in flows}
    groups = {group for path, group in same.items() if Path(path).name.split("_")[0] in numbers}
    known = sorted(Path(path).name for path, group in same.items() if group not in groups)
    kept = random.Random(0).sample(known, min(cases, len(known))) if cases else known

    def write(folder: Path) -> list[Path]:
        return _unpacked(data / "n8n" / "workflows.tar.gz", folder, rf"/(?:{'|'.join(map(re.escape, kept))})$")

    requests = tuple(
        Request(f"flow-{n}", f"{row['request']}\n\n{row.get('context') or ''}", tuple(row["plan"]))
        for n, row in enumerate(asked, start=1)
    )
    return Source("n8n", write, requests, is_table=False, activity=lambda name: name.split(" ")[0].rsplit(".", 1)[-1])


def _unpacked(archive: Path, folder: Path, pattern: str) -> list[Path]:
    """The archive's files whose names match, each under its own number so that no two are called the same."""
    found = []
    with tarfile.open(archive) as packed:
        members = sorted((m for m in packed if m.isfile() and re.search(pattern, m.name)), key=lambda m: m.name)
        for number, member in enumerate(members):
            content = packed.extractfile(member)
            assert content is not None
            path = folder / f"{number:04}_{Path(member.name).name}"
            with path.open("wb") as file:
                shutil.copyfileobj(content, file)
            found.append(path)
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().splitlines() if line.strip()]
