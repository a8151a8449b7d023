"""The two kinds of language models behind `LanguageWriter`: a causal model in a folder, and an endpoint."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.model_settings import CausalLm, OpenaiCompatible
from opus_pipelines.flows.enterprise.catalogue import Catalogue
from opus_pipelines.flows.enterprise.documents import ACTION, FLOW_LOGIC, LOGIC, Component
from opus_pipelines.flows.enterprise.outline_grammar import MOST_LINES, OutlineGrammar, sound_blocks
from opus_pipelines.flows.enterprise.step_choice import StepChoice
from opus_pipelines.flows.writers.baselines import Known
from opus_pipelines.flows.writers.input_options import SlotOptions
from opus_pipelines.flows.writers.input_writing import LEFT_OUT, following, taught
from opus_pipelines.flows.writers.language_writers import (
    LISTS,
    Prompting,
    Spent,
    Suggestions,
    outline_lines,
    suggested,
)
from opus_pipelines.history.records.money import shipped_price
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.language_models.chat_client import EndpointError
from opus_pipelines.lwm.language_models.prompt import Prompt
from opus_pipelines.lwm.language_models.text_answers import EndpointText, KeptText, Question

if TYPE_CHECKING:
    from opus_pipelines.lwm.language_models.transformer import LanguageModel

MOST_TOKENS = 1_200  # of an outline
MOST_INPUT_TOKENS = 600  # of the inputs of a step
_MOST_DEPTH = 6


@dataclass
class _Node:
    """A place in the tokens of the lines that may follow."""

    after: "dict[int, _Node]" = field(default_factory=dict)
    line: str | None = None


class CausalDecoder:
    """Decodes the likeliest outline greedily; every token is one that the grammar allows."""

    def __init__(self, model: "LanguageModel", name: str) -> None:
        self.name, self.spent, self.dropped, self._model = name, Spent(), 0, model
        self._tokens: dict[str, list[int]] = {}

    def outline(self, prompt: Prompt, suggestions: Suggestions) -> list[str]:
        """Returns the lines of the outline."""
        grammar = OutlineGrammar(suggestions.triggers, suggestions.steps, LISTS)
        walk = _Walk(grammar.allowed, self._line_tokens, self._model.end)
        written = self._generate(prompt, walk.allowed, MOST_TOKENS)
        return self._completed(walk.lines(written), grammar)

    def fill(self, prompt: Prompt, slots: Sequence[SlotOptions]) -> Mapping[str, Sequence[str]]:
        """Returns the values of the inputs; each token is one of a line that may follow."""
        walk = _Walk(lambda lines: following(slots, lines), self._line_tokens, self._model.end)
        found: dict[str, list[str]] = {}
        for line in walk.lines(self._generate(prompt, walk.allowed, MOST_INPUT_TOKENS)):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
        return found

    def _completed(self, lines: list[str], grammar: OutlineGrammar) -> list[str]:
        """Closes an outline that the limit of tokens has cut: the first line that may follow, until it may end."""
        while True:
            following, can_end = grammar.allowed(tuple(lines))
            if can_end or not following or len(lines) > 2 * MOST_LINES:
                return lines
            lines.append(following[0])

    def _line_tokens(self, line: str) -> list[int]:
        if line not in self._tokens:
            self._tokens[line] = self._model.name_tokens(line)
        return self._tokens[line]

    def _generate(self, prompt: Prompt, allowed: Callable[[Sequence[int]], list[int]], most: int) -> list[int]:
        import torch

        from opus_pipelines.lwm.language_models.transformer import quiet

        ids = self._model.prompt_tokens(prompt)
        given = torch.tensor([ids], device=self._model.model.device)
        with quiet(), torch.no_grad():
            made = self._model.model.generate(
                given,
                attention_mask=torch.ones_like(given),
                do_sample=False,
                max_new_tokens=most,
                prefix_allowed_tokens_fn=lambda _, written: allowed(written[len(ids) :].tolist()),
                pad_token_id=self._model.end,
                eos_token_id=self._model.end,
            )
        written: list[int] = made[0].tolist()[len(ids) :]
        self.spent.add(len(ids), len(written))
        return written


class _Walk:
    """Follows written tokens through the lines that may follow one another."""

    def __init__(
        self,
        following: Callable[[tuple[str, ...]], tuple[tuple[str, ...], bool]],
        tokens: Callable[[str], list[int]],
        end: int,
    ) -> None:
        self._following, self._tokens, self._end = following, tokens, end
        self._tries: dict[tuple[str, ...], tuple[_Node, bool]] = {}

    def allowed(self, written: Sequence[int]) -> list[int]:
        """Returns the tokens that may follow."""
        _, node, can_end = self._at(written)
        return [*sorted(node.after), *([self._end] if can_end else [])] or [self._end]

    def lines(self, written: Sequence[int]) -> list[str]:
        """Returns the lines that are written whole."""
        return self._at(written)[0]

    def _at(self, written: Sequence[int]) -> tuple[list[str], _Node, bool]:
        lines: list[str] = []
        node, can_end = self._trie(())
        for token in written:
            child = node.after.get(token)
            if child is None:
                break
            node, can_end = child, False
            if node.line is not None:
                lines.append(node.line)
                node, can_end = self._trie(tuple(lines))
        return lines, node, can_end

    def _trie(self, lines: tuple[str, ...]) -> tuple[_Node, bool]:
        if lines not in self._tries:
            following, can_end = self._following(lines)
            root = _Node()
            for line in following:
                node = root
                for token in self._tokens(line):
                    node = node.after.setdefault(token, _Node())
                node.line = node.line or line
            self._tries[lines] = root, can_end
        return self._tries[lines]


def fine_tuned(
    base: "LanguageModel", settings: CausalLm, known: Known, context: tuple[Catalogue, StepChoice]
) -> "LanguageModel":
    """Returns a model with a LoRA adapter that has learnt outlines and inputs of known flows. `base` is changed."""
    from opus_pipelines.lwm.language_models.lora import Example, fit
    from opus_pipelines.lwm.language_models.transformer import apply_adapter, load

    catalogue, choice = context
    if settings.path is None:
        raise OpusError("a model to fine-tune needs the path of its folder")
    prompting = Prompting("zero-shot")
    examples = [
        Example(prompting.prompt(text, suggested(catalogue, choice, text).first, catalogue), tuple(outline_lines(flow)))
        for text, flow in known[: settings.cases]
    ]
    for text, flow in known[: settings.cases]:
        examples += [Example(prompt, lines) for prompt, lines in taught(catalogue, flow, text)]
    weights = fit(base, examples, settings)
    return apply_adapter(load(settings.path, settings.max_prompt_tokens), weights, settings.lora_rank)


def _priced(settings: OpenaiCompatible) -> OpenaiCompatible:
    """The settings with the shipped table's prices where none are stated, so that a limit of dollars can hold.

    Raises SettingsError where there is a limit and no price.
    """
    price = shipped_price(settings.model) if settings.usd_per_million_tokens_in is None else None
    if price is not None:
        stated = {"usd_per_million_tokens_in": price.tokens_in, "usd_per_million_tokens_out": price.tokens_out}
        return settings.model_copy(update=stated)
    if settings.spend_limit_usd is not None and settings.usd_per_million_tokens_in is None:
        raise SettingsError("openai_compatible.spend_limit_usd needs usd_per_million_tokens_in and _out")
    return settings


class EndpointDecoder:
    """Asks an OpenAI-compatible endpoint in JSON schemas; steps and values of inputs are enumerations.

    Answers are kept in the lake, and the day's limit of dollars holds, as for all questions to an endpoint.
    """

    def __init__(self, settings: OpenaiCompatible, lake: Lake) -> None:
        self.name, self.spent = settings.model, Spent()
        self._model = KeptText(EndpointText(_priced(settings), lake), lake)
        self.dropped = 0  # steps of answers that are not in the catalogue, or flow logic without a place

    def outline(self, prompt: Prompt, suggestions: Suggestions) -> list[str]:
        """Returns the lines of the outline; what the catalogue does not have is dropped, and blocks are made sound."""
        step = _object(
            {
                "depth": {"type": "integer", "minimum": 0, "maximum": _MOST_DEPTH},
                "step": {"type": "string", "enum": [*suggestions.steps, *LOGIC]},
            }
        )
        schema = _object(
            {
                "trigger": {"type": "string", "enum": list(suggestions.triggers)},
                "steps": {"type": "array", "items": step},
            }
        )
        return list(self._ask(prompt, schema, lambda value: self._lines(value, suggestions)))

    def fill(self, prompt: Prompt, slots: Sequence[SlotOptions]) -> Mapping[str, Sequence[str]]:
        """Returns the values of the inputs; an input without a value, or of another form, is left out."""
        values = {s.name: {"type": "string", "enum": [LEFT_OUT, *s.options]} for s in slots}
        lists = {s.name: {"type": "array", "items": values[s.name], "maxItems": s.most} for s in slots if s.most > 1}

        def use(value: Any) -> Mapping[str, Sequence[str]]:
            if not isinstance(value, dict):
                raise ValueError("the answer is no object of inputs")
            own = {s.name: value.get(s.name) for s in slots}
            given = {name: one if isinstance(one, list) else [one] for name, one in own.items() if one is not None}
            self.dropped += len(set(value) - set(own))
            return {name: [str(one) for one in some] for name, some in given.items()}

        return dict(self._ask(prompt, _object({**values, **lists}), use))

    def _lines(self, value: Any, suggestions: Suggestions) -> list[str]:
        if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
            raise ValueError("the answer has no list of steps")
        if value.get("trigger") not in suggestions.triggers:
            raise ValueError("the answer has no trigger of the catalogue")
        components, around = list[Component](), list[Component]()
        for given in value["steps"][: 2 * MOST_LINES]:
            name, depth = (given.get("step"), given.get("depth")) if isinstance(given, dict) else (None, None)
            if name not in suggestions.steps and name not in LOGIC:
                self.dropped += 1
                continue
            depth = depth if isinstance(depth, int) and not isinstance(depth, bool) else 0
            del around[max(0, depth) :]
            category = FLOW_LOGIC if name in LOGIC else ACTION
            block = around[-1].order if around else None
            components.append(Component(str(name), len(components) + 1, category, block))
            if category == FLOW_LOGIC:
                around.append(components[-1])
        sound = sound_blocks(components)
        self.dropped += len(components) - len(sound)
        if not sound:
            raise ValueError("no step of the answer is in the catalogue")
        depths: dict[int | None, int] = {None: -1}
        for component in sound:
            depths[component.order] = depths[component.block] + 1
        return [f"when {value['trigger']}", *("  " * depths[c.order] + c.name for c in sound)]

    def _ask(self, prompt: Prompt, schema: Mapping[str, Any], use: Callable[[Any], Any]) -> Any:
        answer = self._model.ask(Question(prompt.system, prompt.user, 0.0, MOST_TOKENS, schema))
        self.spent.add(answer.tokens_in, answer.tokens_out)
        try:
            return use(json.loads(answer.text))
        except (ValueError, RecursionError) as error:
            raise EndpointError(f"{self.name}: {error}") from None


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
