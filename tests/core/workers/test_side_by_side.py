"""Jobs on several worker processes at once."""

from pathlib import Path

import pytest

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.workers.pool import Worker, side_by_side
from tests.core.workers.counting import Counting, Doubling, Failing

pytestmark = pytest.mark.long


def test_answers_come_in_the_order_of_the_jobs_and_workers_stay() -> None:
    told: list[int] = []
    with Worker(Counting(10)) as one, Worker(Counting(10)) as other:
        for _ in range(2):
            assert side_by_side([one, other], [Doubling(n) for n in (3, 1, 2)], told.append) == [16, 12, 14]
    assert told == [1, 2, 3, 1, 2, 3]


def test_the_first_job_that_fails_is_the_error_and_the_others_run(tmp_path: Path) -> None:
    jobs = [Failing("first"), Failing("second"), Doubling(1, tmp_path / "ran")]
    with Worker(Counting(0)) as one, Worker(Counting(0)) as other, pytest.raises(OpusError, match="first"):
        side_by_side([one, other], jobs, lambda done: None)
    assert (tmp_path / "ran").exists()
