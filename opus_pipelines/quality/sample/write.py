"""Writes the sample: history of seven sources, intakes of ten contracts, settings, and the truth.

The same seed gives the same bytes.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.quality.sample import history_files
from opus_pipelines.quality.sample.cases import Case, draw_cases
from opus_pipelines.quality.sample.sources import HARDER, SOURCES, ContractFiles, Source, all_contracts, by_mail
from opus_pipelines.quality.sample.truth import truth

WRITERS: dict[str, Callable[[Source, list[Case]], bytes]] = {
    "brightwater_expenses": history_files.expenses,
    "brightwater_invoices": history_files.ledger,
    "castellan_household": history_files.jsonl_claims,
    "eastmere_permits": history_files.xes_permits,
    "harbourline_claims": history_files.xes_claims,
    "meridian_coding": history_files.xes_visits,
    "nordhafen_transport": history_files.jsonl_claims,
}
SETTINGS = """\
# Settings of the sample. Every key is optional; docs/reference/settings.md lists them all.
[paths]
lake = "lake"
history = "history"
intakes = "intakes"

[cost.usd_per_hour]  # for tasks whose cost and time no source tells
human = 35.0
code = 0.6
model = 5.0
"""


@dataclass(frozen=True)
class SampleSummary:
    """What was written, for a person to read."""

    directory: Path
    history: Path
    intakes_folder: Path
    truth: Path
    clients: int
    industries: int
    contracts: int
    sources: int
    cases: int
    task_implementations: int
    intakes: int
    files: int


def write_sample(directory: Path, seed: int = 0, incomplete: bool = False, harder: bool = False) -> SampleSummary:
    """Writes history/, intakes/, opus.toml and truth.json into `directory`, over files of the same names.

    `incomplete`: whether incomplete and mixed intakes are written, too, each contract's in a contract of their own.
    `harder`: whether the contracts of `HARDER` are written, too; the files of the others do not depend on it.
    Raises InputError where that is not possible.
    """
    with _writing_to(directory):
        directory.mkdir(parents=True, exist_ok=True)
    every = (*SOURCES, *HARDER) if harder else SOURCES
    sources = [source for source in every if source.has_history]
    contracts = all_contracts(every)
    if incomplete:
        contracts += [by_mail(files) for files in contracts]
    drawn = {s.name: _cases(seed, s) for s in sources}
    told = truth(seed, every) | {"intakes": _intakes(contracts)}
    told_json = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    contents = {"opus.toml": SETTINGS.encode(), "truth.json": told_json.encode()}
    for source in sources:
        contents[f"history/{source.name}/source.toml"] = source.settings.encode()
        contents[f"history/{source.name}/{source.file}"] = _packed(
            source.file, WRITERS[source.name](source, drawn[source.name])
        )
    for files in contracts:
        contents |= {f"intakes/{files.folder}/{path}": text.encode() for path, text in files.texts.items()}
    with _writing_to(directory):
        _write(directory, contents)
    cases = [case for found in drawn.values() for case in found]
    return SampleSummary(
        directory,
        directory / "history",
        directory / "intakes",
        directory / "truth.json",
        clients=len({c.client for s in every for c in s.contracts}),
        industries=len({s.industry.name for s in every}),
        contracts=len(contracts),
        sources=len(sources),
        cases=len(cases),
        task_implementations=sum(len(c.performed) for c in cases),
        intakes=sum(len(files.kinds) for files in contracts),
        files=len(contents),
    )


def _cases(seed: int, source: Source) -> list[Case]:
    """Returns the source's cases in order of arrival."""
    cases = [case for c in source.contracts for k in c.kinds for case in draw_cases(seed, source.industry, c.name, k)]
    return sorted(cases, key=lambda case: case.performed[0].ready_ms)


def _intakes(contracts: list[ContractFiles]) -> list[dict[str, object]]:
    return [
        {
            "client": f.contract.client,
            "contract": f.contract.name,
            "intake": name,
            "kind": kinds[0],
            "kinds": kinds,
            "path": f"intakes/{f.folder}/{name}",
        }
        for f in contracts
        for name, kinds in f.kinds.items()
    ]


def _packed(name: str, data: bytes) -> bytes:
    """Compresses the bytes where the name says so, without name and time in the header.

    The same input so gives the same bytes.
    """
    return gzip.compress(data, 6, mtime=0) if name.endswith(".gz") else data


def _write(directory: Path, contents: dict[str, bytes]) -> None:
    for name, data in contents.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@contextmanager
def _writing_to(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"the sample cannot be written to {directory}: {reason}; name a folder that can be written to"
        ) from None
