"""Writes a trained model as an MLflow model: safetensors, the code that reads them, signature and input example."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.model_settings import CausalLm
from opus_pipelines.intakes.requirements.encoder_store import WEIGHTS as ENCODER_WEIGHTS
from opus_pipelines.intakes.requirements.encoder_store import encoder_id, save_encoder
from opus_pipelines.intakes.requirements.intention_encoder import IntentionEncoder
from opus_pipelines.lwm.language_models import adapters
from opus_pipelines.lwm.language_models.adapters import adapter_id
from opus_pipelines.lwm.next_step.network import Network
from opus_pipelines.lwm.pointer.model import PointerModel
from opus_pipelines.lwm.pointer.store import WEIGHTS, model_id_of, save
from opus_pipelines.lwm.step_writing.model import StepWriter
from opus_pipelines.lwm.step_writing.store import writer_id
from opus_pipelines.lwm.training.tracking import LoggedModel

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
        _Weights(WEIGHTS, partial(save, PointerModel(network))),
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
