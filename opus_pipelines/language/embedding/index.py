"""Searches unit vectors by inner product with FAISS, and keeps the ids of the rows; the rows of a table likewise.

The search is exact up to `EXACT_UP_TO` vectors. Beyond, vectors lie in lists by their nearest of many centres (FAISS's
IndexIVFFlat; Jégou, Douze and Schmid 2011), and a search reads as many lists as a measured recall needs.
"""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import LakeError
from opus_pipelines.lake.atomic_files import read_json, read_json_value
from opus_pipelines.lake.file_lists import REPAIR, hash_of

if TYPE_CHECKING:
    import numpy as np

INDEX_FILE, IDS_FILE = "index.faiss", "ids.json"
LISTS_FILE = "lists.json"  # only beside an index of lists: hash of the index, and how many lists a search reads
EXACT_UP_TO = 100_000  # vectors; an exact search of them takes some milliseconds for each query
NEEDED_RECALL = 0.995  # of the ten nearest, from which no more lists are read
PROBES = 256  # vectors on which that is measured
_TRAINED_ON = 64  # vectors for each centre, as FAISS advises at least 39


# The header of an IndexFlatIP in a file of FAISS: kind, dimension, vectors, two unused numbers, trained, metric, floats
_HEADER = struct.Struct("<4siqqqBiq")
_KIND, _INNER_PRODUCT = b"IxFI", 0


class Selection:
    """What a search looks among: `mask` [rows of a table], and how many of these rows each entry of an index has."""

    def __init__(self, mask: "np.ndarray", counts: "np.ndarray") -> None:
        import faiss
        import numpy as np

        self.mask, self.counts, self.size = mask, counts, int((counts > 0).sum())
        self._bits = np.packbits(counts > 0, bitorder="little")  # FAISS reads them where they lie
        self.selector = faiss.IDSelectorBitmap(len(self._bits), faiss.swig_ptr(self._bits))


class VectorIndex:
    """An index of ids by the similarity of their vectors: the inner product, which is the cosine of unit vectors."""

    def __init__(self, ids: Sequence[str], index: Any) -> None:
        if len(ids) != index.ntotal:
            raise LakeError(f"the index holds {index.ntotal} vectors but {len(ids)} ids; rebuild the snapshot")
        self.ids = list(ids)
        self._index = index

    @classmethod
    def build(cls, ids: Sequence[str], vectors: "np.ndarray", exact_up_to: int | None = EXACT_UP_TO) -> "VectorIndex":
        """Returns an index of `vectors` (float32[n, d]); row i is the vector of ids[i].

        `exact_up_to`: the number of vectors above which the index is one of lists; None for an exact one of any size.
        """
        import faiss
        import numpy as np

        rows = np.ascontiguousarray(vectors, np.float32)
        index = faiss.IndexFlatIP(int(rows.shape[1]))
        index.add(rows)
        return cls(ids, index if exact_up_to is None or len(rows) <= exact_up_to else _by_lists(rows, index))

    @property
    def is_exact(self) -> bool:
        """Tells whether a search compares a query with every vector."""
        return not hasattr(self._index, "nprobe")

    def save(self, folder: Path) -> None:
        """Writes index.faiss and ids.json into `folder`, which is created."""
        import faiss

        folder.mkdir(parents=True, exist_ok=True)
        faiss.write_index(self._index, str(folder / INDEX_FILE))
        (folder / IDS_FILE).write_text(json.dumps(self.ids) + "\n", "utf-8")
        if not self.is_exact:
            lists = {"sha256": hash_of(folder / INDEX_FILE), "lists_read": self._index.nprobe}
            (folder / LISTS_FILE).write_text(json.dumps(lists) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path) -> "VectorIndex":
        """Returns the index that was saved in `folder`; raises LakeError where there is none or a damaged one."""
        import faiss

        if not (folder / INDEX_FILE).is_file() or not (folder / IDS_FILE).is_file():
            raise LakeError(f"{folder} holds no index; `opus rebuild` makes one")
        ids = read_json_value(folder / IDS_FILE)
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise LakeError(f"{folder / IDS_FILE} is no list of ids; {REPAIR}")
        if (folder / LISTS_FILE).exists():
            lists = read_json(folder / LISTS_FILE) or {}
            if lists.get("sha256") != hash_of(folder / INDEX_FILE):
                raise LakeError(f"{folder / INDEX_FILE} is damaged: it has not the hash in {LISTS_FILE}; {REPAIR}")
        elif not _is_flat_index(folder / INDEX_FILE):
            raise LakeError(f"{folder / INDEX_FILE} is damaged: its header does not fit its size; {REPAIR}")
        return cls(ids, faiss.read_index(str(folder / INDEX_FILE)))

    def __len__(self) -> int:
        return len(self.ids)

    def nearest(self, vector: "np.ndarray", k: int, among: Selection) -> "tuple[np.ndarray, np.ndarray]":
        """Returns the rows and similarities of the k most similar to one vector [d] among those selected, best first.

        Where few are selected, the nearest lie further off, and more lists are read: all of them up to `EXACT_UP_TO`.
        """
        import faiss
        import numpy as np

        k = min(k, among.size)
        if k < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        options = dict[str, Any](sel=among.selector)
        kind: Any = faiss.SearchParameters
        if not self.is_exact:
            lists, wanted = self._index.nlist, self._index.nprobe * len(self) // among.size
            options["nprobe"] = lists if among.size <= EXACT_UP_TO else min(lists, wanted)
            kind = faiss.SearchParametersIVF
        parameters = kind(**options)
        similarities, rows = self._index.search(np.ascontiguousarray(vector[None], np.float32), k, params=parameters)
        hits = rows[0] >= 0
        return rows[0][hits], similarities[0][hits]

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


def _by_lists(vectors: "np.ndarray", exact: Any) -> Any:
    """Returns an index of lists that reads as many of them as recall needs, or `exact` where a quarter is not enough.

    The centres are found from evenly spaced vectors with FAISS's fixed seed. Recall is measured on other vectors than
    those of the check `recall_at_10_against_exact_search`.
    """
    import faiss
    import numpy as np

    size, dimension = vectors.shape
    lists = max(1, int(4 * size**0.5))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dimension), dimension, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.max_points_per_centroid = _TRAINED_ON
    index.train(vectors[:: max(1, size // (lists * _TRAINED_ON))])
    index.add(vectors)
    step = max(1, size // PROBES)
    queries = vectors[step // 2 :: step][:PROBES]
    nearest, _ = exact.search(queries, min(10, size))
    index.nprobe = 1
    while index.nprobe <= lists // 4:
        found, _ = index.search(queries, min(10, size))
        if np.mean(found >= nearest[:, -1:] - 1e-6) >= NEEDED_RECALL:
            return index
        index.nprobe *= 2
    return exact


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


def distinct(vectors: "np.ndarray") -> "tuple[np.ndarray, np.ndarray]":
    """Returns the places of the distinct rows of float32[n, d], and for every row the number of its distinct one."""
    import numpy as np

    rows = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.dtype.itemsize * vectors.shape[1])))
    _, first, entries = np.unique(rows.ravel(), return_index=True, return_inverse=True)
    return first, entries


class RowSearch:
    """Finds the rows of a table by their vectors; rows that have the same vector are one entry of the index.

    Many cases of a history are requested in the same words.
    """

    def __init__(self, vectors: "np.ndarray", rows: "np.ndarray", size: int, index: VectorIndex | None = None) -> None:
        """Take the vectors float32[n, d] of n `rows` of a table of `size` rows; `index`: one of their distinct ones."""
        import numpy as np

        first, entries = distinct(vectors)
        self.has_vector = np.zeros(size, bool)
        self.has_vector[rows] = True
        self._rows = np.asarray(rows)[np.argsort(entries, kind="stable")]
        self._begins = np.array([0, *np.cumsum(np.bincount(entries, minlength=len(first)))])
        self._index = index or VectorIndex.build([str(n) for n in range(len(first))], vectors[first], exact_up_to=None)
        if len(self._index) != len(first):
            raise LakeError(f"the index holds {len(self._index)} vectors of {len(first)}; rebuild the snapshot")

    def among(self, mask: "np.ndarray") -> Selection:
        """Returns a selection of the rows with a vector, for boolean [rows of the table]."""
        import numpy as np

        return Selection(mask, np.add.reduceat(mask[self._rows], self._begins[:-1], dtype=np.int64))

    def nearest(self, vector: "np.ndarray", top: int, among: Selection) -> "tuple[np.ndarray, np.ndarray]":
        """Returns the `top` most similar rows and cosines (six digits), best first, then by row.

        All rows as similar as the last one are there, too. There are fewer when fewer are selected.
        """
        import numpy as np

        k = top + 1
        while True:
            entries, similarities = self._index.nearest(vector, k, among)
            cosines = similarities.round(6)
            reached = np.flatnonzero(np.cumsum(among.counts[entries]) >= top)
            last = cosines[reached[0]] if len(reached) else -np.inf
            if k >= among.size or (len(cosines) and cosines[-1] < last):
                break
            k *= 4
        found = [self._rows[self._begins[e] : self._begins[e + 1]] for e in entries[cosines >= last].tolist()]
        rows = np.concatenate([np.zeros(0, np.int64), *found])
        values = np.repeat(cosines[cosines >= last], [len(f) for f in found])
        rows, values = rows[among.mask[rows]], values[among.mask[rows]]
        order = np.lexsort((rows, -values))
        return rows[order], values[order]
