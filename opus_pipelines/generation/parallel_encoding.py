"""Many texts encoded side by side by Spark, the encoder loaded once per worker; few are encoded where one stands."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.embedding.encoder import TextEncoder, encoder_of
from opus_pipelines.workers.jobs import Report
from opus_pipelines.workers.spark_executor import on_spark

if TYPE_CHECKING:
    import numpy as np
    from pyspark.sql import SparkSession

MANY = 2_000  # texts from which starting two more encoders pays
TEXTS_A_JOB = 512


@dataclass(frozen=True)
class EncodingSetup:
    """The encoder that a worker process loads, once."""

    settings: EncoderSettings

    @contextmanager
    def open(self) -> Iterator[TextEncoder]:
        """The encoder."""
        yield encoder_of(self.settings)


@dataclass(frozen=True, repr=False)
class Encoding:
    """Texts whose vectors, float32[n, d], go to the file `into`."""

    texts: tuple[str, ...]
    into: Path

    def run(self, encoder: TextEncoder, _report: Report) -> None:
        """Write the vectors."""
        import numpy as np

        np.save(self.into, encoder.encode(self.texts))

    def __repr__(self) -> str:
        return f"the encoding of {len(self.texts)} passages"


class SparkEncoder:
    """The encoder of the settings, which hands many texts to Spark. A row's last digits depend on the batch it is in,
    as everywhere (DESIGN 4).
    """

    def __init__(self, settings: EncoderSettings, session: "Callable[[], SparkSession]", scratch: Path) -> None:
        self.settings, self._encoder = settings, encoder_of(settings)
        self._session, self._scratch, self._calls = session, scratch, itertools.count()

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
        """As `Encoder.encode`."""
        if len(texts) < MANY:
            return self._encoder.encode(texts, progress)
        import numpy as np

        order = sorted(
            range(len(texts)), key=lambda i: (len(texts[i]), i)
        )  # alike lengths a job: little padding, and jobs of one kind
        parts = [order[start : start + TEXTS_A_JOB] for start in range(0, len(order), TEXTS_A_JOB)]
        parts.reverse()  # the longest first, so that no worker is left with them at the end
        folder = self._scratch / str(next(self._calls))
        rows = folder / "rows"
        rows.mkdir(parents=True)
        jobs = [Encoding(tuple(texts[i] for i in part), rows / f"{number}.npy") for number, part in enumerate(parts)]
        tell = progress or (lambda done, of: None)
        on_spark(
            self._session(),
            EncodingSetup(self.settings),
            jobs,
            folder / "jobs",
            lambda n: tell(n * TEXTS_A_JOB, len(texts)),
        )
        found = [np.load(job.into) for job in jobs]
        vectors = np.zeros((len(texts), found[0].shape[1]), np.float32)
        for part, made in zip(parts, found, strict=True):
            vectors[part] = made
        return vectors
