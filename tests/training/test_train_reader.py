"""The task reader of several industries: one set of tasks, and probabilities in the order of each industry's own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.embedding.encoder import Encoder
from opus_pipelines.fine_tuning.training import ReadCases
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.retrieval.case_memory import IndustryMemory
from opus_pipelines.training.train_reader import joined, learn_reader
from tests.fine_tuning.tiny_encoder import write_tiny_encoder
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans


def industry(encoder: Encoder, seed: int) -> IndustryMemory:
    cases = plans(30, seed)
    small, texts = memory(cases), [asks_for(case) for case in cases]
    graph = replace(small.graph, vectors=encoder.encode([tool.replace("_", " ") for tool in TOOLS]))
    known = CaseMemory(graph, texts, encoder.encode(texts), small.traces)
    return IndustryMemory(known, tuple(f"i{seed}-{n}" for n in range(30)), tuple(texts), True)


def test_a_task_of_two_industries_is_one_task() -> None:
    one = ReadCases(["a"], np.ones((1, 2)), ("t1", "t2"), np.eye(2))
    other = ReadCases(["b", "c"], np.array([[0, 1], [1, 0]]), ("t2", "t3"), np.ones((2, 2)))
    both = joined([one, other])
    assert (both.texts, both.tasks) == (["a", "b", "c"], ("t1", "t2", "t3"))
    assert both.holds.tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.long
def test_every_case_is_read_by_a_reader_that_did_not_learn_from_it(tmp_path: Path) -> None:
    encoder = Encoder(EncoderSettings(model=str(write_tiny_encoder(tmp_path))))
    memories = {"law": industry(encoder, 1), "retail": industry(encoder, 2)}
    told: list[str] = []
    reader, likely = learn_reader(memories, encoder.name, told.append)
    assert {name: found.shape for name, found in likely.items()} == {"law": (30, 8), "retail": (30, 8)}
    assert "epoch 1:" in " ".join(told)
    texts = memories["law"].texts
    known = memories["law"].memory.read_by(reader, texts)
    assert np.abs(known - likely["law"]).max() > 0.01, "the reader of all cases knows them"
    equal = [(n, m) for n in range(30) for m in range(n) if texts[n] == texts[m]]
    assert equal
    for n, m in equal:
        assert likely["law"][n] == pytest.approx(likely["law"][m], abs=1e-5), "equal requests are in one half"
