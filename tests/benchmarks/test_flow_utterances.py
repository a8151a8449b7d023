"""The utterances that were written for the project: every flow can be parsed, and calls activities of the catalogue."""

import os
from pathlib import Path

import pytest

from benchmarks.flow_utterances import FILE, PARTS, read_utterances
from opus_pipelines.flows.from_text.flow_folder import read_folder
from opus_pipelines.workflow.blocks.model import activities

FOLDER = Path(os.environ.get("OPUS_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")) / "flow_bench"


@pytest.mark.long
def test_all_parts_are_there_and_no_utterance_stands_twice() -> None:
    parts = [read_utterances(FILE, part) for part in PARTS]
    assert [len(part) for part in parts] == [164, 80, 36, 20, 20, 115]
    utterances = [(task.utterance, task.prior) for part in parts for task in part]
    assert len(set(utterances)) == len(utterances)


@pytest.mark.data
@pytest.mark.skipif(not FOLDER.exists(), reason="the shared part of Flow-Bench is not here")
def test_every_activity_is_one_of_the_catalogue() -> None:
    known = read_folder(FOLDER).catalogue.by_id
    called = {name for part in PARTS for task in read_utterances(FILE, part) for name in activities(task.expected)}
    assert called <= set(known)
