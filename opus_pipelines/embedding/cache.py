"""Vectors kept by what was encoded: a text is encoded once per model, whichever snapshot or intake asks for it."""

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import ALGORITHM_VERSIONS
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.lake.layout import slug, write_atomically

if TYPE_CHECKING:
    import numpy as np

WHOLE = "-whole"  # long texts are read to their end: caches made before that lie in folders without it
MAX_FILES = 32  # above it the next write makes one file of all


def adopt_vectors(made: Path, folder: Path) -> None:
    """Add the vectors of another cache whose texts this one lacks. Both are folders of models."""
    for model in sorted(f for f in made.glob("*") if f.is_dir()):
        known = {key for table in _tables(folder / model.name) for key in table["content_hash"].to_pylist()}
        tables = [
            t.filter(pa.array([key not in known for key in t["content_hash"].to_pylist()], pa.bool_()))
            for t in _tables(model)
        ]
        if rows := [table for table in tables if table.num_rows]:
            _add_file(folder / model.name, pa.concat_tables(rows))


def _tables(folder: Path) -> list[pa.Table]:
    return [pq.ParquetFile(file).read() for file in sorted(folder.glob("*.parquet"))]


def _add_file(folder: Path, table: pa.Table) -> None:
    write_atomically(
        folder / f"{uuid.uuid4().hex}.parquet", lambda path: pq.write_table(table, path, compression="zstd")
    )


def _suffix() -> str:
    """The end of a cache folder's name: vectors of another version of the embedding are not used."""
    version = ALGORITHM_VERSIONS["embedding"]
    return WHOLE if version == 1 else f"{WHOLE}{version}"


def tokens_of(folder: Path) -> int:
    """The tokens a passage of the encoder whose vectors a cache's folder holds: it says so in its name."""
    return int(re.sub(rf"{WHOLE}\d*$", "", folder.name).rpartition("-")[2])


class CachedEncoder:
    """An encoder that encodes only new texts.

    The vectors are stored in `<folder>/<model, tokens>-whole/*.parquet`.
    """

    def __init__(self, encoder: TextEncoder, folder: Path) -> None:
        self.encoder = encoder
        self.folder = folder / f"{slug(encoder.name)}-{encoder.max_tokens}{_suffix()}"

    @property
    def name(self) -> str:
        """The model as the settings name it."""
        return self.encoder.name

    @property
    def max_tokens(self) -> int:
        """Tokens of a passage that are read."""
        return self.encoder.max_tokens

    @property
    def dimension(self) -> int:
        """Numbers a vector; loads the model only when nothing is cached yet."""
        known = next(iter(self._known.values()), None)
        return self.encoder.dimension if known is None else len(known)

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> "np.ndarray":
        """As `Encoder.encode`; what was new is on disk when this returns."""
        import numpy as np

        hashes = [digest(text) for text in texts]
        new = {h: text for h, text in zip(hashes, texts, strict=True) if h not in self._known}
        if new:
            self._add(dict(zip(new, self.encoder.encode(list(new.values()), progress), strict=True)))
        return np.stack([self._known[h] for h in hashes]) if hashes else np.zeros((0, self.dimension), np.float32)

    @cached_property
    def _known(self) -> "dict[str, np.ndarray]":
        known: dict[str, np.ndarray] = {}
        for table in _tables(self.folder):
            column = table["vector"].combine_chunks()
            rows = column.flatten().to_numpy().reshape(len(column), -1)
            known |= dict(zip(table["content_hash"].to_pylist(), rows, strict=True))
        return known

    def _add(self, new: "dict[str, np.ndarray]") -> None:
        self._known.update(new)
        old = sorted(self.folder.glob("*.parquet"))
        if len(old) < MAX_FILES:
            self._write(new.items())
            return
        self._write(self._known.items())
        for file in old:
            file.unlink(missing_ok=True)

    def _write(self, items: "Iterable[tuple[str, np.ndarray]]") -> None:
        import numpy as np

        rows = sorted(items, key=lambda item: item[0])
        flat = pa.array(np.concatenate([vector for _, vector in rows]), pa.float32())
        vectors = pa.FixedSizeListArray.from_arrays(flat, len(rows[0][1]))
        table = pa.table({"content_hash": [key for key, _ in rows], "vector": vectors})
        _add_file(self.folder, table)
