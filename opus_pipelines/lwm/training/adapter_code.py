"""The code of an adapter in MLflow: it loads the base model of its card, and chooses names. MLflow runs this file.

In: columns `prompt`, the text of a prompt, and `names`, the catalogue as a JSON list. Out: a JSON list of names.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from opus_pipelines.lwm.language_models.causal_model import apply_adapter, load, read_adapter
from opus_pipelines.lwm.language_models.prompts import SYSTEM, Prompt


class AdapterSteps(PythonModel):
    """A causal language model with its adapter as MLflow's model."""

    def load_context(self, context: Any) -> None:
        """Load the base model from the folder that the configuration names, and merge the adapter in."""
        config = context.model_config
        base = load(Path(config["base"]), int(config["max_prompt_tokens"]))
        self.model = apply_adapter(base, read_adapter(Path(context.artifacts["weights"])), int(config["rank"]))

    def predict(self, context: Any, model_input: "pd.DataFrame", params: dict[str, Any] | None = None) -> list[str]:
        """Return the likeliest steps of each prompt."""
        rows = zip(model_input["prompt"], model_input["names"], strict=True)
        prompts = [Prompt(SYSTEM, text, {name: name for name in json.loads(names)}) for text, names in rows]
        return [json.dumps((self.model.sequences(prompt, 1) or [[]])[0]) for prompt in prompts]


set_model(AdapterSteps())
