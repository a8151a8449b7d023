"""The backend of a causal language model: beams within the catalogue, with the adapter that serves if there is one."""

import logging
from functools import cached_property
from pathlib import Path

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.interface import LwmRequest
from opus_pipelines.lwm.language_models.adapter_store import Adapter, opened
from opus_pipelines.lwm.language_models.answers import Answer, validated
from opus_pipelines.lwm.language_models.backend import LanguageBackend
from opus_pipelines.lwm.language_models.prompt import VERSION, Prompt
from opus_pipelines.lwm.language_models.transformer import LanguageModel, apply_adapter, base_hash, load

logger = logging.getLogger("opus_pipelines.lwm.language_models")


class CausalLmBackend(LanguageBackend):
    """A causal language model in a folder. It is loaded with the first request."""

    name = "causal_lm"
    adapter: Adapter | None = None

    def configure(self, settings: Settings) -> None:
        """Take the settings. Raises SettingsError where no folder is stated."""
        self.settings = settings.causal_lm
        if self.settings.path is None:
            raise SettingsError("the backend causal_lm needs [causal_lm] path, a folder with a model")
        self.path: Path = self.settings.path
        self.base = base_hash(self.path)

    def open(self, lake: Lake) -> None:
        """Take the adapter that serves in this lake; one of another base model is left out."""
        found = opened(lake)
        for stored in found.stored:
            if stored.problem is not None and stored.model_id == found.named:
                instead = found.champion.model_id if found.champion else "the model without an adapter"
                logger.warning("adapter %s cannot be used: %s; %s serves", stored.model_id, stored.problem, instead)
        if found.champion is not None and found.champion.base != self.base:
            logger.warning("adapter %s is of another model than causal_lm.path; not used", found.champion.model_id)
        elif found.champion is not None:
            self.adapter = found.champion

    @property
    def version(self) -> str:
        """Return the version of the history backend, and a hash of the model, with the id of the adapter."""
        adapter = f"-{self.adapter.model_id}" if self.adapter else ""
        depends = f"{self.base[:12]}-{self.settings.sequences}-{self.settings.max_prompt_tokens}"
        return f"{super().version} {self.name}-{VERSION}-{depends}{adapter}"

    @cached_property
    def language_model(self) -> LanguageModel:
        """The model, with the adapter merged in."""
        model = load(self.path, self.settings.max_prompt_tokens)
        return apply_adapter(model, self.adapter.weights, self.adapter.rank) if self.adapter else model

    def answer(self, prompt: Prompt, request: LwmRequest) -> Answer:
        """Return the likeliest sequences."""
        written = self.language_model.sequences(prompt, self.settings.sequences)
        return validated(written, prompt.names, self.settings.sequences)
