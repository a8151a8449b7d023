"""The pointer model as a writer: sequences of flows, outlines of the catalogue after a training on few flows."""

from collections.abc import Sequence

import numpy as np
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.flows.enterprise import documents
from opus_pipelines.flows.enterprise.catalogue_words import words
from opus_pipelines.flows.enterprise.documents import FlowDocumentError
from opus_pipelines.flows.enterprise.examples import known, world_catalogue, world_examples
from opus_pipelines.flows.scores import hallucinations
from opus_pipelines.flows.writers.pointer_writer import PointerWriter, sequence


class WordEncoder:
    """Unit vectors of hashed words in place of a trained encoder."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.full((len(texts), 64), 1e-3, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in words(text):
                row[int(digest(word)[:8], 16) % 64] += 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_a_flow_is_a_sequence_without_flow_logic() -> None:
    flow = documents.parse_script(
        "when daily\nIF condition=a=1\n  log message=x\nELSE\n  log message=y\n  send_email to=a"
    )
    assert sequence(flow) == ["when daily", "log", "send_email"]


def test_without_known_flows_there_is_nothing_to_learn() -> None:
    with pytest.raises(InputError, match="two known flows"):
        PointerWriter(world_catalogue(), [], WordEncoder())


@pytest.mark.model
def test_an_outline_of_the_catalogue_comes_out() -> None:
    writer = PointerWriter(world_catalogue(), known(world_examples())[:40], WordEncoder())
    flow = writer.flow("Every day, look up all contracts and send an email to the contract manager.")
    assert hallucinations(flow, world_catalogue())[0] == (0, len(flow.triggers) + len(flow.components))
    assert flow.components
    assert not any(c.inputs or c.is_logic for c in flow.components)
    assert writer.flow("Every day, look up all contracts and send an email to the contract manager.") == flow
    with pytest.raises(FlowDocumentError):
        writer.flow(" ")
