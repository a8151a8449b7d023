"""The language models that may write flows, as the settings describe them. Nothing is loaded before a flow is asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.flows.models.prompts import VERSION, FlowPrompter, ModelFlow
from opus_pipelines.lwm.language_models.paid_client import key_of, require_prices

if TYPE_CHECKING:
    from opus_pipelines.flows.from_text.flow_folder import FlowTask
    from opus_pipelines.flows.from_text.generator import FlowWriter
    from opus_pipelines.flows.models.endpoint_writer import Keeping
    from opus_pipelines.lwm.language_models.transformer import LanguageModel
    from opus_pipelines.workflow.blocks.model import Flow

RANKER, CAUSAL, ENDPOINT = "ranker", "causal_lm", "openai_compatible"
BACKENDS = (RANKER, CAUSAL, ENDPOINT)  # the ranker is the generator without a language model


class ModelWriter(Protocol):
    """Writes a flow, or the whole flow after an edit of `prior`."""

    def new(self, utterance: str, prior: "Flow | None" = None) -> ModelFlow:
        """Returns the flow. Raises OpusError where there is none."""


@dataclass(frozen=True)
class FlowBackend:
    """A language model that writes flows; `chosen` makes one whose settings are complete."""

    name: str
    settings: Settings

    @cached_property
    def version(self) -> str:
        """What flows depend on besides the request: the prompts, and the model or the address and its name."""
        if self.name == ENDPOINT:
            endpoint = self.settings.openai_compatible
            return f"{self.name}-{VERSION}-{digest(endpoint.url, endpoint.model, endpoint.max_tokens)[:12]}"
        from opus_pipelines.lwm.language_models.transformer import base_hash

        assert self.settings.causal_lm.path is not None
        depends = f"{base_hash(self.settings.causal_lm.path)[:12]}-{self.settings.causal_lm.max_prompt_tokens}"
        return f"{self.name}-{VERSION}-{depends}"

    def writer(self, learnt: "FlowWriter", known: "Sequence[FlowTask]", keeping: "Keeping | None") -> ModelWriter:
        """Returns the writer whose prompts show flows of `known`; it may be asked for many flows."""
        from opus_pipelines.flows.from_text.demonstrations import Demonstrations
        from opus_pipelines.flows.models.constrained_writer import ConstrainedWriter
        from opus_pipelines.flows.models.endpoint_writer import EndpointWriter

        prompter = FlowPrompter(learnt, Demonstrations(known, learnt.ranker.table.encoder))
        if self.name == CAUSAL:
            return ConstrainedWriter(prompter, self._language_model)
        return EndpointWriter(prompter, self.settings.openai_compatible, keeping)

    @cached_property
    def _language_model(self) -> "LanguageModel":
        from opus_pipelines.lwm.language_models.transformer import load

        assert self.settings.causal_lm.path is not None
        return load(self.settings.causal_lm.path, self.settings.causal_lm.max_prompt_tokens)


def chosen(settings: Settings, name: str) -> FlowBackend | None:
    """Returns the language model of this name, None for the ranker, which is none.

    Raises InputError or SettingsError where settings of the backend are missing.
    """
    if name == RANKER:
        return None
    if name == CAUSAL:
        if settings.causal_lm.path is None:
            raise InputError("no language model is set; state the folder of one as causal_lm.path")
        return FlowBackend(name, settings)
    if name != ENDPOINT:
        raise InputError(f"there is no backend {name!r} for flows; there are {', '.join(BACKENDS)}")
    endpoint = settings.openai_compatible
    if not endpoint.url or not endpoint.model:
        raise InputError("no endpoint is set; state openai_compatible.url and openai_compatible.model")
    require_prices(endpoint)
    key_of(endpoint)  # raises before anything is learnt
    return FlowBackend(name, settings)
