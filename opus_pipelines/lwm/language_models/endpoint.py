"""The backend of an OpenAI-compatible endpoint: structured output within the catalogue, cached, within a spend limit.

An answer is kept in the lake under the hash of its request, `language/answers/client_key=<client>/`: the same request
is paid for once, and gives the same workflows. What is kept are steps, tokens and dollars; no prompt is written.
"""

from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError, SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake, read_json, slug, write_json
from opus_pipelines.lwm.interface import LwmRequest, Usage
from opus_pipelines.lwm.language_models.answers import Answer, AnswerError, parsed, schema, validated
from opus_pipelines.lwm.language_models.backend import LanguageBackend
from opus_pipelines.lwm.language_models.chat_client import Reply
from opus_pipelines.lwm.language_models.paid_client import PaidClient, require_prices
from opus_pipelines.lwm.language_models.prompt import VERSION, Prompt, prompt_of
from opus_pipelines.wkg.upkeep.kept_answers import ANSWERS


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
        asked = digest(VERSION, self.settings.url, self.settings.model, self._sampling())[:12]
        return f"{super().version} {self.name}-{VERSION}-{slug(self.settings.model)}-{asked}"

    def answer(self, prompt: Prompt, request: LwmRequest) -> Answer:
        """Return the kept answer, or ask and keep it. Raises OpusError where the endpoint does not answer."""
        kept = self._kept(prompt, request)
        if kept is None:
            kept = self._ask(prompt)
            write_json(self._file(prompt, request), kept)
        return _answer(kept, prompt, self.settings.sequences)

    def usage(self, request: LwmRequest) -> Usage | None:
        """Return what the kept answer took when it was asked for."""
        prompt = prompt_of(request)
        kept = self._kept(prompt, request)
        return None if kept is None else _answer(kept, prompt, self.settings.sequences).usage

    def _kept(self, prompt: Prompt, request: LwmRequest) -> dict[str, Any] | None:
        try:
            kept = read_json(self._file(prompt, request))
        except LakeError:
            return None  # a damaged file is asked for again, and replaced
        return kept if isinstance(kept, dict) and isinstance(kept.get("workflows"), list) else None

    def _file(self, prompt: Prompt, request: LwmRequest) -> Path:
        key = digest(prompt.key, self.settings.url, self.settings.model, self._sampling())
        return self.lake.root / ANSWERS / f"client_key={slug(request.client or '')}" / f"{key}.json"

    def _sampling(self) -> dict[str, Any]:
        return {"temperature": 0, "seed": 0, "max_tokens": self.settings.max_tokens, "n": self.settings.sequences}

    def _ask(self, prompt: Prompt) -> dict[str, Any]:
        settings = self.settings
        body = {
            "model": settings.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            **(self._sampling() | {"n": 1}),
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "workflows",
                    "strict": True,
                    "schema": schema(list(prompt.names), settings.sequences),
                },
            },
        }
        letters = len(prompt.system) + len(prompt.user) + sum(map(len, prompt.names))

        def read(reply: Reply, usd: float | None) -> dict[str, Any]:
            try:
                workflows = parsed(reply.content)
                if not validated(workflows, prompt.names, settings.sequences).sequences:
                    raise AnswerError("no step of the answer is in the catalogue")
            except AnswerError as error:
                raise ValueError(str(error)) from None
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
