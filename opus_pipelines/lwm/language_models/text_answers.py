"""Plain answers of a language model in words: through an endpoint or a model in a folder, kept in the lake by content.

What asks decides what an answer may be. The same question of the same model is asked once: the answer is kept under the
hash of the question in the folder of the client, so that forgetting a client removes it, too.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings_sections import CausalLm, OpenaiCompatible
from opus_pipelines.lake.layout import Lake, slug
from opus_pipelines.lwm.language_models.chat_client import KeptAnswers, PaidClient, Reply, question_body
from opus_pipelines.lwm.language_models.prompts import Prompt

_VERSION = 1  # raise it when questions are put differently


@dataclass(frozen=True)
class Question:
    """A question: what the model is, what it is asked, how freely it answers, and how long."""

    system: str
    user: str
    temperature: float = 0.0
    max_tokens: int = 512


@dataclass(frozen=True)
class TextAnswer:
    """An answer, and what it took where that is known."""

    text: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


class TextModel(Protocol):
    """Something that answers questions in words."""

    name: str
    version: str

    def ask(self, question: Question) -> TextAnswer:
        """Returns the answer. Raises OpusError where there is none."""
        ...


class EndpointText:
    """The model at the endpoint of `[openai_compatible]`, within its limit of dollars a day."""

    name = "openai_compatible"

    def __init__(self, settings: OpenaiCompatible, lake: Lake) -> None:
        if not settings.url or not settings.model:
            raise SettingsError("the model openai_compatible needs [openai_compatible] url and model")
        self.settings = settings
        self.version = f"{slug(settings.model)}-{digest(_VERSION, settings.url, settings.model)[:8]}"
        self._client = PaidClient(settings, lake)

    def ask(self, question: Question) -> TextAnswer:
        """Returns the answer of the endpoint. Raises OpusError as `ChatClient` does, and for an empty answer."""
        settings = self.settings
        asked = {"temperature": question.temperature, "max_tokens": min(question.max_tokens, settings.max_tokens)}
        body = question_body(settings, (question.system, question.user)) | asked
        letters = len(question.system) + len(question.user)

        def read(reply: Reply, usd: float | None) -> TextAnswer:
            if not reply.content.strip():
                raise ValueError("the answer is empty")
            return TextAnswer(reply.content.strip(), reply.tokens_in, reply.tokens_out, usd)

        return self._client.ask(body, letters, read)


class CausalText:
    """The causal language model in the folder of `[causal_lm]`; a temperature above 0 samples with a fixed seed."""

    name = "causal_lm"

    def __init__(self, settings: CausalLm) -> None:
        if settings.path is None:
            raise SettingsError("the model causal_lm needs [causal_lm] path, a folder with a model")
        from opus_pipelines.lwm.language_models.causal_model import base_hash, load

        self.version = base_hash(settings.path)[:12]
        self._model = load(settings.path, settings.max_prompt_tokens)

    def ask(self, question: Question) -> TextAnswer:
        """Returns what the model writes after the question; it may be empty."""
        model = self._model
        ids = model.prompt_tokens(Prompt(question.system, question.user, {}))
        made = model.written(ids, question.max_tokens, temperature=question.temperature)
        text = model.tokenizer.decode(made, skip_special_tokens=True).strip()
        return TextAnswer(text, len(ids), len(made))


class KeptText:
    """A model whose answers are kept; a damaged file is asked for again."""

    def __init__(self, model: TextModel, lake: Lake, client: str = "") -> None:
        self.name, self.version, self._model = model.name, model.version, model
        self._answers = KeptAnswers(lake, client)

    def ask(self, question: Question) -> TextAnswer:
        """Returns the kept answer, or asks and keeps the answer."""
        key = digest(_VERSION, self.name, self.version, asdict(question))
        if (kept := _text_answer(self._answers.read(key))) is not None:
            return kept
        answer = self._model.ask(question)
        self._answers.write(key, asdict(answer))
        return answer


def _text_answer(value: dict[str, Any] | None) -> TextAnswer | None:
    if value is None or not isinstance(value.get("text"), str):
        return None
    return TextAnswer(value["text"], value.get("tokens_in"), value.get("tokens_out"), value.get("cost_usd"))


TEXT_MODELS: dict[str, Callable[[Any, Lake], TextModel]] = {
    EndpointText.name: lambda settings, lake: EndpointText(settings.openai_compatible, lake),
    CausalText.name: lambda settings, _: CausalText(settings.causal_lm),
}
