"""The task reader of several industries: one set of tasks, and none where steps are words of one case alone."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.fine_tuning.task_reader import ReadCases
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import POINTERS
from opus_pipelines.lwm.retrieval.case_memory import IndustryMemory
from opus_pipelines.lwm.training.ahead import Ahead, joined, learn_reader
from tests.lwm.fine_tuning.tiny_encoder import write_tiny_encoder
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans
from tests.lwm.training.small_lake import Small


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


@pytest.mark.nightly
def test_one_reader_learns_the_tasks_of_all_industries_that_have_names(tmp_path: Path) -> None:
    encoder = Encoder(EncoderSettings(model=str(write_tiny_encoder(tmp_path))))
    memories = {"law": industry(encoder, 1), "retail": industry(encoder, 2)}
    told: list[str] = []
    reader = learn_reader(memories, encoder.name, told.append)
    assert reader is not None
    assert reader.tasks == TOOLS
    assert "60 cases" in told[0]
    assert "epoch 1:" in told[1]
    assert all(one.memory.is_read_by(reader) for one in memories.values())

    told.clear()
    with Ahead(encoder.name, told.append) as ahead:
        ahead.begin_reader(memories)
        there = ahead.reader(memories)
        assert there is not None
        assert {k: v.tobytes() for k, v in there.weights.items()} == {k: v.tobytes() for k, v in reader.weights.items()}
        assert "60 cases" in told[0]
        assert all("all cases: epoch" in line for line in told[1:])
        ahead.begin_reader(memories)
        assert ahead.reader({}) is None, "the judging may want none"

    law = memories["law"]
    words = [replace(law.memory.graph, tasks=tuple(f"t{n}" for n in range(8)))]
    free = CaseMemory(words[0], law.texts[:2], law.memory.vectors[:2], [[0, 1, 2, 3], [4, 5, 6, 7]])
    assert learn_reader({"free": replace(law, memory=free)}, encoder.name, told.append) is None


@pytest.mark.nightly
@pytest.mark.filterwarnings("default")  # notices of MLflow
def test_a_training_judges_the_reader_and_keeps_it_where_it_helps(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The texts of the tiny encoder are of few words, which the reader can tell apart as well as the network."""
    monkeypatch.setenv("OPUS_ENCODER_MODEL", str(small.model))
    monkeypatch.setenv("OPUS_LWM_PERCEPTRONS", "1")
    lake = tmp_path / "lake"
    shutil.copytree(small.lake.root, lake)
    assert main(["--lake", str(lake), "train"]) == 0
    said = capsys.readouterr().err
    (told,) = re.findall(r"law: ([.\d]+) with the task reader, ([.\d]+) without it", said)
    with_reader, without = map(float, told)
    champion = POINTERS.open(Lake(lake)).champion
    assert champion is not None
    assert f"law: F1 of held-out cases {max(with_reader, without):.3f}" in said, "the better one serves"
    assert (champion.model.reader is not None) == (with_reader > without)

    assert main(["--lake", str(lake), "train", "--no-fine-tune"]) == 0
    assert "with the task reader" not in capsys.readouterr().err
    newest = max(POINTERS.store(Lake(lake)).folder.glob("*/card.json"), key=lambda card: card.stat().st_mtime_ns)
    assert "reader" not in json.loads(newest.read_text())
