"""Searches unit vectors by exact inner product with FAISS, and keeps the ids of the rows."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.atomic_files import read_json_value
from opus_pipelines.lake.replaced_files import REPAIR

if TYPE_CHECKING:
    import numpy as np

INDEX_FILE, IDS_FILE = "index.faiss", "ids.json"


# The header of an IndexFlatIP in a file of FAISS: kind, dimension, vectors, two unused numbers, trained, metric, floats
_HEADER = struct.Struct("<4siqqqBiq")
_KIND, _INNER_PRODUCT = b"IxFI", 0


class VectorIndex:
    """An index of ids by the similarity of their vectors: the inner product, which is the cosine of unit vectors."""

    def __init__(self, ids: Sequence[str], index: Any) -> None:
        if len(ids) != index.ntotal:
            raise LakeError(f"the index holds {index.ntotal} vectors but {len(ids)} ids; rebuild the snapshot")
        self.ids = list(ids)
        self._index = index

    @classmethod
    def build(cls, ids: Sequence[str], vectors: "np.ndarray") -> "VectorIndex":
        """Returns an index of `vectors` (float32[n, d]); row i is the vector of ids[i]."""
        import faiss
        import numpy as np

        index = faiss.IndexFlatIP(int(vectors.shape[1]))
        index.add(np.ascontiguousarray(vectors, np.float32))
        return cls(ids, index)

    def save(self, folder: Path) -> None:
        """Writes index.faiss and ids.json into `folder`, which is created."""
        import faiss

        folder.mkdir(parents=True, exist_ok=True)
        faiss.write_index(self._index, str(folder / INDEX_FILE))
        (folder / IDS_FILE).write_text(json.dumps(self.ids) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "VectorIndex":
        """Returns the index that was saved in `folder`; raises LakeError where there is none or a damaged one."""
        import faiss

        if not (folder / INDEX_FILE).is_file() or not (folder / IDS_FILE).is_file():
            raise LakeError(f"{folder} holds no index; `opus rebuild` makes one")
        ids = read_json_value(folder / IDS_FILE)
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise LakeError(f"{folder / IDS_FILE} is no list of ids; {REPAIR}")
        if not _is_flat_index(folder / INDEX_FILE):
            raise LakeError(f"{folder / INDEX_FILE} is damaged: its header does not fit its size; {REPAIR}")
        return cls(ids, faiss.read_index(str(folder / INDEX_FILE)))

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, vectors: "np.ndarray", k: int) -> list[list[tuple[str, float]]]:
        """Returns for each row of `vectors` the k most similar (id, similarity), best first, ties by id.

        There are fewer when the index has fewer.
        """
        import numpy as np

        if not self.ids or k < 1:
            return [[] for _ in vectors]
        similarities, rows = self._index.search(np.ascontiguousarray(vectors, np.float32), min(k, len(self.ids)))
        return [
            sorted(
                ((self.ids[i], float(s)) for s, i in zip(sims, nearest, strict=True) if i >= 0),
                key=lambda hit: (-hit[1], hit[0]),
            )
            for sims, nearest in zip(similarities, rows, strict=True)
        ]


def _is_flat_index(file: Path) -> bool:
    """Tells whether the header of an index fits the size of its file.

    FAISS takes the memory that a header states before it reads, which a damaged one can make any number of gigabytes.
    """
    with file.open("rb") as handle:
        head = handle.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return False
    kind, dimension, vectors, _, _, trained, metric, floats = _HEADER.unpack(head)
    is_flat = kind == _KIND and trained == 1 and metric == _INNER_PRODUCT and dimension > 0
    return is_flat and floats == dimension * vectors and file.stat().st_size == _HEADER.size + 4 * floats
