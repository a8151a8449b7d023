"""The code of a scoring network in MLflow, of a pointer model or a step writer. MLflow runs this file itself.

In: the features [candidates, f] of the candidates of one prefix; NaN where one is missing. Out: their scores
[candidates]; the softmax of the scores is the probability of each as the next step.
"""

from pathlib import Path
from typing import Any

import numpy as np
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from opus_pipelines.lwm.pointer.model import read_network


class NetworkScores(PythonModel):
    """The scoring network as MLflow's model."""

    def load_context(self, context: Any) -> None:
        """Read the weights, which are checked as those in a lake are."""
        self.network = read_network(Path(context.artifacts["weights"]), int(context.model_config["width"]))

    def predict(self, context: Any, model_input: np.ndarray, params: dict[str, Any] | None = None) -> np.ndarray:
        """Return the scores of candidates with these features."""
        return self.network.scores(np.asarray(model_input, np.float32)).astype(np.float32)


set_model(NetworkScores())
