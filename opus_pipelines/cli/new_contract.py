"""Writes a new contract's folder, contract.toml and an example intake, from a person's answers."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings_files import toml_quoted
from opus_pipelines.intakes.contract_settings import load_contract, load_intake

EXAMPLE = "example"


@dataclass(frozen=True)
class NewContract:
    """The names of a contract and an example of its intakes.

    `gain_usd`: the worth of a right output in dollars, or None where it is unknown.
    """

    client: str
    contract: str
    request: str
    industry: str | None = None
    gain_usd: float | None = None
    output: str | None = None


def write_contract(intakes: Path, new: NewContract) -> Path:
    """Writes client/contract below `intakes` and returns it.

    Raises InputError where it is there already, or where a name cannot be a folder's.
    """
    folder = intakes / _folder_name(new.client) / _folder_name(new.contract)
    if folder.exists():
        raise InputError(f"{folder} is there already; edit its contract.toml, or name another contract")
    (folder / EXAMPLE / "input").mkdir(parents=True)
    try:
        (folder / EXAMPLE / "input" / "request.md").write_text(new.request.strip() + "\n", "utf-8")
        if new.output:
            (folder / EXAMPLE / "output").mkdir()
            (folder / EXAMPLE / "output" / "output.md").write_text(new.output.strip() + "\n", "utf-8")
        (folder / EXAMPLE / "intake.toml").write_text(f"title = {toml_quoted(_title(new.request))}\n", "utf-8")
        (folder / "contract.toml").write_text(_text(folder, new), "utf-8")
        load_contract(folder)
        load_intake(folder / EXAMPLE)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return folder


def _text(folder: Path, new: NewContract) -> str:
    """Returns contract.toml, with optional keys as comments."""
    lines = []
    if folder.parent.name != new.client:
        lines.append(f"client = {toml_quoted(new.client)}")
    if folder.name != new.contract:
        lines.append(f"contract = {toml_quoted(new.contract)}")
    lines.append(
        f"industry = {toml_quoted(new.industry)}"
        if new.industry
        else '# industry = "..."  # as in source.toml of the history'
    )
    lines.append(
        f"gain_usd = {new.gain_usd:g}"
        if new.gain_usd is not None
        else "# gain_usd = 100.0  # what a right output is worth"
    )
    lines += [
        "",
        "# [constraints]  # each is optional",
        "# max_cost_usd = 50.0",
        "# max_duration_hours = 8.0  # working time, not lead time",
        '# must_contain = ["..."]',
        "",
        "# Procedures that every intake follows go into documents/; an intake is a folder beside example/ with",
        "# input/ (the request) and, where known, output/ (what must come out) and process/ (how it is to be done).",
    ]
    return "\n".join(lines) + "\n"


def _folder_name(name: str) -> str:
    plain = re.sub(r"[^\w.-]+", "-", name.strip()).strip("-.")
    if not plain:
        raise InputError(f"{name!r} is no name for a client or contract: it has no letters")
    return plain


def _title(request: str) -> str:
    first = " ".join(request.split())
    return first if len(first) <= 80 else first[:77] + "..."
