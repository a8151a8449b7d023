"""The task reader: what it learns, tasks that it did not see, folds, and the pointer model that reads with it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.embedding.encoder import Encoder
from opus_pipelines.fine_tuning.task_reader import QUERIES, SCALES, TaskReader
from opus_pipelines.fine_tuning.training import FineTuningError, ReadCases, ReaderFitting, fit, out_of_fold
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.pointer.candidates import FEATURES
from opus_pipelines.lwm.pointer.clauses import EncodedRequest, clauses_of
from opus_pipelines.lwm.pointer.memory import CaseMemory
from opus_pipelines.lwm.pointer.model import PointerModel, train
from opus_pipelines.lwm.pointer.store import READER, keep, opened, store_of
from tests.fine_tuning.tiny_encoder import write_tiny_encoder
from tests.language_models.tiny_model import write_tiny_model
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
    return fit(
        cases.among(range(120)), encoder, ReaderFitting(epochs=60, layer_rate=3e-3)
    )  # it is tiny, and not trained before


def hits(found: np.ndarray, holds: np.ndarray) -> float:
    """The share of a case's tasks that are among as many of the likeliest."""
    return float(
        np.mean([row[np.argsort(-own)[: int(row.sum())]].mean() for own, row in zip(found, holds, strict=True)])
    )


def test_it_reads_which_tasks_a_request_asks_for(reader: TaskReader, cases: ReadCases) -> None:
    asked = cases.among(range(120, 160))
    found = reader.probabilities(asked.texts, TOOLS, cases.vectors, cases.holds.mean(0))
    assert found.shape == (40, len(TOOLS))
    assert 0 <= found.min() < found.max() <= 1
    assert hits(found, asked.holds) > 0.6, "by chance it is 0.2"


def test_requests_of_any_length_may_stand_together(reader: TaskReader, cases: ReadCases) -> None:
    texts = ["send the invoice", asks_for(TOOLS[:4]), ""]
    together = reader.probabilities(texts, TOOLS, cases.vectors, cases.holds.mean(0))
    alone = [reader.probabilities([text], TOOLS, cases.vectors, cases.holds.mean(0))[0] for text in texts]
    assert together == pytest.approx(np.stack(alone), abs=1e-5)


def test_a_task_that_it_did_not_learn_is_read_by_its_text(reader: TaskReader, cases: ReadCases) -> None:
    known = reader.probabilities(["send the invoice"], TOOLS, cases.vectors, cases.holds.mean(0))
    more = reader.probabilities(
        ["send the invoice"], ("other", *TOOLS), np.vstack([cases.vectors[:1], cases.vectors]), np.full(9, 0.2)
    )
    assert more[0, 1:] == pytest.approx(known[0], abs=1e-5)
    assert 0 < more[0, 0] < 1


def test_out_of_fold_probabilities_know_nothing_of_the_case(cases: ReadCases, encoder: Encoder) -> None:
    some = cases.among(range(24))
    folds = np.arange(24) % 2
    found = out_of_fold(some, folds, encoder, ReaderFitting(epochs=1))
    other = some.holds.copy()
    other[0] = 1 - other[0]
    again = out_of_fold(replace(some, holds=other), folds, encoder, ReaderFitting(epochs=1))
    assert again[folds == 0] == pytest.approx(found[folds == 0]), "fold 0 is read by fold 1, which did not change"
    assert np.abs(again[folds == 1] - found[folds == 1]).max() > 1e-4


def test_nothing_to_learn_from_and_a_loss_that_is_no_number_are_named(cases: ReadCases, encoder: Encoder) -> None:
    with pytest.raises(FineTuningError, match="no case"):
        fit(cases.among([]), encoder)
    with pytest.raises(FineTuningError, match="not finite"):
        fit(replace(cases.among(range(8)), vectors=cases.vectors * np.nan), encoder, ReaderFitting(epochs=1))


def test_a_model_without_layers_of_its_own_cannot_be_fine_tuned(tmp_path: Path, cases: ReadCases) -> None:
    other = Encoder(EncoderSettings(model=str(write_tiny_model(tmp_path))))
    with pytest.raises(SettingsError, match="fine-tuned"):
        fit(cases.among(range(8)), other)


@pytest.mark.parametrize(
    ("name", "part"), [(QUERIES, np.zeros((3, 32))), (SCALES, np.array([1.0, np.nan])), ("layers.x", np.zeros(2))]
)
def test_weights_that_do_not_fit_are_refused(reader: TaskReader, cases: ReadCases, name: str, part: np.ndarray) -> None:
    with pytest.raises(OpusError):
        replace(reader, weights={**reader.weights, name: part}).probabilities(
            ["send"], TOOLS, cases.vectors, np.full(8, 0.2)
        )


def test_the_pointer_model_reads_with_it_and_keeps_it(reader: TaskReader, cases: ReadCases, tmp_path: Path) -> None:
    small = memory(PLANS[:120])
    graph = replace(small.graph, vectors=cases.vectors)
    known = CaseMemory(graph, cases.texts[:120], cases.vectors[np.zeros(120, int)], small.traces)
    likely = known.read_by(reader, cases.texts[:120])
    requests = [in_space(text, cases, own) for text, own in zip(cases.texts[:120], likely, strict=True)]
    model = replace(train([(known, requests)]), reader=reader)
    text = "please send the invoice"
    (read,) = known.read_by(reader, [text])
    candidates = known.candidates(in_space(text, cases, read), len(TOOLS))
    column = FEATURES.index("task reader")
    assert candidates.features[:, column] == pytest.approx(read[candidates.tasks])
    assert np.isnan(known.candidates(in_space(text, cases), len(TOOLS)).features[:, column]).all()

    lake, card = Lake(tmp_path), {"industries": {"retail": {"serves": True}}}
    name = keep(lake, model, card)
    assert name != keep(lake, PointerModel(model.network), card)
    store_of(lake).promote(name)
    champion = opened(lake).champion
    assert champion is not None
    asked = in_space(text, cases)
    assert champion.model.sequences(asked, known) == model.sequences(asked, known)
    assert champion.model.sequences(asked, known) == model.sequences(replace(asked, likely=read), known)
    (store_of(lake).folder / name / READER).write_bytes(b"no tensors")
    assert opened(lake).champion is None


def in_space(text: str, cases: ReadCases, likely: np.ndarray | None = None) -> EncodedRequest:
    """A request whose vectors say nothing, in the space of the tiny encoder."""
    clauses = clauses_of(text)
    return replace(EncodedRequest.of(text, cases.vectors[0], cases.vectors[[0] * len(clauses)]), likely=likely)
