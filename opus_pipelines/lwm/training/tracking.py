"""The record of trainings in MLflow: parameters, hashes of the data, curves, figures and the model of every training.

Without settings the record is a database in the lake, `mlflow/mlflow.db`, with the models' files beside it. What serves
is decided by the lake alone: the aliases `champion` and `challenger` of the registry repeat it for people. No weights
are pickled: a model is logged as a safetensors file and the code that reads it, with signature and input example.
"""

import json
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import MLflow
from opus_pipelines.core.settings_sections import CausalLm
from opus_pipelines.intakes.requirements.intention_encoder import WEIGHTS as ENCODER_WEIGHTS
from opus_pipelines.intakes.requirements.intention_encoder import IntentionEncoder, encoder_id, save_encoder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.lock import is_alive, this_process
from opus_pipelines.lwm.language_models import adapters
from opus_pipelines.lwm.language_models.adapters import adapter_id
from opus_pipelines.lwm.next_step import Network
from opus_pipelines.lwm.pointer.model import WEIGHTS, PointerModel, model_id_of, save_pointer
from opus_pipelines.lwm.step_writing.model import StepWriter, writer_id

if TYPE_CHECKING:
    from mlflow import MlflowClient


CHAMPION, CHALLENGER = "champion", "challenger"
LAKE, PROCESS, KIND, MODEL = "opus.lake", "opus.process", "opus.kind", "opus.model"
MOST_RUNS = 1_000  # runs of one page of a search
_QUIET = {  # read when MLflow is imported: nothing is reported home, and a server that is not there is named soon
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}


class TrackingError(OpusError):
    """MLflow cannot be reached, or refuses what is logged."""


@dataclass(frozen=True)
class DataHash:
    """What a training learnt from: a name, the number of its cases, and a hash of their ids."""

    name: str
    cases: int
    hash: str


@dataclass(frozen=True)
class LoggedModel:
    """A model for the registry: its id, and `save`, which writes an MLflow model into a folder that is not there."""

    model_id: str
    save: "SaveModel"


class SaveModel(Protocol):
    """Writes an MLflow model with signature and input example."""

    def __call__(self, folder: Path) -> None:
        """Write the model into a folder that is not there yet."""
        ...


@dataclass(frozen=True)
class TrainingRun:
    """One training in the record."""

    client: "MlflowClient"
    run_id: str

    def log_curve(self, name: str, values: Sequence[float]) -> None:
        """Log a value of each epoch, from 1 on."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        with _named_failures():
            self.client.log_batch(self.run_id, [Metric(name, value, now, n) for n, value in enumerate(values, 1)])

    def log_figures(self, figures: Mapping[str, float]) -> None:
        """Log figures, each once."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        with _named_failures():
            self.client.log_batch(self.run_id, [Metric(_key(k), float(v), now, 0) for k, v in figures.items()])


class Tracking:
    """The record of a lake's trainings, in the lake or at the server that the settings name."""

    def __init__(self, lake: Lake, settings: MLflow) -> None:
        self.lake, self.settings = lake, settings

    @property
    def is_local(self) -> bool:
        """Return whether the record lies in the lake."""
        return not self.settings.tracking_uri

    @property
    def home(self) -> Path:
        """Return the folder of a record in the lake."""
        return self.lake.root / "mlflow"

    @property
    def uri(self) -> str:
        """Return the address that MLflow's own commands take (`mlflow ui --backend-store-uri`)."""
        return self.settings.tracking_uri or f"sqlite:///{self.home / 'mlflow.db'}"

    @contextmanager
    def run(self, kind: str, parameters: Mapping[str, Any], data: Sequence[DataHash]) -> Iterator[TrainingRun]:
        """Open the record of one training; its end, and an error with its text, are recorded.

        Runs that a process left open when it was killed are marked as such first. Raises TrackingError where MLflow
        cannot be reached.
        """
        with _named_failures():
            experiment = self._experiment()
            from mlflow.entities import Dataset, DatasetInput, Param

            self._close_dead_runs(experiment)
            tags = {LAKE: self._lake_mark, PROCESS: this_process(), KIND: kind}
            run = TrainingRun(self.client, self.client.create_run(experiment, tags=tags, run_name=kind).info.run_id)
            params = [Param(_key(name), str(value)[:500]) for name, value in parameters.items()]
            self.client.log_batch(run.run_id, params=params)
            source = json.dumps({"lake": self._lake_mark})
            inputs = [DatasetInput(Dataset(d.name, d.hash, "opus", source, profile=str(d.cases))) for d in data]
            self.client.log_inputs(run.run_id, inputs)
        try:
            yield run
        except BaseException as error:
            with _named_failures():
                self.client.set_tag(run.run_id, "opus.error", str(error)[:500] or type(error).__name__)
                self.client.set_terminated(run.run_id, "FAILED" if isinstance(error, Exception) else "KILLED")
            raise
        with _named_failures():
            self.client.set_terminated(run.run_id)

    def register(self, run: TrainingRun, kind: str, model: LoggedModel, promoted: bool) -> None:
        """Log a model, register it as a new version, and give it the alias challenger, or champion where promoted."""
        name = self.name_of(kind)
        with _named_failures(), tempfile.TemporaryDirectory() as scratch:
            model.save(Path(scratch, "model"))
            self.client.log_artifacts(run.run_id, str(Path(scratch, "model")), "model")
            if not self._is_registered(name):
                self.client.create_registered_model(name)
            source = f"runs:/{run.run_id}/model"
            tags = {MODEL: model.model_id, LAKE: self._lake_mark}
            version = self.client.create_model_version(name, source, run.run_id, tags=tags).version
            self.client.set_tag(run.run_id, MODEL, model.model_id)
            self.client.set_registered_model_alias(name, CHAMPION if promoted else CHALLENGER, version)

    def set_champion(self, kind: str, model_id: str) -> bool:
        """Give the alias champion to the newest version of a model; return whether the registry has one."""
        with _named_failures():
            name = self.name_of(kind)
            versions = self._versions(name) if self._is_registered(name) else []
            of_model = [int(v.version) for v in versions if v.tags.get(MODEL) == model_id]
            if of_model:
                self.client.set_registered_model_alias(name, CHAMPION, str(max(of_model)))
        return bool(of_model)

    def forget(self) -> int:
        """Delete every training of this lake from the server, its artifacts included; return how many there were.

        A record in the lake is removed with the models (`wkg.upkeep.retention.withdraw_models`).
        """
        if self.is_local:
            return 0
        with _named_failures():
            found = self.client.get_experiment_by_name(self.settings.experiment)
            if found is None:
                return 0
            from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

            for model in self.client.search_registered_models(f"name LIKE '{self.settings.model_prefix}-%'"):
                for version in self._versions(model.name):
                    if version.tags.get(LAKE) == self._lake_mark:
                        self.client.delete_model_version(model.name, version.version)
            runs = self._runs(str(found.experiment_id))
            for run in runs:
                get_artifact_repository(run.info.artifact_uri, tracking_uri=self.uri).delete_artifacts()
                self.client.delete_run(run.info.run_id)
        return len(runs)

    def name_of(self, kind: str) -> str:
        """Return the name of the registered model of a kind."""
        return f"{self.settings.model_prefix}-{kind}"

    @cached_property
    def client(self) -> "MlflowClient":
        """MLflow's client of this record."""
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        with _named_failures():
            from mlflow import MlflowClient

            logging.getLogger("mlflow").setLevel(logging.WARNING)  # its import sets another
            if self.is_local:
                self.home.mkdir(parents=True, exist_ok=True)
            return MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)

    @cached_property
    def _lake_mark(self) -> str:
        """A mark that tells this lake's runs from those of others on one server; no path is told."""
        return digest("lake", str(self.lake.root))

    def _experiment(self) -> str:
        found = self.client.get_experiment_by_name(self.settings.experiment)
        if found is not None:
            return str(found.experiment_id)
        where = (self.home / "artifacts").as_uri() if self.is_local else self.settings.artifact_location or None
        return str(self.client.create_experiment(self.settings.experiment, artifact_location=where))

    def _close_dead_runs(self, experiment: str) -> None:
        for run in self._runs(experiment, "attributes.status = 'RUNNING'"):
            if not is_alive(run.data.tags.get(PROCESS, "")):
                self.client.set_terminated(run.info.run_id, "KILLED")

    def _runs(self, experiment: str, *conditions: str) -> "list[Any]":
        """The trainings of this lake that are not deleted, page by page."""
        wanted = " and ".join([f"tags.`{LAKE}` = '{self._lake_mark}'", *conditions])
        runs: list[Any] = []
        token = None
        while True:
            page = self.client.search_runs([experiment], wanted, max_results=MOST_RUNS, page_token=token)
            runs += page
            token = page.token
            if not token:
                return runs

    def _is_registered(self, name: str) -> bool:
        return any(found.name == name for found in self.client.search_registered_models(f"name = '{name}'"))

    def _versions(self, name: str) -> "list[Any]":
        return list(self.client.search_model_versions(f"name = '{name}'"))


def _key(name: str) -> str:
    """Return a name with the letters that MLflow allows in the names of parameters and figures."""
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in name)[:200]


@contextmanager
def _named_failures() -> Iterator[None]:
    """Turn any error of MLflow into a TrackingError, and keep its notices from whoever reads the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except OpusError:
            raise
        except Exception as error:
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise TrackingError(f"MLflow could not be written: {first[0][:300]}; see [mlflow] in opus.toml") from error


_REQUIREMENTS = ["opus-pipelines", "numpy", "safetensors"]


def logged_pointer(model: PointerModel) -> LoggedModel:
    """Returns a pointer model for the registry."""
    return LoggedModel(model_id_of(model), partial(_save_network, model.network))


def logged_writer(writer: StepWriter) -> LoggedModel:
    """Returns a step writer for the registry."""
    return LoggedModel(writer_id(writer), partial(_save_network, writer.network))


def logged_adapter(weights: Mapping[str, np.ndarray], settings: CausalLm) -> LoggedModel:
    """Returns an adapter for the registry; the base model is named by its folder, and not logged."""
    return LoggedModel(adapter_id(weights), partial(_save_adapter, weights, settings))


def logged_encoder(encoder: IntentionEncoder) -> LoggedModel:
    """Returns an Intention encoder for the registry."""
    return LoggedModel(encoder_id(encoder), partial(_save_encoder, encoder))


def _save_encoder(encoder: IntentionEncoder, folder: Path) -> None:
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    vectors = TensorSpec(np.dtype(np.float32), (-1, encoder.dimension))
    _save(
        folder,
        "intention_code.py",
        _Weights(ENCODER_WEIGHTS, partial(save_encoder, encoder)),
        signature=ModelSignature(Schema([vectors]), Schema([vectors])),
        input_example=np.eye(1, encoder.dimension, dtype=np.float32),  # a vector of nobody
    )


def _save_adapter(weights: Mapping[str, np.ndarray], settings: CausalLm, folder: Path) -> None:
    import pandas as pd
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    signature = ModelSignature(
        Schema([ColSpec(DataType.string, "prompt"), ColSpec(DataType.string, "names")]),
        Schema([ColSpec(DataType.string)]),
    )
    config = {
        "base": str(settings.path),
        "rank": settings.lora_rank,
        "max_prompt_tokens": settings.max_prompt_tokens,
    }
    example = {"prompt": ['goal: "Pay the invoice"'], "names": ['["Check invoice", "Pay invoice"]']}  # of nobody
    _save(
        folder,
        "adapter_code.py",
        _Weights(adapters.WEIGHTS, partial(adapters.save_adapter, weights), ("transformers", "peft", "torch")),
        signature=signature,
        input_example=pd.DataFrame(example),
        model_config=config,
    )


def _save_network(network: Network, folder: Path) -> None:
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    number, width = np.dtype(np.float32), len(network.center)
    signature = ModelSignature(Schema([TensorSpec(number, (-1, width))]), Schema([TensorSpec(number, (-1,))]))
    _save(
        folder,
        "network_code.py",
        _Weights(WEIGHTS, partial(save_pointer, PointerModel(network))),
        signature=signature,
        input_example=network.center[None].astype(np.float32),  # the means: no row of a client
        model_config={"width": width},
    )


@dataclass(frozen=True)
class _Weights:
    """The file of a model's weights, what writes it, and the packages that reading it needs beside the usual ones."""

    name: str
    write: Callable[[Path], None]
    packages: tuple[str, ...] = ()


def _save(folder: Path, code: str, weights: _Weights, **facts: Any) -> None:
    """Writes an MLflow model whose `code` beside this module reads the weights; `facts` are those of `save_model`."""
    import mlflow.pyfunc

    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, weights.name)
        weights.write(file)
        mlflow.pyfunc.save_model(
            folder,
            python_model=str(Path(__file__).with_name(code)),
            artifacts={"weights": str(file)},
            pip_requirements=[*_REQUIREMENTS, *weights.packages],
            **facts,
        )
