"""Caches vectors by the text that was encoded: each text is encoded once per model, for all snapshots and intakes."""

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opus_pipelines.core.ids import digest
from opus_pipelines.core.versions import ALGORITHM_VERSIONS
from opus_pipelines.lake.layout import slug, write_atomically
from opus_pipelines.language.embedding.encoder import TextEncoder

if TYPE_CHECKING:
    import numpy as np

# Long texts are read to their end; folders without this suffix are of versions that cut them off.
WHOLE = "-whole"
MAX_FILES = 32  # beyond it the next write merges all files into one


def adopt_vectors(other: Path, folder: Path) -> None:
    """Adds those vectors of another cache whose texts this one lacks; both have one folder for each model."""
    for model in sorted(f for f in other.glob("*") if f.is_dir()):
        known = {key for table in _tables(folder / model.name) for key in table["content_hash"].to_pylist()}
        tables = [
            t.filter(pa.array([key not in known for key in t["content_hash"].to_pylist()], pa.bool_()))
            for t in _tables(model)
        ]
        if rows := [table for table in tables if table.num_rows]:
            _add_file(folder / model.name, pa.concat_tables(rows))


def keep_vectors(folder: Path, texts: set[str]) -> int:
    """Keeps in the cache folder of a model only the vectors of these texts (their digests).

    Returns how many it removed.
    """
    files = sorted(folder.glob("*.parquet"))
    if not files:
        return 0
    table = pa.concat_tables(_tables(folder))
    kept = table.filter(pc.is_in(table["content_hash"], pa.array(sorted(texts), pa.string())))
    if kept.num_rows < table.num_rows:
        name = f"{digest(sorted(texts))}.parquet"
        write_atomically(folder / name, lambda path: pq.write_table(kept, path, compression="zstd"))
        for file in (file for file in files if file.name != name):
            file.unlink(missing_ok=True)
    return table.num_rows - kept.num_rows


def _tables(folder: Path) -> list[pa.Table]:
    return [pq.ParquetFile(file).read() for file in sorted(folder.glob("*.parquet"))]


def _add_file(folder: Path, table: pa.Table) -> None:
    write_atomically(
        folder / f"{uuid.uuid4().hex}.parquet", lambda path: pq.write_table(table, path, compression="zstd")
    )


def _suffix() -> str:
    """Returns the end of the name of a cache folder, so that vectors of another embedding version are not used."""
    version = ALGORITHM_VERSIONS["embedding"]
    return WHOLE if version == 1 else f"{WHOLE}{version}"


def tokens_of(folder: Path) -> int:
    """Returns the tokens per passage of the encoder of a cache folder, which its name states."""
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
        """The tokens of a text that are read at once."""
        return self.encoder.max_tokens

    @property
    def dimension(self) -> int:
        """The length of a vector; the model is loaded only where nothing is cached yet."""
        known = next(iter(self._known.values()), None)
        return self.encoder.dimension if known is None else len(known)

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> "np.ndarray":
        """Returns the vectors as `Encoder.encode` does; vectors of new texts are on disk when it returns."""
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
