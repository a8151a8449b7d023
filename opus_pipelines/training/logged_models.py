"""Writes a trained model as an MLflow model: safetensors, the code that reads them, signature and input example."""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from opus_pipelines.lwm.pointer.model import WIDTH, PointerModel
from opus_pipelines.lwm.pointer.store import WEIGHTS, model_id_of, save
from opus_pipelines.training.tracking import LoggedModel

_REQUIREMENTS = ["opus-pipelines", "numpy", "safetensors"]


def logged_pointer(model: PointerModel) -> LoggedModel:
    """Returns a pointer model for the registry."""
    return LoggedModel(model_id_of(model), partial(_save_pointer, model))


def _save_pointer(model: PointerModel, folder: Path) -> None:
    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    number = np.dtype(np.float32)
    signature = ModelSignature(Schema([TensorSpec(number, (-1, WIDTH))]), Schema([TensorSpec(number, (-1,))]))
    with tempfile.TemporaryDirectory() as scratch:
        weights = Path(scratch, WEIGHTS)
        save(model, weights)
        mlflow.pyfunc.save_model(
            folder,
            python_model=str(Path(__file__).with_name("pointer_code.py")),
            artifacts={"weights": str(weights)},
            signature=signature,
            input_example=model.network.center[None].astype(np.float32),  # the means: no row of a client
            pip_requirements=_REQUIREMENTS,
        )
