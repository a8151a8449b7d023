"""Fine-tuning on pairs of texts: what it learns, that it is repeatable, and the encoder with changed weights."""

from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.language.embedding.encoder import Encoder
from opus_pipelines.lwm.fine_tuning.text_pairs import PairTraining, TextPairs, fit_pairs
from opus_pipelines.lwm.fine_tuning.training import FineTuningError
from tests.lwm.fine_tuning.tiny_encoder import write_tiny_encoder
from tests.lwm.language_models.tiny_model import write_tiny_model

pytestmark = pytest.mark.long  # an encoder is fine-tuned

# Each answer has no word of its question, so that only what is learnt brings them together.
QUESTIONS = ("open the account", "close the account", "check the invoice", "send the invoice")
ANSWERS = ("please send", "please check", "please close", "please open")
HOW = PairTraining(layers=2, epochs=40, batch=4, negatives=1, rate=3e-3)


def pairs(questions: tuple[str, ...] = QUESTIONS) -> TextPairs:
    places = np.arange(len(questions))
    return TextPairs(questions, ANSWERS, places, (places[:, None] + 1) % 4, np.ones(len(questions)))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(EncoderSettings(model=str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))))


@pytest.fixture(scope="module")
def weights(encoder: Encoder) -> dict[str, np.ndarray]:
    return fit_pairs(pairs(), encoder, HOW)


def right(encoder: Encoder) -> list[int]:
    """The place of the nearest answer of each question."""
    nearest: list[int] = (encoder.encode(QUESTIONS) @ encoder.encode(ANSWERS).T).argmax(1).tolist()
    return nearest


def test_the_answer_of_each_question_becomes_the_nearest(encoder: Encoder, weights: dict[str, np.ndarray]) -> None:
    assert right(encoder) != [0, 1, 2, 3]
    assert right(Encoder(encoder.settings, weights, "tuned")) == [0, 1, 2, 3]


def test_only_the_upper_layers_change_and_the_same_pairs_give_the_same_weights(
    encoder: Encoder, weights: dict[str, np.ndarray]
) -> None:
    assert {name.split(".")[2] for name in weights} == {"2", "3"}
    again = fit_pairs(pairs(), encoder, HOW)
    assert all(np.array_equal(again[name], part) for name, part in weights.items())


def test_the_changed_encoder_has_a_name_of_its_own_and_the_plain_one_stays(
    encoder: Encoder, weights: dict[str, np.ndarray]
) -> None:
    before = encoder.encode(["open"])
    changed = Encoder(encoder.settings, weights, "tuned")
    assert changed.name == f"{encoder.name}+tuned"
    assert not np.allclose(changed.encode(["open"]), before)
    assert np.array_equal(encoder.encode(["open"]), before)


def test_torch_and_onnx_agree_on_the_changed_weights(encoder: Encoder, weights: dict[str, np.ndarray]) -> None:
    changed = Encoder(encoder.settings, weights, "tuned")
    states = changed.token_states(["send the invoice"], 64, 0)[0].mean(0)
    assert np.allclose(changed.encode(["send the invoice"])[0], states / np.linalg.norm(states), atol=1e-5)


def test_the_loss_falls_and_is_reported_after_each_epoch(encoder: Encoder) -> None:
    told: list[tuple[int, float]] = []
    fit_pairs(pairs(), encoder, PairTraining(epochs=10, batch=4, rate=3e-3), lambda *one: told.append(one))
    assert [epoch for epoch, _ in told] == list(range(1, 11))
    assert told[-1][1] < told[0][1]


def test_a_question_without_importance_teaches_nothing(encoder: Encoder) -> None:
    twice = TextPairs(("open", "open"), ANSWERS, np.array([0, 1]), np.zeros((2, 0), int), np.array([1.0, 0.0]))
    changed = Encoder(encoder.settings, fit_pairs(twice, encoder, HOW), "tuned")
    assert int((changed.encode(["open"]) @ changed.encode(ANSWERS).T).argmax()) == 0


def test_without_pairs_there_is_nothing_to_learn(encoder: Encoder) -> None:
    with pytest.raises(FineTuningError, match="no pair"):
        fit_pairs(pairs(()), encoder)


def test_weights_that_are_not_finite_are_refused(encoder: Encoder) -> None:
    broken = TextPairs(QUESTIONS, ANSWERS, np.arange(4), np.zeros((4, 0), int), np.full(4, np.nan))
    with pytest.raises(FineTuningError, match="epoch 1"):
        fit_pairs(broken, encoder, HOW)


def test_a_model_without_layers_of_bert_cannot_be_fine_tuned(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="fine-tuned"):
        fit_pairs(pairs(), Encoder(EncoderSettings(model=str(write_tiny_model(tmp_path)))))


@pytest.mark.parametrize(("changed", "label"), [({}, "tuned"), ({"a": np.zeros(1)}, "")])
def test_changed_weights_and_their_label_go_together(changed: dict[str, np.ndarray], label: str) -> None:
    with pytest.raises(ValueError, match="label"):
        Encoder(EncoderSettings(), changed, label)
