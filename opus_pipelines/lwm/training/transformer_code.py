"""The code of a pointer model that is a transformer, in MLflow. MLflow runs this file itself.

In: arrays by name: `request` [1, d], `clauses` [c, d] with their `places` [c], `candidates` [k, d], their `features`
[k + 1, f] as the first step, the end last, and `pairs` [k, k, 4]. Out: the probabilities [k + 1] of each as the first
step, and of the end, which is 0.
"""

from pathlib import Path
from typing import Any

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from opus_pipelines.lwm.pointer.store import read_transformer


class FirstStep(PythonModel):
    """The transformer as MLflow's model."""

    def load_context(self, context: Any) -> None:
        """Read the weights, which are checked as those in a lake are."""
        self.model = read_transformer(Path(context.artifacts["weights"]), str(context.model_config["size"]))

    def predict(self, context: Any, model_input: Any, params: dict[str, Any] | None = None) -> np.ndarray:
        """Return the probabilities of the first step."""
        return self.model.first_step(model_input)


set_model(FirstStep())
