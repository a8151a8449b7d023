"""The record of trainings in MLflow: in the lake, and at another address."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.settings import MLflow
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.next_step import TrainingError
from opus_pipelines.lwm.pointer.learning import train_pointer
from opus_pipelines.lwm.pointer.model import PointerModel, model_id_of
from opus_pipelines.lwm.training.tracking import DataHash, Tracking, TrackingError, logged_pointer
from opus_pipelines.wkg.upkeep.retention import withdraw_models
from tests.lwm.pointer.pointer_fixtures import asks_for, memory, plans, request

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # MLflow's own notices of other libraries
DATA = [DataHash("retail", 60, "0123456789abcdef")]


@pytest.fixture(scope="module")
def model() -> PointerModel:
    cases = plans(60)
    return train_pointer([(memory(cases), [request(asks_for(case)) for case in cases])])


@pytest.fixture(scope="module")
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Tracking:
    return Tracking(Lake(tmp_path_factory.mktemp("lake")), MLflow())


def runs(tracking: Tracking) -> list[Any]:
    """The trainings, the newest first."""
    found = tracking.client.get_experiment_by_name("opus")
    return list(tracking.client.search_runs([found.experiment_id]))


def log(tracking: Tracking, model: PointerModel, promoted: bool) -> str:
    with tracking.run("pointer", {"seed": 0, "learning rate": 0.003}, DATA) as run:
        run.log_curve("loss", [2.0, 1.5, 1.0])
        run.log_figures({"retail, EU/model": 0.8})
        tracking.register(run, "pointer", logged_pointer(model), promoted)
    return run.run_id


def test_a_training_is_recorded_whole(tracking: Tracking, model: PointerModel) -> None:
    run_id = log(tracking, model, promoted=True)
    run = tracking.client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params == {"seed": "0", "learning rate": "0.003"}
    assert [m.value for m in tracking.client.get_metric_history(run_id, "loss")] == [2.0, 1.5, 1.0]
    assert run.data.metrics["retail_ EU/model"] == 0.8
    assert [(d.dataset.name, d.dataset.digest) for d in run.inputs.dataset_inputs] == [("retail", "0123456789abcdef")]
    assert (tracking.home / "mlflow.db").is_file()


def test_the_model_has_a_signature_and_an_example_and_no_pickle(tracking: Tracking, model: PointerModel) -> None:
    import mlflow

    log(tracking, model, promoted=True)
    mlflow.set_tracking_uri(tracking.uri)
    loaded = mlflow.pyfunc.load_model("models:/opus-pointer@champion")
    rows = np.random.default_rng(0).random((4, len(model.network.center))).astype(np.float32)
    assert np.allclose(loaded.predict(rows), model.network.scores(rows))
    assert loaded.metadata.signature.inputs.to_dict()[0]["tensor-spec"]["dtype"] == "float32"
    assert loaded.input_example is not None
    files = [path.name for path in tracking.home.rglob("*") if path.is_file()]
    assert "model.safetensors" in files
    assert [name for name in files if name.endswith((".pkl", ".pickle", ".pt", ".bin"))] == []


def test_the_aliases_name_champion_and_challenger(tracking: Tracking, model: PointerModel) -> None:
    first, second = log(tracking, model, promoted=True), log(tracking, model, promoted=False)

    def alias(name: str) -> str:
        return tracking.client.get_model_version_by_alias("opus-pointer", name).run_id

    assert (alias("champion"), alias("challenger")) == (first, second)
    assert tracking.set_champion("pointer", model_id_of(model))
    assert alias("champion") == second, "the newest version of this model"
    assert not tracking.set_champion("pointer", "m0")
    assert not tracking.set_champion("other", "m0")


def fail(tracking: Tracking, error: BaseException) -> None:
    with tracking.run("pointer", {}, DATA):
        raise error


def test_a_training_that_fails_is_recorded_with_its_reason(tracking: Tracking) -> None:
    with pytest.raises(TrainingError):
        fail(tracking, TrainingError("the loss is not finite in epoch 3"))
    assert runs(tracking)[0].info.status == "FAILED"
    assert runs(tracking)[0].data.tags["opus.error"] == "the loss is not finite in epoch 3"
    with pytest.raises(KeyboardInterrupt):
        fail(tracking, KeyboardInterrupt())
    assert runs(tracking)[0].info.status == "KILLED"


def test_a_training_whose_process_was_killed_is_closed_by_the_next(tracking: Tracking) -> None:
    with tracking.run("pointer", {}, DATA) as run:
        tracking.client.set_tag(run.run_id, "opus.process", "999999999:1")
        with tracking.run("pointer", {}, DATA):
            assert tracking.client.get_run(run.run_id).info.status == "KILLED"


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    absent = Tracking(Lake(tmp_path), MLflow(tracking_uri="http://127.0.0.1:9"))
    with pytest.raises(TrackingError, match=r"\[mlflow\]"):
        fail(absent, ValueError())


def test_another_address_takes_the_record_and_loses_it_when_a_client_is_forgotten(
    tmp_path: Path, model: PointerModel
) -> None:
    settings = MLflow(tracking_uri=f"sqlite:///{tmp_path / 'm.db'}", artifact_location=(tmp_path / "files").as_uri())
    one, other = Tracking(Lake(tmp_path / "one"), settings), Tracking(Lake(tmp_path / "other"), settings)
    log(one, model, promoted=True)
    kept = log(other, model, promoted=True)
    assert not (tmp_path / "one").exists()
    assert one.forget() == 1
    assert [run.info.run_id for run in runs(other)] == [kept]
    assert len(list((tmp_path / "files").rglob("model.safetensors"))) == 1
    assert other.client.get_model_version_by_alias("opus-pointer", "champion").run_id == kept
    assert one.forget() == 0


def test_a_model_of_a_snapshot_that_is_gone_is_withdrawn(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    (lake.root / "models" / "pointer" / "m1").mkdir(parents=True)
    (lake.root / "models" / "pointer" / "m1" / "card.json").write_text('{"snapshot": "w1"}')
    assert withdraw_models(lake, [], {"w2": {}}) == 1


def test_a_record_in_the_lake_goes_with_the_models(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    (lake.root / "mlflow" / "artifacts").mkdir(parents=True)
    (lake.root / "models" / "pointer" / "m1").mkdir(parents=True)
    (lake.root / "models" / "pointer" / "current.json").write_text("{}")
    (lake.root / "models" / "pointer" / "m1" / "card.json").write_text('{"snapshot": "w1"}')
    assert withdraw_models(lake, [], {"w1": {}}) == 0
    assert withdraw_models(lake, ["w1"], {"w1": {}}) == 1
    assert [path for path in lake.root.rglob("*") if path.name != ".staging"] == []
