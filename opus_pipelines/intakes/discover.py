"""Which contracts and intakes lie in the intakes folder. Names in paths are data: nothing here leaves its folder."""

import unicodedata
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.core.ids import digest, file_hash, make_id
from opus_pipelines.decisions.record import NO_DECISIONS, Decisions
from opus_pipelines.intakes.contract_settings import ContractSettings, load_contract
from opus_pipelines.intakes.elements import is_hidden, shown_name
from opus_pipelines.lake.layout import slug

DOCUMENTS = "documents"
_NO_NAME = {"Cc", "Cs"}  # control characters, and bytes of a folder's name that are no UTF-8


@dataclass(frozen=True)
class ContractFolder:
    """One contract: its names as written, where it lies, its settings, and its intakes' folders in order.

    `problem`: why it cannot be worked on, in words for a person; its names are then its folders'. `decisions`: what
    people decided on its workflows, which the lake keeps (`decided.contracts`).
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
        """What every intake inherits."""
        return self.folder / DOCUMENTS

    def intake_id(self, intake: Path) -> str:
        """Hash of client, contract and folder."""
        return make_id("k", self.client, self.contract, intake.name)

    def fingerprint(self) -> str:
        """Hash of path, size and modification time of every file, and of the decisions: cheap enough to be asked every
        minute.
        """
        files = self._files()
        facts = [(p.relative_to(self.folder).as_posix(), p.stat()) for p in files]
        return digest(
            [(path, found.st_size, found.st_mtime_ns) for path, found in facts], *self.decisions.versions[-1:]
        )

    @cached_property
    def content(self) -> list[tuple[str, str]]:
        """Every file of the contract with its hash, in order: what a result is made from. Hashed once, when first
        asked for.
        """
        files = self._files()
        return [(p.relative_to(self.folder).as_posix(), file_hash(p)) for p in files]

    def _files(self) -> list[Path]:
        return sorted(p for p in self.folder.rglob("*") if p.is_file() and not is_hidden(p.relative_to(self.folder)))


def discover(intakes: Path) -> list[ContractFolder]:
    """Every contract folder below `intakes`, by client and contract. One that cannot be worked on says why and costs
    only itself.
    """
    if not intakes.is_dir():
        raise InputError(f"{intakes} is no folder; say where the intakes lie with --intakes DIR or OPUS_INTAKES")
    found: dict[str, ContractFolder] = {}
    for client in _folders(intakes):
        for folder in _folders(client):
            made = _contract(client.name, folder)
            if twin := found.get(made.key):
                problem = f"{folder} and {twin.folder} are both contract {made.contract!r} of client {made.client!r}; rename one"
                found[made.key] = replace(twin, problem=problem)
            else:
                found[made.key] = made
    return [found[key] for key in sorted(found)]


def _contract(client: str, folder: Path) -> ContractFolder:
    intakes = tuple(f for f in _folders(folder) if f.name != DOCUMENTS)
    try:
        settings = load_contract(folder)
        names = settings.client or client, settings.contract or folder.name
        for name in names:
            if not name.strip() or name in {".", ".."} or any(unicodedata.category(c) in _NO_NAME for c in name):
                where = shown_name(f"{folder / 'contract.toml'}")
                raise InputError(
                    f"{where}: {name!r} is no name for a client or contract; rename the folder, or name it there"
                )
    except OpusError as error:
        return ContractFolder(
            shown_name(client), shown_name(folder.name), folder, ContractSettings(), intakes, str(error)
        )
    return ContractFolder(*names, folder, settings, intakes)


def _folders(folder: Path) -> list[Path]:
    root = folder.resolve()
    return sorted(
        p for p in folder.iterdir() if p.is_dir() and not is_hidden(Path(p.name)) and p.resolve().parent == root
    )
