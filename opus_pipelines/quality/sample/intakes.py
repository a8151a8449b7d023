"""Reads the sample's contracts and intakes: `contracts/*.toml` in this package hold all their files as text."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from opus_pipelines.quality.sample.sources import SOURCES, Contract


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
