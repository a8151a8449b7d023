"""Keeps intakes as they were read, and the vectors of their passages, in files that workers on any machine get.

The intakes of a chunk are a file of Arrow with a row for each. `name` is the name of its folder as it is shown.
`intake` is its content as JSON, without what it inherits; where it could not be read, `intake` is null, and `intake_id`
and `reason` tell of it. The metadata of the schema have what all of the contract's intakes inherit, as JSON.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from opus_pipelines.core.ids import digest
from opus_pipelines.intakes.catalogues.entries import (
    Catalogue,
    CatalogueFile,
    DeclaredTask,
    LeftOut,
    catalogue_elements,
)
from opus_pipelines.intakes.catalogues.files import read_catalogue
from opus_pipelines.intakes.documents.document import Transcribe
from opus_pipelines.intakes.elements import Element, contract_elements
from opus_pipelines.intakes.intake import ContractFolder, Intake
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.workflow.constraints import Constraints

if TYPE_CHECKING:
    import numpy as np


_BY_NAME = {field.name for field in fields(Intake)} - {"elements", "received_at", "constraints"}


def intake_json(intake: Intake) -> str:
    """Returns an intake as JSON, its time as ISO 8601. A lone surrogate in a text stays what it is."""
    received_at = intake.received_at
    return json.dumps(
        {
            **{name: getattr(intake, name) for name in sorted(_BY_NAME)},
            "elements": elements_as_plain(intake.elements),
            "received_at": received_at.isoformat() if received_at else None,
            "constraints": intake.constraints.model_dump(mode="json", exclude_unset=True),
        }
    )


def intake_of(text: str) -> Intake:
    """Returns the intake that `intake_json` wrote."""
    stated: dict[str, Any] = json.loads(text)
    received_at = stated["received_at"]
    return Intake(
        **{name: stated[name] for name in _BY_NAME},
        elements=elements_of(stated["elements"]),
        received_at=datetime.fromisoformat(received_at) if received_at else None,
        constraints=Constraints.model_validate(stated["constraints"]),
    )


def elements_as_plain(elements: Sequence[Element]) -> list[dict[str, Any]]:
    """Returns elements as objects of JSON."""
    return [asdict(element) for element in elements]


def elements_of(stated: Sequence[dict[str, Any]]) -> list[Element]:
    """Returns the elements that `elements_as_plain` wrote."""
    return [Element(**{**one, "places": tuple((line, place) for line, place in one["places"])}) for one in stated]


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
    def of(cls, contract: ContractFolder, transcribe: Transcribe | None = None) -> "Inherited":
        """Reads a contract's own documents and its catalogue; `transcribe` writes recordings down."""
        catalogue = read_catalogue(contract.folder)
        return cls(
            (
                *contract_elements(contract.documents, contract.settings.documents.also_read, transcribe),
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


VECTORS = "vectors.arrow"  # the name of the file
_KEY, _VECTOR = "text_digest", "vector"


def write_vectors(folder: Path, texts: Sequence[str], vectors: "np.ndarray") -> None:
    """Writes a file with float32[n, d] rows of distinct texts, a column of lists, by the hash of the text."""
    import numpy as np

    keys = [digest(text) for text in texts]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rows = np.ascontiguousarray(vectors[order], np.float32)
    table = pa.table(
        {
            _KEY: pa.array([keys[i] for i in order], pa.string()),
            _VECTOR: pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), vectors.shape[1]),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    with pa.ipc.new_file(folder / VECTORS, table.schema) as file:
        file.write_table(table)


class StoredVectors:
    """A TextEncoder that knows the vectors of the file in a folder; a text that is not among them goes to `other`, and
    is counted.
    """

    def __init__(self, folder: Path, other: TextEncoder) -> None:
        import numpy as np

        table = pa.ipc.open_file(pa.memory_map(str(folder / VECTORS))).read_all().combine_chunks()
        self._keys = np.array(table[_KEY].to_pylist(), dtype="S")
        vectors = table[_VECTOR]
        rows = vectors.chunk(0).flatten().to_numpy() if len(vectors) else np.zeros(0, np.float32)
        self._rows = rows.reshape(-1, vectors.type.list_size)
        self._other = other
        self.missed = 0

    @property
    def name(self) -> str:
        """The model as the settings name it."""
        return self._other.name

    @property
    def max_tokens(self) -> int:
        """Tokens of a passage that are read."""
        return self._other.max_tokens

    @property
    def dimension(self) -> int:
        """Numbers a vector."""
        return self._rows.shape[1] if len(self._rows) else self._other.dimension

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> "np.ndarray":
        """As `Encoder.encode`."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        keys = np.array([digest(text) for text in texts], dtype=self._keys.dtype if len(self._keys) else "S")
        places = np.searchsorted(self._keys, keys)
        known = np.zeros(len(texts), bool)
        inside = places < len(self._keys)
        known[inside] = self._keys[places[inside]] == keys[inside]
        found = np.zeros((len(texts), self.dimension), np.float32)
        found[known] = self._rows[places[known]]
        missing = np.flatnonzero(~known).tolist()
        if missing:
            self.missed += len(missing)
            found[missing] = self._other.encode([texts[i] for i in missing], progress)
        return found
