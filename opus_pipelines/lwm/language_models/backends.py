"""Language models as backends of the Large Work Model: their sequences stand before those of history.

A person chose the model, so that a request which it does not answer fails with the reason, instead of a result that
only looks like the model's. A causal model writes beams within the catalogue, with the adapter that serves if there is
one. An endpoint answers in structured output, within a spend limit; an answer is kept in the lake under the hash of its
request, `language/answers/client_key=<client>/`: the same request is paid for once, and gives the same workflows. What
is kept are steps, tokens and dollars; no prompt is written.
"""

import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lwm.history_backend import HistoryBackend, with_best_score
from opus_pipelines.lwm.interface import LwmRequest, TaskSequence, Usage
from opus_pipelines.lwm.language_models.adapters import ADAPTERS, Adapter
from opus_pipelines.lwm.language_models.causal_model import LanguageModel, apply_adapter, base_hash, load
from opus_pipelines.lwm.language_models.chat_client import KeptAnswers, PaidClient, Reply, question_body, require_prices
from opus_pipelines.lwm.language_models.prompts import (
    PROMPT_VERSION,
    Answer,
    AnswerError,
    Prompt,
    parsed,
    prompt_of,
    schema,
    validated,
)

logger = logging.getLogger("opus_pipelines.lwm.language_models")


class LanguageBackend(HistoryBackend):
    """The history backend with the sequences of a language model as the best ones."""

    def answer(self, prompt: Prompt, request: LwmRequest) -> Answer:
        """Return the model's answer. Raises OpusError where there is none."""
        raise NotImplementedError

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """Return the sequences of history, and before them those of the model.

        Without a task to choose from the model is not asked. Raises AnswerError where nothing of an answer is in the
        catalogue, and whatever asking raises.
        """
        sequences, prompt = super().generate(request), prompt_of(request)
        if not prompt.names or not request.subgraphs:
            return sequences
        answer = self.answer(prompt, request)
        for dropped in answer.dropped:
            logger.warning("%s: step %r is dropped: %s", self.name, dropped.step, dropped.reason)
        if not answer.sequences:
            raise AnswerError(f"{self.name}: no step of the answer is in the catalogue")
        for tasks in reversed(answer.sequences):
            sequences = with_best_score(sequences, tasks, request.subgraphs, "lwm")
        return sorted(sequences, key=lambda s: (-s.score, s.subgraph, s.tasks))


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
        found = ADAPTERS.open(lake)
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
        return f"{super().version} {self.name}-{PROMPT_VERSION}-{depends}{adapter}"

    @cached_property
    def language_model(self) -> LanguageModel:
        """The model, with the adapter merged in."""
        model = load(self.path, self.settings.max_prompt_tokens)
        return apply_adapter(model, self.adapter.weights, self.adapter.rank) if self.adapter else model

    def answer(self, prompt: Prompt, request: LwmRequest) -> Answer:
        """Return the likeliest sequences."""
        written = self.language_model.sequences(prompt, self.settings.sequences)
        return validated(written, prompt.names, self.settings.sequences)


class OpenaiCompatibleBackend(LanguageBackend):
    """A language model at an endpoint."""

    name = "openai_compatible"

    def configure(self, settings: Settings) -> None:
        """Take the settings. Raises SettingsError where address, model or, with a limit, prices are missing."""
        self.settings = settings.openai_compatible
        if not self.settings.url or not self.settings.model:
            raise SettingsError("the backend openai_compatible needs [openai_compatible] url and model")
        require_prices(self.settings)

    def open(self, lake: Lake) -> None:
        """Take the lake that keeps the answers."""
        self.lake = lake
        self._client = PaidClient(self.settings, lake)
        self.ledger = self._client.ledger

    @property
    def version(self) -> str:
        """Return the version of the history backend, the model's name, and a hash of what else an answer depends on."""
        asked = digest(PROMPT_VERSION, self.settings.url, self.settings.model, self._sampling())[:12]
        return f"{super().version} {self.name}-{PROMPT_VERSION}-{slug(self.settings.model)}-{asked}"

    def answer(self, prompt: Prompt, request: LwmRequest) -> Answer:
        """Return the kept answer, or ask and keep it. Raises OpusError where the endpoint does not answer."""
        kept = self._kept(prompt, request)
        if kept is None:
            kept = self._ask(prompt)
            KeptAnswers(self.lake, request.client).write(self._key(prompt), kept)
        return _answer(kept, prompt, self.settings.sequences)

    def usage(self, request: LwmRequest) -> Usage | None:
        """Return what the kept answer took when it was asked for."""
        prompt = prompt_of(request)
        kept = self._kept(prompt, request)
        return None if kept is None else _answer(kept, prompt, self.settings.sequences).usage

    def _kept(self, prompt: Prompt, request: LwmRequest) -> dict[str, Any] | None:
        kept = KeptAnswers(self.lake, request.client).read(self._key(prompt))
        return kept if kept is not None and isinstance(kept.get("workflows"), list) else None

    def _key(self, prompt: Prompt) -> str:
        return digest(prompt.key, self.settings.url, self.settings.model, self._sampling())

    def _sampling(self) -> dict[str, Any]:
        return {"temperature": 0, "seed": 0, "max_tokens": self.settings.max_tokens, "n": self.settings.sequences}

    def _ask(self, prompt: Prompt) -> dict[str, Any]:
        settings = self.settings
        form = "workflows", schema(list(prompt.names), settings.sequences)
        body = question_body(settings, (prompt.system, prompt.user), form) | {"n": 1}
        letters = len(prompt.system) + len(prompt.user) + sum(map(len, prompt.names))

        def read(reply: Reply, usd: float | None) -> dict[str, Any]:
            workflows = parsed(reply.content)
            if not validated(workflows, prompt.names, settings.sequences).sequences:
                raise AnswerError("no step of the answer is in the catalogue")
            return {
                "workflows": workflows,
                "tokens_in": reply.tokens_in,
                "tokens_out": reply.tokens_out,
                "cost_usd": usd,
            }

        return self._client.ask(body, letters, read)


def _answer(kept: dict[str, Any], prompt: Prompt, sequences: int) -> Answer:
    usage = Usage(kept.get("tokens_in"), kept.get("tokens_out"), kept.get("cost_usd"))
    workflows = [steps for steps in kept["workflows"] if isinstance(steps, list)]
    return validated(workflows, prompt.names, sequences, usage)
