"""Texts encoded by Spark have the vectors of the encoder, each at the place of its text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.generation.parallel_encoding import EncodingSize, SparkEncoder
from opus_pipelines.workers.spark_executor import on_spark
from tests.workers.counting import Counting, Doubling, Failing

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


def test_answers_come_in_the_order_of_the_jobs(spark: Any) -> None:
    def tell(_: int) -> None:
        return None

    jobs: Sequence[Doubling] = [Doubling(n) for n in (3, 1, 2)]
    assert on_spark(spark, Counting(10), jobs, tell) == [16, 12, 14]


def test_the_first_job_that_fails_is_the_error_and_the_others_run(spark: Any, tmp_path: Any) -> None:
    jobs = [Failing("first"), Failing("second"), Doubling(1, tmp_path / "ran")]
    with pytest.raises(OpusError, match="first"):
        on_spark(spark, Counting(0), jobs, lambda done: None)
    assert (tmp_path / "ran").exists()
