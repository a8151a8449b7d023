"""Texts encoded by Spark have the vectors of the encoder, each at the place of its text."""

from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.bulk.encoding import EncodingSize, SparkEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder

pytestmark = pytest.mark.spark

TEXTS = ("pay the invoice", "a", "send the purchase order to the supplier again", "close the case", "b", "pay")


@pytest.mark.model
def test_vectors_stand_at_the_places_of_their_texts(encoder: TextEncoder, spark: Any) -> None:
    told: list[tuple[int, int]] = []
    by_spark = SparkEncoder(Settings().encoder, lambda: spark, EncodingSize(many=1, partition=2))
    vectors = by_spark.encode(TEXTS, lambda done, of: told.append((done, of)))
    assert vectors.shape == (6, by_spark.dimension)
    assert np.allclose(vectors, encoder.encode(TEXTS), atol=1e-5)
    assert all(done <= of == 6 for done, of in told)
