"""Many texts encoded side by side by Spark: rows with texts go in, rows with vectors come out, as Arrow batches.

Each Python worker of Spark loads the encoder once. Few texts are encoded in this process.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.core.workers.carried_jobs import TaskCounter
from opus_pipelines.core.workers.record_json import record_json, record_of
from opus_pipelines.language.embedding.encoder import TextEncoder, encoder_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import SparkSession


VECTOR_COLUMNS = "position int, vector array<float>"


@dataclass(frozen=True)
class EncodingSize:
    """From `many` texts on, starting two more encoders pays; a partition of Spark's has `partition` texts."""

    many: int = 2_000
    partition: int = 512


class SparkEncoder:
    """The encoder of the settings, which hands many texts to Spark. A row's last digits depend on the batch it is in,
    as everywhere (DESIGN 4).
    """

    def __init__(
        self, settings: EncoderSettings, session: "Callable[[], SparkSession]", size: EncodingSize = EncodingSize()
    ) -> None:
        self.settings, self._encoder = settings, encoder_of(settings)
        self._session, self._size = session, size

    @property
    def name(self) -> str:
        """The model as the settings name it."""
        return self._encoder.name

    @property
    def max_tokens(self) -> int:
        """Tokens that are read at once."""
        return self._encoder.max_tokens

    @property
    def dimension(self) -> int:
        """Numbers a vector; loads the model."""
        return self._encoder.dimension

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> "np.ndarray":
        """As `Encoder.encode`. Raises OpusError where Spark cannot finish."""
        if len(texts) < self._size.many:
            return self._encoder.encode(texts, progress)
        import numpy as np
        import pyarrow as pa
        from pyspark.errors import PySparkException

        size = self._size.partition
        # alike lengths a partition: little padding, and partitions of one kind; the longest first, so that no worker
        # is left with them at the end
        order = sorted(range(len(texts)), key=lambda i: (-len(texts[i]), i))
        partitions = -(-len(texts) // size)
        rows = pa.table(
            {
                "part": pa.array([place // size for place in range(len(texts))], pa.int32()),
                "position": pa.array(order, pa.int32()),
                "text": pa.array([texts[i] for i in order], pa.string()),
            }
        )
        session = self._session()
        tell = progress or (lambda done, of: None)
        encoded = (
            session.createDataFrame(rows)
            .repartitionById(partitions, "part")
            .mapInArrow(partial(_encoded, record_json(self.settings, EncoderSettings)), VECTOR_COLUMNS)
        )
        try:
            with TaskCounter(session, partitions, lambda n: tell(min(n * size, len(texts)), len(texts))):
                found = encoded.toArrow()
        except PySparkException as error:
            raise OpusError(f"{len(texts):,} passages could not be encoded by Spark: {error}") from error
        made = found.column("vector").combine_chunks()
        vectors = np.zeros((len(texts), len(made.values) // len(made)), np.float32)
        vectors[found.column("position").to_numpy()] = made.values.to_numpy().reshape(len(made), -1)
        return vectors


# --- in Spark's Python workers


@cache
def _encoder_of(settings: str) -> TextEncoder:
    return encoder_of(record_of(settings, EncoderSettings))


def _encoded(settings: str, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The vectors of a partition, encoded as one batch in the order of length, whatever order its rows arrive in."""
    import pyarrow as pa

    rows = [row for batch in batches for row in batch.to_pylist()]
    if not rows:
        return
    rows.sort(key=lambda row: (len(row["text"]), row["position"]))
    vectors = _encoder_of(settings).encode([row["text"] for row in rows])
    yield pa.RecordBatch.from_arrays(
        [
            pa.array([row["position"] for row in rows], pa.int32()),
            pa.array(list(vectors), pa.list_(pa.float32())),
        ],
        ["position", "vector"],
    )
