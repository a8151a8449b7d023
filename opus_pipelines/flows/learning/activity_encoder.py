"""The fine-tuned encoder of activities: trained on pairs, judged on held-out clauses, kept in the lake, read from it.

It serves only where `[flows] encoder` asks for it, and only a model that recalled more held-out clauses at the first
place than the plain encoder did, beyond the 95 % interval of the paired difference.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import InputError, LakeError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.activity_features import FeatureTable
from opus_pipelines.flows.from_text.alignment import learning_examples
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import learn
from opus_pipelines.flows.from_text.synthesis import Example
from opus_pipelines.flows.learning.activity_pairs import MADE, activity_pairs, texts_of
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models.model_files import content_of, read_tensors, save_tensors
from opus_pipelines.lake.models.model_store import CARD, ModelStore, Opened
from opus_pipelines.language.embedding.encoder import Encoder, TextEncoder
from opus_pipelines.lwm.fine_tuning.text_pairs import PairTraining, fit_pairs
from opus_pipelines.workflow.metrics.intervals import interval

KIND, WEIGHTS = "activity_encoder", "layers.safetensors"
VERSION = 1  # raised where a model of an earlier version would encode in another way
HELD_OUT = 4  # one task of so many is held out, by the hash of its utterance
_REMEDY = "run `opus train --backend activity_encoder --flows FOLDER`"


@dataclass(frozen=True)
class EncoderTraining:
    """How an encoder is trained, and how many clauses are made from the catalogue."""

    pairs: PairTraining = field(default_factory=PairTraining)
    made: int = MADE


@dataclass(frozen=True)
class EncoderFigures:
    """Recall of the right activity of held-out clauses at the first place.

    `low` and `high`: the 95 % interval of the mean of fine-tuned minus plain, drawn over utterances.
    """

    pairs: int
    asked: int
    plain: float
    fine_tuned: float
    low: float
    high: float

    @property
    def is_better(self) -> bool:
        """Whether the fine-tuned encoder is better beyond the interval."""
        return self.low > 0


@dataclass(frozen=True)
class TrainedEncoder:
    """A model in the lake, its figures, and the mean loss of each epoch in nats of a question."""

    model_id: str
    figures: EncoderFigures
    loss: tuple[float, ...]


@dataclass(frozen=True)
class EncoderChampion:
    """The model that serves: its id, the name of the plain encoder, and the weights that replace its own."""

    model_id: str
    encoder: str
    weights: Mapping[str, np.ndarray]


def store_of(lake: Lake) -> ModelStore:
    """Returns the fine-tuned encoders of a lake."""
    return ModelStore(lake, KIND)


def fitted(
    table: FeatureTable,
    tasks: Sequence[FlowTask],
    how: EncoderTraining | None = None,
    report: Callable[[int, float], None] | None = None,
) -> dict[str, np.ndarray]:
    """Returns the weights that are learnt from the tasks and from the catalogue of the table.

    The table's encoder must be a plain `Encoder`. Raises FineTuningError and SettingsError as `fit_pairs` does.
    """
    encoder = plain_encoder(table)
    ranker = learn(table.catalogue, tasks, encoder, table).ranker
    how = how or EncoderTraining()
    return fit_pairs(activity_pairs(table, tasks, how.made, ranker), encoder, how.pairs, report)


def plain_encoder(table: FeatureTable) -> Encoder:
    """Returns the encoder of a table. Raises InputError where it has no layers that can be trained."""
    if not isinstance(table.encoder, Encoder):
        raise InputError(f"the encoder {table.encoder.name!r} cannot be fine-tuned; set encoder.model to a BERT model")
    return table.encoder


def changed_encoder(settings: EncoderSettings, weights: Mapping[str, np.ndarray]) -> Encoder:
    """Returns the encoder of the settings with these weights; its name tells them apart."""
    return Encoder(settings, weights, _id(weights))


def ranks(table: FeatureTable, asked: Sequence[Example]) -> list[int]:
    """Returns for each clause how many activities have a higher cosine than the right one, 0 for the best.

    The clause is encoded with the application that is carried over, as the ranker does.
    """
    place = {activity.id: n for n, activity in enumerate(table.catalogue.activities)}
    texts = [texts_of(example, table)[-1] for example in asked]
    found = []
    for example, vector in zip(asked, table.encoder.encode(texts), strict=True):
        cosines = table.texts @ vector
        found.append(int((cosines > cosines[place[example.activity]]).sum()))
    return found


def train_encoder(
    lake: Lake,
    found: tuple[ActivityCatalogue, Sequence[FlowTask]],
    settings: EncoderSettings,
    report: Callable[[str], None] = lambda line: None,
    how: EncoderTraining | None = None,
) -> TrainedEncoder:
    """Trains an encoder on three quarters of the tasks, judges it on the others, and keeps it in the lake.

    The model that was judged is the one that is kept. It becomes the champion where it is better than the plain encoder
    beyond the interval. The caller holds the lake's lock. Raises InputError where nothing is held out or left to learn.
    """
    how = how or EncoderTraining()
    catalogue, tasks = found
    known = [task for task in tasks if task.expected is not None and task.unread_prior is None]
    asked = [task for task in known if int(digest("flows", task.utterance)[:8], 16) % HELD_OUT == 0]
    taught = [task for task in known if task not in asked]
    table = FeatureTable(catalogue, Encoder(settings))
    ranker = learn(catalogue, taught, plain_encoder(table), table).ranker
    held = [(task.utterance, one) for task in asked for one in learning_examples([task], ranker)]
    held = [(utterance, one) for utterance, one in held if one.activity in catalogue.by_id]
    if not taught or not held:
        raise InputError(f"{len(taught)} flows to learn from and {len(held)} held-out clauses; give more flows")
    pairs = activity_pairs(table, taught, how.made, ranker)
    report(f"the encoder is fine-tuned on {len(pairs.questions):,} pairs of {len(taught):,} flows and the catalogue")
    loss: list[float] = []

    def told(epoch: int, mean: float) -> None:
        loss.append(round(mean, 6))
        report(f"epoch {epoch}: {mean:.3f} nats a question")

    weights = fit_pairs(pairs, plain_encoder(table), how.pairs, told)
    changed = FeatureTable(catalogue, changed_encoder(settings, weights))
    examples = [one for _, one in held]
    hits = [[float(rank == 0) for rank in ranks(one, examples)] for one in (table, changed)]
    low, high = interval([new - old for old, new in zip(*hits, strict=True)], [utterance for utterance, _ in held])
    plain, tuned = (round(float(np.mean(one)), 6) for one in hits)
    figures = EncoderFigures(len(pairs.questions), len(held), plain, tuned, round(low, 6), round(high, 6))
    name = keep(lake, weights, {"encoder": settings.model, "figures": asdict(figures), "loss": loss})
    if figures.is_better:
        store_of(lake).promote(name)
    return TrainedEncoder(name, figures, tuple(loss))


def keep(lake: Lake, weights: Mapping[str, np.ndarray], card: Mapping[str, Any]) -> str:
    """Writes weights with their card as the newest model, and returns its id. The card names the `encoder`."""
    name = _id(weights)
    store_of(lake).keep(name, {**card, "version": VERSION}, lambda folder: save_tensors(weights, folder / WEIGHTS))
    return name


def opened(lake: Lake) -> Opened[EncoderChampion]:
    """Returns the model that serves, and what is known of all; a damaged one is named with its reason."""
    return store_of(lake).open(_read)


def served_encoder(lake: Lake, settings: EncoderSettings) -> TextEncoder:
    """Returns the fine-tuned encoder that serves. Raises LakeError where none does, or it is of another encoder."""
    found = opened(lake)
    if found.champion is None:
        problems = "; ".join(f"{one.model_id}: {one.problem}" for one in found.stored if one.problem)
        raise LakeError(
            f'flows.encoder = "fine_tuned", and no fine-tuned encoder serves{f" ({problems})" if problems else ""}; '
            f'{_REMEDY}, or set it to "plain"'
        )
    base = found.champion.encoder
    if base != settings.model:
        raise LakeError(
            f"the fine-tuned encoder was made of {base!r}, and encoder.model is {settings.model!r}; {_REMEDY}"
        )
    return changed_encoder(settings, found.champion.weights)


def _id(weights: Mapping[str, np.ndarray]) -> str:
    return make_id("m", KIND, VERSION, *content_of(dict(sorted(weights.items()))))


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> EncoderChampion:
    base = card.get("encoder")
    if card.get("version") != VERSION or not isinstance(base, str):
        raise LakeError(f"{CARD} is of another version; {_REMEDY}")
    weights = read_tensors(folder / WEIGHTS, "a fine-tuned encoder")
    if _id(weights) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; {_REMEDY}")
    return EncoderChampion(name, base, weights)
