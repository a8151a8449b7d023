"""Fine-tuning a causal language model: a tiny one learns the steps of a few cases, and one of the sample."""

import json
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import CausalLm, Generation, MLflow, Paths, Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.interface import backend_of
from opus_pipelines.lwm.language_models.adapters import ADAPTERS, AdapterError, Example, fit_adapter
from opus_pipelines.lwm.language_models.backends import CausalLmBackend
from opus_pipelines.lwm.language_models.causal_model import adapter_of, apply_adapter, load, with_adapter
from opus_pipelines.lwm.language_models.prompts import prompt_of
from opus_pipelines.lwm.retrieval.case_memory import memory_of
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.training.tracking import Tracking, logged_adapter
from opus_pipelines.lwm.training.train import TrainingOptions
from opus_pipelines.lwm.training.train_adapter import train_adapter
from opus_pipelines.wkg.snapshot import Snapshot
from tests.lwm.language_models.lm_requests import request
from tests.lwm.language_models.tiny_model import write_tiny_model

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # notices of torch, peft and MLflow


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


def examples(count: int) -> list[Example]:
    prompts = [prompt_of(request(f"Pay invoice {n}")) for n in range(count)]
    return [Example(prompt, ("Receive invoice", "Check invoice", "Pay invoice")) for prompt in prompts]


def test_a_tiny_model_learns_the_steps_of_history(path: Path) -> None:
    loss: list[float] = []
    settings = CausalLm(path=path, epochs=12, learning_rate=0.02, lora_rank=8, max_prompt_tokens=200)
    weights = fit_adapter(load(path, 200), examples(8), settings, lambda _, mean: loss.append(mean))
    assert loss[-1] < loss[0] / 3
    prompt = prompt_of(request("Pay invoice 99"))
    untrained, adapted = load(path, 200), apply_adapter(load(path, 200), weights, 8)
    expected = ["Receive invoice", "Check invoice", "Pay invoice"]
    assert adapted.sequences(prompt, 3)[0] == expected
    assert untrained.sequences(prompt, 3)[0] != expected


def test_the_same_cases_give_the_same_adapter(path: Path) -> None:
    settings = CausalLm(path=path, epochs=1, lora_rank=2, max_prompt_tokens=100)
    one, other = (fit_adapter(load(path, 100), examples(2), settings) for _ in range(2))
    assert all(np.array_equal(part, other[name]) for name, part in one.items())


def test_a_loss_that_is_not_finite_stops_the_training(path: Path) -> None:
    settings = CausalLm(path=path, epochs=3, learning_rate=1e30, max_prompt_tokens=100)
    with pytest.raises(AdapterError, match="not finite"):
        fit_adapter(load(path, 100), examples(3), settings)


def test_mlflow_loads_an_adapter_and_chooses_names(path: Path, tmp_path: Path) -> None:
    import mlflow
    import pandas as pd

    weights = adapter_of(with_adapter(load(path, 64).model, 2))
    tracking = Tracking(Lake(tmp_path), MLflow())
    with tracking.run("causallm", {}, []) as run:
        tracking.register(run, "causallm", logged_adapter(weights, CausalLm(path=path, lora_rank=2)), True)
    mlflow.set_tracking_uri(tracking.uri)
    loaded = mlflow.pyfunc.load_model("models:/opus-causallm@champion")
    names = ["Check invoice", "Pay invoice"]
    (answer,) = loaded.predict(pd.DataFrame({"prompt": ["Pay it"], "names": [json.dumps(names)]}))
    assert json.loads(answer)
    assert set(json.loads(answer)) <= set(names)
    assert loaded.metadata.signature is not None


def test_there_must_be_an_example(path: Path) -> None:
    with pytest.raises(AdapterError):
        fit_adapter(load(path, 100), [], CausalLm(path=path))


@pytest.mark.nightly
@pytest.mark.model
def test_an_adapter_is_trained_on_history_judged_recorded_and_kept(
    path: Path, tmp_path: Path, sample_lake: Lake
) -> None:
    index = SnapshotIndex(Snapshot.open(sample_lake))
    sizes = {name: len(m.ids) for name in index.industries if (m := memory_of(index, name)) is not None}
    industry = min(sizes, key=lambda name: (sizes[name], name))
    lake = Lake(tmp_path / "lake")
    (lake.root / "wkg" / index.snapshot.id).mkdir(parents=True)
    settings = Settings(
        paths=Paths(lake=lake.root),
        generation=Generation(lwm_backend="causal_lm"),
        causal_lm=CausalLm(path=path, cases=6, epochs=1, max_prompt_tokens=128, lora_rank=2, sequences=1),
    )
    tracking = Tracking(lake, MLflow())
    trained = train_adapter(lake, index, settings, TrainingOptions([industry], tracking=tracking))
    figures = trained.figures[industry]
    assert figures.asked > 2
    assert figures.low <= figures.model - figures.similar_cases <= figures.high
    assert [stored.problem for stored in ADAPTERS.open(lake).stored] == [None]
    assert (ADAPTERS.store(lake).champions() == [trained.model_id]) == trained.promotion.promoted
    ADAPTERS.store(lake).promote(trained.model_id)
    made = backend_of(settings)
    assert isinstance(made, CausalLmBackend)
    assert trained.model_id in made.version
    alias = "champion" if trained.promotion.promoted else "challenger"
    version = tracking.client.get_model_version_by_alias("opus-causallm", alias)
    assert tracking.client.get_run(version.run_id).data.metrics["loss"] == trained.loss[-1]
    with pytest.raises(SettingsError):
        train_adapter(lake, index, Settings(paths=Paths(lake=lake.root)), TrainingOptions())
