"""The task reader: what it learns, tasks that it did not see, and the pointer model that weighs sequences by it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.fine_tuning.task_reader import (
    BIASES,
    MOST_LOG_ODDS,
    QUERIES,
    SCALES,
    FineTuningError,
    ReadCases,
    ReaderFitting,
    TaskReader,
    fit_reader,
    weights_by_set,
)
from opus_pipelines.lwm.next_step import Written
from opus_pipelines.lwm.pointer.candidates import EncodedRequest, clauses_of
from opus_pipelines.lwm.pointer.learning import train_pointer
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import POINTERS, READER, PointerModel, weighted
from tests.lwm.fine_tuning.tiny_encoder import write_tiny_encoder
from tests.lwm.language_models.tiny_model import write_tiny_model
from tests.lwm.pointer.pointer_fixtures import TOOLS, asks_for, memory, plans

pytestmark = pytest.mark.long

PLANS = plans(160)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(EncoderSettings(model=str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))))


@pytest.fixture(scope="module")
def cases(encoder: Encoder) -> ReadCases:
    holds = np.zeros((len(PLANS), len(TOOLS)), np.float32)
    for n, plan in enumerate(PLANS):
        holds[n, [TOOLS.index(tool) for tool in plan]] = 1
    return ReadCases(
        [asks_for(plan) for plan in PLANS], holds, TOOLS, encoder.encode([t.replace("_", " ") for t in TOOLS])
    )


@pytest.fixture(scope="module")
def reader(cases: ReadCases, encoder: Encoder) -> TaskReader:
    return fit_reader(
        cases.among(range(120)), encoder, ReaderFitting(epochs=60, layer_rate=3e-3, bfloat16=False)
    )  # it is tiny, and not trained before


def hits(found: np.ndarray, holds: np.ndarray) -> float:
    """The share of a case's tasks that are among as many of the likeliest."""
    return float(
        np.mean([row[np.argsort(-own)[: int(row.sum())]].mean() for own, row in zip(found, holds, strict=True)])
    )


def test_it_reads_which_tasks_a_request_asks_for(reader: TaskReader, cases: ReadCases) -> None:
    asked = cases.among(range(120, 160))
    found = reader.log_odds(asked.texts, TOOLS, cases.vectors)
    assert found.shape == (40, len(TOOLS))
    assert -MOST_LOG_ODDS <= found.min() < 0 < found.max() <= MOST_LOG_ODDS
    assert hits(found, asked.holds) > 0.6, "by chance it is 0.2"


@pytest.mark.nightly
def test_it_learns_with_numbers_of_16_bits_too_and_keeps_float32(cases: ReadCases, encoder: Encoder) -> None:
    asked = cases.among(range(120, 160))
    mixed = fit_reader(cases.among(range(120)), encoder, ReaderFitting(epochs=60, layer_rate=3e-3, bfloat16=True))
    assert {part.dtype for part in mixed.weights.values()} == {np.dtype(np.float32)}
    assert hits(mixed.log_odds(asked.texts, TOOLS, cases.vectors), asked.holds) > 0.6, "by chance it is 0.2"


def test_some_of_its_tasks_read_as_before(reader: TaskReader, cases: ReadCases) -> None:
    some = reader.among({TOOLS[3], TOOLS[1], "other"})
    assert some.tasks == (TOOLS[1], TOOLS[3])
    found = some.log_odds(["send the invoice"], TOOLS, cases.vectors)[0]
    expected = reader.log_odds(["send the invoice"], TOOLS, cases.vectors)[0]
    assert found[[1, 3]] == pytest.approx(expected[[1, 3]], abs=1e-5)
    assert np.flatnonzero(found).tolist() == [1, 3]


def test_requests_of_any_length_may_stand_together(reader: TaskReader, cases: ReadCases) -> None:
    texts = ["send the invoice", asks_for(TOOLS[:4]), ""]
    together = reader.log_odds(texts, TOOLS, cases.vectors)
    alone = [reader.log_odds([text], TOOLS, cases.vectors)[0] for text in texts]
    assert together == pytest.approx(np.stack(alone), abs=1e-4)


def test_of_a_task_that_it_did_not_learn_it_says_nothing(reader: TaskReader, cases: ReadCases) -> None:
    known = reader.log_odds(["send the invoice"], TOOLS, cases.vectors)
    vectors = np.vstack([cases.vectors[:1], cases.vectors])
    assert reader.log_odds(["send the invoice"], ("other", *TOOLS), vectors)[0, 1:] == pytest.approx(known[0])
    assert reader.log_odds(["send the invoice"], ("other", *TOOLS), vectors)[0, 0] == 0
    assert reader.log_odds(["send the invoice"], ("other",), cases.vectors[:1]).tolist() == [[0.0]]


def test_nothing_to_learn_from_and_a_loss_that_is_no_number_are_named(cases: ReadCases, encoder: Encoder) -> None:
    with pytest.raises(FineTuningError, match="no case"):
        fit_reader(cases.among([]), encoder)
    with pytest.raises(FineTuningError, match="not finite"):
        fit_reader(replace(cases.among(range(8)), vectors=cases.vectors * np.nan), encoder, ReaderFitting(epochs=1))


def test_a_case_of_a_frequent_set_of_tasks_weighs_less(cases: ReadCases, encoder: Encoder) -> None:
    holds = np.zeros((80, len(TOOLS)), np.float32)
    holds[:64, :2] = holds[64:, 2] = 1
    # 64 cases of 1 / 8 and 16 of 1 / 4 weigh 8 and 4 together, and 80 by the mean of 1.
    assert weights_by_set(holds).tolist() == pytest.approx([80 / 12 / 8] * 64 + [80 / 12 / 4] * 16)
    texts = [cases.texts[0]] * 64 + [cases.texts[1]] * 16
    how = ReaderFitting(epochs=1)  # three steps hardly move a bias
    odds = np.exp(fit_reader(ReadCases(texts, holds, TOOLS, cases.vectors), encoder, how).weights[BIASES])
    assert odds[:3] == pytest.approx([2.0, 2.0, 0.5], rel=0.1)


def test_a_model_without_layers_of_its_own_cannot_be_fine_tuned(tmp_path: Path, cases: ReadCases) -> None:
    other = Encoder(EncoderSettings(model=str(write_tiny_model(tmp_path))))
    with pytest.raises(SettingsError, match="fine-tuned"):
        fit_reader(cases.among(range(8)), other)


@pytest.mark.parametrize(
    ("name", "part"), [(QUERIES, np.zeros((3, 32))), (SCALES, np.array([1.0, np.nan])), ("layers.x", np.zeros(2))]
)
def test_weights_that_do_not_fit_are_refused(reader: TaskReader, cases: ReadCases, name: str, part: np.ndarray) -> None:
    with pytest.raises(OpusError):
        replace(reader, weights={**reader.weights, name: part}).log_odds(["send"], TOOLS, cases.vectors)


def test_the_odds_of_the_tasks_weigh_the_sequences() -> None:
    written = [Written((0, 1), 0.6), Written((0, 2), 0.3), Written((2,), 0.1)]
    log_odds = np.log([2.0, 1.0, 16.0])
    found = weighted(written, log_odds)
    # Shares before scaling: .6 * 2^.5, .3 * 32^.5 and .1 * 16^.5.
    assert [one.tasks for one in found] == [(0, 2), (0, 1), (2,)]
    assert [one.probability for one in found] == pytest.approx([0.57614, 0.28807, 0.13580], abs=1e-5)
    assert weighted(written, np.zeros(3)) == written


def test_the_pointer_model_weighs_its_sequences_by_it_and_keeps_it(
    reader: TaskReader, cases: ReadCases, tmp_path: Path
) -> None:
    small = memory(PLANS[:120])
    known = CaseMemory(
        replace(small.graph, vectors=cases.vectors), cases.texts[:120], cases.vectors[np.zeros(120, int)], small.traces
    )
    plain = train_pointer([(known, [in_space(text, cases) for text in cases.texts[:120]])])
    model, text = replace(plain, reader=reader), f"please {asks_for(TOOLS[:2])}"
    asked = in_space(text, cases)
    written, read = plain.sequences(asked, known), model.sequences(asked, known)
    assert read == weighted(written, reader.log_odds([text], TOOLS, cases.vectors)[0])
    assert read != written

    lake, card = Lake(tmp_path), {"industries": {"retail": {"serves": True}}}
    name = POINTERS.keep(lake, model, card)
    assert name != POINTERS.keep(lake, PointerModel(model.network), card)
    POINTERS.store(lake).promote(name)
    champion = POINTERS.open(lake).champion
    assert champion is not None
    assert champion.model.sequences(asked, known) == read
    (POINTERS.store(lake).folder / name / READER).write_bytes(b"no tensors")
    assert POINTERS.open(lake).champion is None


def test_a_reader_of_another_industry_weighs_nothing(reader: TaskReader, cases: ReadCases) -> None:
    small = memory(PLANS[:120])
    vectors = cases.vectors[np.zeros(120, int)]
    known = CaseMemory(replace(small.graph, vectors=cases.vectors), cases.texts[:120], vectors, small.traces)
    tasks = (*TOOLS[:4], *(f"other {n}" for n in range(4)))
    half = CaseMemory(
        replace(small.graph, vectors=cases.vectors, tasks=tasks), cases.texts[:120], vectors, small.traces
    )
    assert known.is_read_by(reader)
    assert np.abs(known.log_odds(reader, "send the invoice")).min() > 0
    assert not half.is_read_by(reader)
    assert half.log_odds(reader, "send the invoice").tolist() == [0.0] * 8


def in_space(text: str, cases: ReadCases) -> EncodedRequest:
    """A request whose vectors say nothing, in the space of the tiny encoder."""
    clauses = clauses_of(text)
    return EncodedRequest.of(text, cases.vectors[0], cases.vectors[[0] * len(clauses)])
