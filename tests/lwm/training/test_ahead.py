"""Training ahead in a process of its own gives what training here gives."""

import os

import pytest

from opus_pipelines.core.settings import Lwm
from opus_pipelines.lwm.pointer.model import model_id_of
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.training.ahead import Ahead, NetworkJob
from tests.lwm.pointer.pointer_fixtures import asks_for, memory, plans, request

pytestmark = pytest.mark.long
CASES = plans(40, 3)


@pytest.fixture
def job() -> NetworkJob:
    texts = tuple(asks_for(case) for case in CASES)
    industry = IndustryMemory(memory(CASES), tuple(f"i{n}" for n in range(len(CASES))), texts, True)
    requests = [request(text) for text in texts]
    return NetworkJob({"law": industry}, {"law": requests}, Lwm(perceptrons=1))


@pytest.mark.nightly
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="nothing is trained ahead on one processor")
def test_a_network_of_another_process_has_the_same_bytes(job: NetworkJob) -> None:
    here = job.run(None, lambda _: None)
    told: list[str] = []
    with Ahead("unused", told.append, least_cases=40) as ahead:
        ahead.begin_network(job)
        assert told == ["all cases: a network is trained"]
        there = ahead.network(job)
    assert model_id_of(there.model) == model_id_of(here.model)
    assert there.loss == here.loss
    assert len(told) == 1, "it was not trained twice"


def test_few_cases_are_trained_on_here(job: NetworkJob) -> None:
    told: list[str] = []
    with Ahead("unused", told.append, least_cases=41) as ahead:
        ahead.begin_network(job)
        assert told == []
        assert model_id_of(ahead.network(job).model) == model_id_of(job.run(None, lambda _: None).model)
