"""The code of an Intention encoder in MLflow: it reads the weights and maps vectors of Γ. MLflow runs this file itself.

In: vectors [n, d] of Γ. Out: vectors [n, d] in the space in which they are compared with tasks.
"""

from pathlib import Path
from typing import Any

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from opus_pipelines.intakes.requirements.intention_encoder import read_encoder


class IntentionVectors(PythonModel):
    """The Intention encoder as MLflow's model."""

    def load_context(self, context: Any) -> None:
        """Read the weights, which are checked as those in a lake are."""
        self.encoder = read_encoder(Path(context.artifacts["weights"]))

    def predict(self, context: Any, model_input: np.ndarray, params: dict[str, Any] | None = None) -> np.ndarray:
        """Return the mapped vectors."""
        return self.encoder.intentions(np.asarray(model_input, np.float32)).astype(np.float32)


set_model(IntentionVectors())
