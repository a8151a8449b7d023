"""The intakes of a chunk as they were read: a file of Arrow with a row for each, by which workers hand them on.

`name` is the name of its folder as it is shown. `intake` is its content as JSON (`intake_json`), without what
it inherits; where it could not be read, `intake` is null, and `intake_id` and `reason` tell of it. The metadata of the
schema have what all of the contract's intakes inherit, as JSON.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from opus_pipelines.intakes.catalogues.declared import Catalogue, CatalogueFile, DeclaredTask, LeftOut
from opus_pipelines.intakes.catalogues.elements import catalogue_elements
from opus_pipelines.intakes.catalogues.files import read_catalogue
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.intakes.elements import Element, contract_elements
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.stored.intake_json import elements_as_plain, elements_of, intake_json, intake_of

INTAKES = "intakes.arrow"  # the name of the file
_INHERITED = b"inherited"
_SCHEMA = pa.schema([(name, pa.string()) for name in ("name", "intake", "intake_id", "reason")])


@dataclass(frozen=True)
class Inherited:
    """What all intakes of a contract share: the elements of its documents and of its catalogue's files, and the
    catalogue.
    """

    elements: tuple[Element, ...]
    catalogue: Catalogue

    @classmethod
    def of(cls, contract: ContractFolder) -> "Inherited":
        """Reads a contract's own documents and its catalogue."""
        catalogue = read_catalogue(contract.folder)
        return cls(
            (
                *contract_elements(contract.documents, contract.settings.documents.also_read),
                *catalogue_elements(catalogue),
            ),
            catalogue,
        )


@dataclass(frozen=True)
class Unread:
    """An intake whose settings or documents could not be read, with the reason."""

    intake_id: str
    reason: str


Found = Sequence[tuple[str, Intake | Unread]]  # with the names of the folders as they are shown


def write_intakes(folder: Path, inherited: Inherited, found: Found) -> None:
    """Writes the file of a chunk into `folder`."""
    rows = [
        {"name": name, "intake_id": one.intake_id, "reason": one.reason}
        if isinstance(one, Unread)
        else {"name": name, "intake": intake_json(one)}
        for name, one in found
    ]
    schema = _SCHEMA.with_metadata({_INHERITED: _inherited_json(inherited)})
    with pa.ipc.new_file(folder / INTAKES, schema) as file:
        file.write_table(pa.Table.from_pylist(rows, schema))


def read_inherited(folder: Path) -> Inherited:
    """Returns what the intakes of the file in `folder` inherit."""
    with pa.ipc.open_file(folder / INTAKES) as file:
        stated: dict[str, Any] = json.loads(file.schema.metadata[_INHERITED])
    return Inherited(tuple(elements_of(stated["elements"])), _catalogue_of(stated["catalogue"]))


def read_intakes(folder: Path) -> Found:
    """Returns the intakes of the file in `folder`, in order."""
    with pa.ipc.open_file(folder / INTAKES) as file:
        rows = file.read_all().to_pylist()
    return [
        (row["name"], Unread(row["intake_id"], row["reason"]) if row["intake"] is None else intake_of(row["intake"]))
        for row in rows
    ]


def _inherited_json(inherited: Inherited) -> str:
    return json.dumps({"elements": elements_as_plain(inherited.elements), "catalogue": asdict(inherited.catalogue)})


def _catalogue_of(stated: dict[str, Any]) -> Catalogue:
    tasks = (
        DeclaredTask(**{**task, "inputs": tuple(task["inputs"]), "outputs": tuple(task["outputs"])})
        for task in stated["tasks"]
    )
    files = (CatalogueFile(**file) for file in stated["files"])
    return Catalogue(tuple(tasks), tuple(files), tuple(LeftOut(**one) for one in stated["left_out"]))
