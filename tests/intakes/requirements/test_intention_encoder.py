"""The Intention encoder: attention over elements, its training on tiny cases, and encoders in a lake."""

from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS, WEIGHTS, IntentionEncoder, read_encoder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.texts import compose, unit
from opus_pipelines.lwm.fine_tuning.encoder_training import EncoderTrainingError, TaughtCases, fit_encoder, rates_of
from opus_pipelines.lwm.pointer_backend import PointerBackend

D = 16


def axis(n: int) -> np.ndarray:
    return np.eye(D, dtype=np.float32)[n]


def taught() -> TaughtCases:
    """Cases of two kinds whose tasks have nothing in common with the words of their requests."""
    draw = np.random.default_rng(0)
    kinds = np.arange(80) % 2
    inputs = np.stack([unit(axis(int(k)) + draw.normal(0, 0.05, D)) for k in kinds]).astype(np.float32)
    done = np.zeros((80, 4), bool)
    done[kinds == 0, :2] = True
    done[kinds == 1, 2:] = True
    tasks = np.stack([axis(n) for n in (4, 5, 6, 7)])
    nothing: list[list[int]] = [[] for _ in kinds]
    client = np.zeros(80, int)
    return TaughtCases(
        inputs,
        np.stack([axis(9)]),
        nothing,
        nothing,
        tasks,
        done,
        client,
        rates_of(done, client, 1),
    )


def test_before_training_the_encoder_is_the_weighted_mean_of_the_elements() -> None:
    encoder = IntentionEncoder.untrained(D)
    parts = {"input": np.stack([axis(0), axis(1)]), "context": np.stack([axis(0), axis(3)])}
    vector = encoder.composed(parts)
    assert np.allclose(vector, compose(parts["input"].mean(0), parts["context"]), atol=1e-6)
    assert np.allclose(encoder.intentions(vector[None]), vector[None], atol=1e-6), "the map is the identity"


def test_the_output_moves_the_intention_and_a_missing_part_does_not() -> None:
    encoder = IntentionEncoder.untrained(D)
    given = {"input": axis(0)[None], "context": axis(1)[None]}
    assert np.allclose(encoder.composed(given), encoder.composed({**given, "output": np.zeros((0, D))}))
    assert encoder.composed({**given, "output": axis(2)[None]})[2] > 0.3


@pytest.mark.long
def test_training_finds_the_tasks_that_no_word_of_the_request_names() -> None:
    cases = taught()
    loss: list[float] = []
    encoder = fit_encoder([cases], lambda _, mean: loss.append(mean))
    likely = encoder.probabilities(np.stack([axis(0), axis(1)]), cases.tasks, cases.rates[0])
    assert (likely > 0.5).tolist() == [[True, True, False, False], [False, False, True, True]]
    assert loss[-1] < loss[0] / 2
    mixed = encoder.probabilities(unit(axis(0) + axis(1))[None], cases.tasks, cases.rates[0])[0]
    assert mixed.min() > 0.5, "an intake with both requests needs the tasks of both"


@pytest.mark.long
def test_the_same_cases_give_the_same_encoder() -> None:
    one, other = fit_encoder([taught()], steps=5), fit_encoder([taught()], steps=5)
    assert all(np.array_equal(part, other.tensors()[name]) for name, part in one.tensors().items())


@pytest.mark.long
def test_nothing_to_learn_from_is_named() -> None:
    with pytest.raises(EncoderTrainingError, match="no case"):
        fit_encoder([])


@pytest.mark.long
def test_a_loss_that_is_no_number_stops_the_training() -> None:
    cases = taught()
    cases.inputs[:] = np.nan
    with pytest.raises(EncoderTrainingError, match="not finite"):
        fit_encoder([cases])


def test_an_encoder_is_kept_and_serves_once_it_is_promoted(tmp_path: Path) -> None:
    lake, backend = Lake(tmp_path), PointerBackend()
    card = {"industries": {"retail": {"serves": True}, "law": {"serves": False}}}
    name = ENCODERS.keep(lake, IntentionEncoder.untrained(D), card)
    backend.open(lake)
    assert backend.encoder is None
    ENCODERS.store(lake).promote(name)
    backend.open(lake)
    assert backend.encoder is not None
    assert backend.encoder.industries == {"retail"}
    assert name in backend.version


@pytest.mark.long
def test_an_encoder_is_listed_and_promoted_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(tmp_path)
    figures = {"cases": 60, "asked": 20, "held_out": "goals", "model": 0.9, "untrained": 0.6, "low": 0.1, "high": 0.5}
    card = {"industries": {"retail": {**figures, "serves": True}}}
    first, second = (ENCODERS.keep(lake, IntentionEncoder.untrained(D, seed), card) for seed in (0, 1))
    ENCODERS.store(lake).promote(second)

    def told(*more: str) -> str:
        assert main(["--lake", str(tmp_path), "models", "--backend", "intention", *more]) == 0
        shown = capsys.readouterr()
        return shown.out + shown.err

    assert f"{first}, challenger" in told()
    after = told("--champion", first)
    assert f"{first}, champion" in after
    assert f"{second}, earlier champion" in after
    assert "+0.300 [+0.100, +0.500]" in after
    champion = ENCODERS.open(lake).champion
    assert champion is not None
    assert champion.model_id == first


def test_a_damaged_encoder_is_named_and_does_not_serve(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    name = ENCODERS.keep(lake, IntentionEncoder.untrained(D), {"industries": {"retail": {"serves": True}}})
    ENCODERS.store(lake).promote(name)
    file = ENCODERS.store(lake).folder / name / WEIGHTS
    file.write_bytes(file.read_bytes()[:-8] + b"\x01" * 8)
    found = ENCODERS.open(lake)
    assert found.champion is None
    assert found.stored[0].problem is not None
    file.write_bytes(b"no tensors")
    with pytest.raises(LakeError, match="damaged"):
        read_encoder(file)


@pytest.mark.parametrize(
    ("name", "part"), [("attention", np.zeros(3)), ("task_in", np.zeros((D, 2))), ("logit", np.full(3, np.nan))]
)
def test_arrays_that_do_not_fit_are_refused(name: str, part: np.ndarray) -> None:
    tensors = IntentionEncoder.untrained(D).tensors()
    with pytest.raises(OpusError):
        IntentionEncoder.of({**tensors, name: part})
    del tensors[name]
    with pytest.raises(OpusError, match=name):
        IntentionEncoder.of(tensors)
