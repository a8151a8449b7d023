"""The flow of an utterance by the language model that the settings name, instead of the trained ranker."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.settings import Settings

if TYPE_CHECKING:
    from opus_pipelines.flow_generation.flow_folder import FlowTask
    from opus_pipelines.flow_generation.generator import FlowWriter
    from opus_pipelines.flow_generation.language_model import ModelFlow

SHOWN = 5  # demonstrations in a prompt


def model_flow(
    settings: Settings, writer: "FlowWriter", tasks: "Sequence[FlowTask]", utterance: str, backend: str
) -> "ModelFlow":
    """Returns the flow of a language model within the catalogue, with the number of calls that were repaired.

    Raises InputError or SettingsError where the settings of the backend are missing.
    """
    from opus_pipelines.flow_generation.demonstrations import Demonstrations
    from opus_pipelines.flow_generation.language_model import ConstrainedWriter, EndpointWriter, FlowPrompter

    prompter = FlowPrompter(writer, Demonstrations(tasks, writer.ranker.table.encoder), SHOWN)
    if backend == "openai_compatible":
        endpoint = settings.openai_compatible
        if not endpoint.url:
            raise InputError("no endpoint is set; state openai_compatible.url and openai_compatible.model")
        name = endpoint.api_key_variable
        if name and name not in os.environ:
            raise SettingsError(f"the variable {name} (openai_compatible.api_key_variable) is not set")
        return EndpointWriter(prompter, endpoint, os.environ.get(name) if name else None).new(utterance)
    if settings.causal_lm.path is None:
        raise InputError("no language model is set; state the folder of one as causal_lm.path")
    from opus_pipelines.language_models.transformer import load

    model = load(settings.causal_lm.path, settings.causal_lm.max_prompt_tokens)
    return ConstrainedWriter(prompter, model).new(utterance)
