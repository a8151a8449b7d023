"""Training on the sample's snapshot: held-out figures, the champion, and the commands."""

import shutil
import warnings
from pathlib import Path

import dagster as dg
import pytest

from assets.training import train_pointer
from benchmarks.ablations import ABLATIONS
from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.core.settings import MLflow, Paths, Settings
from opus_pipelines.core.settings_sections import Lwm
from opus_pipelines.generation.records import ContractTerms, GenerationContext
from opus_pipelines.intakes.requirements.intention_encoder import ENCODERS
from opus_pipelines.lake.layout import Lake
from opus_pipelines.language.embedding.cache import CachedEncoder
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.pointer.model import POINTERS
from opus_pipelines.lwm.pointer_backend import PointerBackend
from opus_pipelines.lwm.retrieval.case_memory import memory_of
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.training.tracking import Tracking
from opus_pipelines.lwm.training.train import Trained, TrainingOptions, train
from opus_pipelines.quality.evaluate import TextVectors, item_scores
from opus_pipelines.quality.systems import predict
from opus_pipelines.quality.task_set import Item
from opus_pipelines.wkg.snapshot import Snapshot
from opus_pipelines.workflow.metrics.plan_scores import Plan
from resources.encoder import EncoderResource
from resources.lake import LakeRun
from tests.lwm.training.small_lake import Small

LIGHT = Lwm(perceptrons=1, fine_tune=False)  # one of the three perceptrons: nothing here depends on their number

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def index(sample_lake: Lake) -> SnapshotIndex:
    return SnapshotIndex(Snapshot.open(sample_lake))


@pytest.fixture(scope="module")
def industry(index: SnapshotIndex) -> str:
    """The industry with the fewest cases that can be learnt from."""
    sizes = {name: len(m.ids) for name in index.industries if (m := memory_of(index, name)) is not None}
    return min(sizes, key=lambda name: (sizes[name], name))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake for the models alone, so that the sample's lake stays as it is."""
    return Lake(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def trained(home: Lake, index: SnapshotIndex, industry: str, encoder: TextEncoder) -> Trained:
    snapshots = home.root / "wkg" / index.snapshot.id
    snapshots.mkdir(parents=True)
    tracking = Tracking(home, MLflow())
    options = TrainingOptions([industry], tracking=tracking, lwm=LIGHT)
    return train(home, index, CachedEncoder(encoder, home.root / "vectors"), options)


def test_the_model_is_judged_on_cases_that_it_has_not_seen(
    trained: Trained, index: SnapshotIndex, industry: str
) -> None:
    memory = memory_of(index, industry)
    assert memory is not None
    figures = trained.figures[industry]
    held_out = len(memory.ids) - figures.cases
    assert 0 < figures.asked <= held_out < len(memory.ids) / 2
    assert 0 < figures.similar_cases <= 1
    assert figures.low <= figures.model - figures.similar_cases <= figures.high
    assert trained.loss[-1] < trained.loss[0] / 2


def test_the_model_serves_only_where_it_is_better_beyond_the_interval(
    trained: Trained, home: Lake, industry: str
) -> None:
    champion = POINTERS.open(home).champion
    serving = {} if champion is None else {champion.model_id: champion.industries}
    is_better = trained.figures[industry].low > 0
    assert serving == ({trained.model_id: {industry}} if is_better else {})
    assert trained.promotion.promoted is is_better


def test_the_same_snapshot_gives_the_same_model(small: Small, tmp_path: Path) -> None:
    lake, options = Lake(tmp_path / "lake"), TrainingOptions(lwm=LIGHT)
    shutil.copytree(small.lake.root, lake.root)
    first = train(lake, small.index, small.encoder, options)
    assert first.promotion.promoted
    again = train(lake, small.index, small.encoder, options)
    assert again.model_id == first.model_id
    assert not again.promotion.promoted, "it is the champion already"
    assert [card.parent.name for card in POINTERS.store(lake).folder.glob("*/card.json")] == [first.model_id]


def test_the_encoder_recalls_the_tasks_of_held_out_cases_better_than_the_untrained_intention(
    trained: Trained, home: Lake, industry: str
) -> None:
    assert trained.encoder is not None
    figures, champion = trained.encoder.figures[industry], ENCODERS.open(home).champion
    assert figures.model > figures.untrained + 0.1
    assert figures.low <= figures.model - figures.untrained <= figures.high
    assert figures.serves
    assert champion is not None
    assert champion.industries == {industry}
    version = Tracking(home, MLflow()).client.get_model_version_by_alias("opus-intention", "champion")
    assert version.tags["opus.model"] == champion.model_id


def test_without_similar_cases_the_encoder_says_what_has_to_be_done(
    trained: Trained, home: Lake, index: SnapshotIndex, industry: str, encoder: TextEncoder
) -> None:
    settings, model = Settings(), PointerBackend()
    model.open(home)
    cached = CachedEncoder(encoder, home.root / "vectors")
    context = GenerationContext(index, cached, model, settings, ContractTerms(settings.cost))
    (row, *_) = index.cases.rows_of(industry).tolist()
    (case,) = index.cases.at([row], [1.0], 1.0)
    title, described = next((t, d) for i, t, d, _ in index.snapshot.texts if i == case.implementation_id)
    item = Item("one", described or title or "", Plan(tuple(dict.fromkeys(case.task_keys))), industry=industry)

    def node_f1(without: str) -> float:
        changed = ABLATIONS["no similar cases"].context(ABLATIONS[without].context(context))
        (made,) = predict([item], changed)
        return float(item_scores(made.plan, item, TextVectors(cached))["node_f1"] or 0.0)

    trained_f1, untrained_f1 = node_f1("no composition"), node_f1("untrained Intention")
    assert trained_f1 > max(0.9, untrained_f1 + 0.1)


def test_an_unknown_industry_is_named(home: Lake, index: SnapshotIndex, encoder: TextEncoder) -> None:
    with pytest.raises(InputError, match="space"):
        train(home, index, encoder, TrainingOptions(["space"]))


def test_models_says_where_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--lake", str(tmp_path / "lake"), "models"]) == 0
    assert "opus train" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["pointer", "intention"])
def test_training_needs_a_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str], backend: str) -> None:
    assert main(["--lake", str(tmp_path / "lake"), "train", "--backend", backend]) == 1
    assert "opus rebuild" in capsys.readouterr().err


def test_the_training_is_in_the_record(trained: Trained, home: Lake, industry: str) -> None:
    client = Tracking(home, MLflow()).client
    alias = "champion" if trained.promotion.promoted else "challenger"
    version = client.get_model_version_by_alias("opus-pointer", alias)
    run = client.get_run(version.run_id)
    assert (run.info.status, run.data.tags["opus.model"]) == ("FINISHED", trained.model_id)
    assert run.data.metrics["loss"] == trained.loss[-1]
    assert run.data.metrics[f"{industry}/model"] == trained.figures[industry].model
    assert [d.dataset.name for d in run.inputs.dataset_inputs] == [industry]


def test_nothing_is_written_where_the_snapshot_went_during_the_training(small: Small, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with pytest.raises(InputError, match="forgotten"):
        train(lake, small.index, small.encoder, TrainingOptions(lwm=LIGHT))
    assert POINTERS.open(lake).stored == []


def test_the_weekly_job_trains_and_says_what_came_of_it(small: Small, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    shutil.copytree(small.lake.root, lake.root)
    settings = Settings(paths=Paths(lake=lake.root), lwm=LIGHT, encoder=EncoderSettings(model=str(small.model)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dg.materialize(
            [train_pointer],
            resources={"run": LakeRun.of(settings), "encoder": EncoderResource.of(settings)},
            run_config={"ops": {"train_pointer": {"config": {"industries": [small.industry]}}}},
            selection=["models/pointer"],
        )
    assert found.success
    (made,) = found.asset_materializations_for_node("train_pointer")
    champion = POINTERS.open(lake).champion
    assert champion is not None
    assert made.tags["dagster/data_version"] == champion.model_id
    assert (lake.root / "mlflow" / "mlflow.db").is_file()
