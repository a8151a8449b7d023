"""Finds the contracts and intakes in the intakes folder, and reads one intake for generation.

Finds the contracts and intakes in the intakes folder.

Names in paths are data; a link out of the folder is not followed.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest, file_hash, make_id
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.settings_files import stated_toml
from opus_pipelines.intakes.contract_settings import ContractSettings, load_contract, load_intake
from opus_pipelines.intakes.decisions.record import NO_DECISIONS, Decisions
from opus_pipelines.intakes.documents.document import Transcribe
from opus_pipelines.intakes.elements import (
    Element,
    below,
    contract_elements,
    is_hidden,
    missing,
    read_elements,
    shown_name,
)
from opus_pipelines.lake.layout import slug
from opus_pipelines.workflow.constraints import Constraints, merged

DOCUMENTS = "documents"
FLOWS = "flows"  # utterances that flows are written for (`flows.batches`); it is no intake
_NO_NAME = {"Cc", "Cs"}  # control characters, and bytes of a folder's name that are no UTF-8


@dataclass(frozen=True)
class ContractFolder:
    """One contract: its names as written, its folder, its settings, and the folders of its intakes in order.

    `problem`: why it cannot be used, in words for a person; its names are those that its settings state all the same,
    else those of its folders. `decisions`: the decisions of people on its workflows, which the lake keeps
    (`generation.bulk.run`).
    """

    client: str
    contract: str
    folder: Path
    settings: ContractSettings
    intakes: tuple[Path, ...]
    problem: str | None = None
    decisions: Decisions = NO_DECISIONS

    @property
    def key(self) -> str:
        """The partition key: `client_key__contract_key`."""
        return f"{slug(self.client)}__{slug(self.contract)}"

    @property
    def documents(self) -> Path:
        """The folder of the documents that every intake inherits."""
        return self.folder / DOCUMENTS

    @property
    def flows(self) -> Path:
        """The folder of the utterances that flows are written for."""
        return self.folder / FLOWS

    def intake_id(self, intake: Path) -> str:
        """Returns the hash of client, contract and the intake's folder name."""
        return make_id("k", self.client, self.contract, intake.name)

    def fingerprint(self) -> str:
        """Returns a hash of path, size and modification time of every file, and of the latest decision.

        It reads no file, so a sensor can compare it every minute.
        """
        files = self._files()
        facts = [(p.relative_to(self.folder).as_posix(), p.stat()) for p in files]
        return digest([(path, stat.st_size, stat.st_mtime_ns) for path, stat in facts], *self.decisions.versions[-1:])

    @cached_property
    def content(self) -> list[tuple[str, str]]:
        """The path and content hash of every file of the contract, in order. It is computed once."""
        files = self._files()
        return [(p.relative_to(self.folder).as_posix(), file_hash(p)) for p in files]

    def _files(self) -> list[Path]:
        """The files that the workflows depend on; those of the folder of flows are no part of them."""
        found = below(self.folder)[0]
        return [path for path in found if self.flows not in path.parents and _is_file(path)]


def discover(intakes: Path) -> list[ContractFolder]:
    """Returns every contract folder below `intakes`, by client and contract.

    A contract that cannot be used has its `problem` set, and does not stop the others. Raises InputError where
    `intakes` is no folder.
    """
    if not intakes.is_dir():
        raise InputError(f"{intakes} is no folder; say where the intakes lie with --intakes DIR or OPUS_INTAKES")
    found = [_contract(client.name, folder) for client in _folders(intakes) for folder in _folders(client)]
    contracts: dict[str, ContractFolder] = {}
    for contract in sorted(found, key=lambda one: one.problem is not None):
        if contract.problem is not None and contract.key in contracts:  # a broken copy takes no name from a sound one
            contract = _by_its_folders(contract)
        if other := contracts.get(contract.key):
            name = f"contract {contract.contract!r} of client {contract.client!r}"
            problem = shown_name(f"{contract.folder} and {other.folder} are both {name}; rename one")
            contracts[contract.key] = replace(other, problem=problem)
        else:
            contracts[contract.key] = contract
    return [contracts[key] for key in sorted(contracts)]


def _contract(client: str, folder: Path) -> ContractFolder:
    intakes = tuple(f for f in _folders(folder) if f.name not in (DOCUMENTS, FLOWS))
    try:
        settings = load_contract(folder)
        names = _named(folder, settings.client or client, settings.contract or folder.name)
    except OpusError as error:
        broken = ContractFolder(client, folder.name, folder, ContractSettings(), intakes, shown_name(str(error)))
        stated = _stated_names(folder)
        return _by_its_folders(broken) if stated is None else replace(broken, client=stated[0], contract=stated[1])
    return ContractFolder(*names, folder, settings, intakes)


def _by_its_folders(contract: ContractFolder) -> ContractFolder:
    return replace(contract, client=shown_name(contract.folder.parent.name), contract=shown_name(contract.folder.name))


def _named(folder: Path, client: str, contract: str) -> tuple[str, str]:
    """Returns both names. Raises InputError for one that cannot be a name."""
    for name in (client, contract):
        if not name.strip() or name in {".", ".."} or any(unicodedata.category(c) in _NO_NAME for c in name):
            where = shown_name(f"{folder / 'contract.toml'}")
            raise InputError(
                f"{where}: {name!r} is no name for a client or contract; rename the folder, or name it there"
            )
    return client, contract


def _stated_names(folder: Path) -> tuple[str, str] | None:
    """Returns the names that refused settings state, so that a wrong key does not give a contract another name.

    None where the file states none that can be read.
    """
    try:
        stated = stated_toml(folder / "contract.toml", folder) or {}
        names = [stated.get("client", folder.parent.name), stated.get("contract", folder.name)]
        return _named(folder, *names) if all(isinstance(name, str) for name in names) else None
    except OpusError:  # the problem of the contract says it
        return None


def _folders(folder: Path) -> list[Path]:
    root = folder.resolve()
    return sorted(
        p for p in folder.iterdir() if p.is_dir() and not is_hidden(Path(p.name)) and p.resolve().parent == root
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a path that is too long, for one: reading the documents names it
        return False


@dataclass(frozen=True)
class Intake:
    """The content of one intake.

    `gain_basis` is observed where the contract or the intake states the gain, prior where the settings do, and None
    where nobody does.
    """

    intake_id: str
    folder: str
    title: str | None
    elements: Sequence[Element]
    industry: str | None = None
    client: str | None = None
    contract: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    received_at: datetime | None = None
    constraints: Constraints = field(default_factory=Constraints)
    answers: Mapping[str, str] = field(default_factory=dict)
    gain_usd: float | None = None
    gain_basis: str | None = None

    @property
    def content_hash(self) -> str:
        """The hash of the role, name and content of every document."""
        return digest([[e.role, e.name, e.sha256] for e in self.elements])

    @property
    def refusal(self) -> str | None:
        """What to ask the client for, or None where the intake can be worked on."""
        reason = missing(list(self.elements))
        unread = [
            f"{e.role}/{e.name}: {e.left_out}" for e in self.elements if e.left_out and not (e.text or "").strip()
        ]
        return f"{reason} (not read: {'; '.join(unread)})" if reason and unread else reason


def read_intake(
    contract: ContractFolder,
    folder: Path,
    settings: Settings,
    inherited: Sequence[Element] | None = None,
    transcribe: Transcribe | None = None,
) -> Intake:
    """Reads the intake in `folder`.

    `inherited`: the contract's documents where they are already read (`contract_elements`), so that many intakes share
    them. Raises SettingsError or InputError where its settings have a defect.
    """
    own = load_intake(folder)
    shared = contract.settings.documents
    stated = own.gain_usd if own.gain_usd is not None else contract.settings.gain_usd
    default = settings.reward.default_gain_usd
    return Intake(
        intake_id=contract.intake_id(folder),
        folder=shown_name(folder.name),
        title=own.title,
        elements=read_elements(
            folder,
            contract_elements(contract.documents, shared.also_read, transcribe) if inherited is None else inherited,
            also_read=(own.documents or shared).also_read,
            transcribe=transcribe,
        ),
        industry=own.industry or contract.settings.industry,
        client=contract.client,
        contract=contract.contract,
        attributes={name: str(value) for name, value in own.attributes.items()},
        received_at=own.received_at,
        constraints=merged(contract.settings.constraints, own.constraints),
        answers={**contract.settings.answers, **own.answers},
        gain_usd=default if stated is None else stated,
        gain_basis="observed" if stated is not None else "prior" if default is not None else None,
    )
