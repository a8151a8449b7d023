"""The vectors of a chunk's passages: each distinct text of a run encoded once, before any graph work, and looked up
from a file of Arrow by every process.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.core.ids import digest
from opus_pipelines.language.embedding.encoder import TextEncoder

if TYPE_CHECKING:
    import numpy as np

VECTORS = "vectors.arrow"  # the name of the file
_KEY, _VECTOR = "text_digest", "vector"


def write_vectors(folder: Path, texts: Sequence[str], vectors: "np.ndarray") -> None:
    """Writes a file with float32[n, d] rows of distinct texts, a column of lists, by the hash of the text."""
    import numpy as np
    import pyarrow as pa

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
        import pyarrow as pa

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
