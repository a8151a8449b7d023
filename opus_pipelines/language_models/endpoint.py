"""The backend of an OpenAI-compatible endpoint: structured output within the catalogue, cached, within a spend limit.

An answer is kept in the lake under the hash of its request, `language/answers/client_key=<client>/`: the same request
is paid for once, and gives the same workflows. What is kept are steps, tokens and dollars; no prompt is written.
"""

import os
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import LakeError, OpusError, SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.model_settings import OpenaiCompatible
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake, read_json, slug, write_json
from opus_pipelines.language_models.answers import Answer, AnswerError, parsed, schema, validated
from opus_pipelines.language_models.backend import LanguageBackend
from opus_pipelines.language_models.chat_client import ChatClient, ModelRefused, Reply
from opus_pipelines.language_models.prompt import VERSION, Prompt, prompt_of
from opus_pipelines.language_models.spending import Ledger
from opus_pipelines.lifecycle.kept_answers import ANSWERS
from opus_pipelines.lwm.interface import LwmRequest, Usage

FOLDER = "language"  # of the lake
MILLION = 1_000_000
LETTERS_A_TOKEN = 2  # a token has more letters in most languages, so that bookings are rather too high


class OpenaiCompatibleBackend(LanguageBackend):
    """A language model at an endpoint."""

    name = "openai_compatible"

    def configure(self, settings: Settings) -> None:
        """Take the settings. Raises SettingsError where address, model or, with a limit, prices are missing."""
        self.settings = settings.openai_compatible
        if not self.settings.url or not self.settings.model:
            raise SettingsError("the backend openai_compatible needs [openai_compatible] url and model")
        if self.settings.spend_limit_usd is not None and price(self.settings, 0, 0) is None:
            raise SettingsError("openai_compatible.spend_limit_usd needs usd_per_million_tokens_in and _out")

    def open(self, lake: Lake) -> None:
        """Take the lake that keeps the answers."""
        self.lake = lake
        self.ledger = Ledger(lake.root / FOLDER, self.settings.spend_limit_usd)

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
        most = price(settings, letters // LETTERS_A_TOKEN, settings.max_tokens)

        def use(reply: Reply) -> dict[str, Any]:
            usd = price(settings, reply.tokens_in, reply.tokens_out)
            self.ledger.correct(most, usd)
            try:
                workflows = parsed(reply.content)
                if not validated(workflows, prompt.names, settings.sequences).sequences:
                    raise AnswerError("no step of the answer is in the catalogue")
            except AnswerError as error:
                self.ledger.book(most)  # it is asked again
                raise ValueError(str(error)) from None
            return {
                "workflows": workflows,
                "tokens_in": reply.tokens_in,
                "tokens_out": reply.tokens_out,
                "cost_usd": usd,
            }

        self.ledger.book(most)
        try:
            kept: dict[str, Any] = ChatClient(settings, self._key()).ask(body, use)
        except ModelRefused:
            raise  # it was paid for
        except OpusError:
            self.ledger.correct(most, 0.0)
            raise
        return kept

    def _key(self) -> str | None:
        name = self.settings.api_key_variable
        if not name:
            return None
        if not os.environ.get(name):
            raise SettingsError(f"the variable {name} (openai_compatible.api_key_variable) is not set")
        return os.environ[name]


def _answer(kept: dict[str, Any], prompt: Prompt, sequences: int) -> Answer:
    usage = Usage(kept.get("tokens_in"), kept.get("tokens_out"), kept.get("cost_usd"))
    workflows = [steps for steps in kept["workflows"] if isinstance(steps, list)]
    return validated(workflows, prompt.names, sequences, usage)


def price(settings: OpenaiCompatible, tokens_in: int | None, tokens_out: int | None) -> float | None:
    """Return the dollars of so many tokens, None where a price or a number is unknown."""
    of_in, of_out = settings.usd_per_million_tokens_in, settings.usd_per_million_tokens_out
    if of_in is None or of_out is None or tokens_in is None or tokens_out is None:
        return None
    return (tokens_in * of_in + tokens_out * of_out) / MILLION
