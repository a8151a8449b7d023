"""The vectors of a run's passages: each distinct text encoded once, before any graph work, and looked up from a file
by every process.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.core.ids import digest
from opus_pipelines.embedding.encoder import TextEncoder

if TYPE_CHECKING:
    import numpy as np

_KEYS, _ROWS = "keys.npy", "rows.npy"


def write_vectors(folder: Path, texts: Sequence[str], vectors: "np.ndarray") -> None:
    """float32[n, d] rows of distinct texts, by hash."""
    import numpy as np

    keys = np.array([digest(text) for text in texts], dtype="S")
    order = np.argsort(keys)
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / _KEYS, keys[order])
    np.save(folder / _ROWS, vectors[order])


class StoredVectors:
    """A TextEncoder that knows the vectors written to a folder; a text that is not among them goes to `other`, and is
    counted.
    """

    def __init__(self, folder: Path, other: TextEncoder) -> None:
        import numpy as np

        self._keys = np.load(folder / _KEYS)
        self._rows = np.load(folder / _ROWS, mmap_mode="r")
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
