"""The two kinds of language models behind `LanguageWriter`: a causal model in a folder, and an endpoint."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.model_settings import CausalLm, OpenaiCompatible
from opus_pipelines.enterprise_flows.catalogue import Catalogue
from opus_pipelines.enterprise_flows.documents import ACTION, FLOW_LOGIC, LOGIC, Component
from opus_pipelines.enterprise_flows.outline_grammar import MOST_LINES, OutlineGrammar, sound_blocks
from opus_pipelines.enterprise_flows.step_choice import StepChoice
from opus_pipelines.flow_writers.baselines import Known
from opus_pipelines.flow_writers.language_writers import (
    LISTS,
    Prompting,
    Spent,
    Suggestions,
    outline_lines,
    suggested,
)
from opus_pipelines.language_models.chat_client import ChatClient, Reply
from opus_pipelines.language_models.prompt import Prompt

if TYPE_CHECKING:
    from opus_pipelines.language_models.transformer import LanguageModel

MOST_TOKENS = 1_200  # of an outline
_MOST_DEPTH = 6


@dataclass
class _Node:
    """A place in the tokens of the lines that may follow."""

    after: "dict[int, _Node]" = field(default_factory=dict)
    line: str | None = None


class CausalDecoder:
    """Decodes the likeliest outline greedily; every token is one that the grammar allows."""

    def __init__(self, model: "LanguageModel", name: str) -> None:
        self.name, self.spent, self._model = name, Spent(), model
        self._tokens: dict[str, list[int]] = {}

    def outline(self, prompt: Prompt, suggestions: Suggestions) -> list[str]:
        """Returns the lines of the outline."""
        grammar = OutlineGrammar(suggestions.triggers, suggestions.steps, LISTS)
        walk = _Walk(grammar.allowed, self._line_tokens, self._model.end)
        written = self._generate(prompt, walk.allowed, MOST_TOKENS)
        return self._completed(walk.lines(written), grammar)

    def choose(self, prompt: Prompt, options: Sequence[str]) -> str:
        """Returns one option."""
        walk = _Walk(
            lambda lines: (tuple(options), False) if not lines else ((), True), self._line_tokens, self._model.end
        )
        lines = walk.lines(self._generate(prompt, walk.allowed, 200))
        return lines[0] if lines else options[0]

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

        from opus_pipelines.language_models.transformer import quiet

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
    """Returns a model with a LoRA adapter that has learnt the outlines of known flows. `base` itself is changed."""
    from opus_pipelines.language_models.lora import Example, fit
    from opus_pipelines.language_models.transformer import apply_adapter, load

    catalogue, choice = context
    if settings.path is None:
        raise OpusError("a model to fine-tune needs the path of its folder")
    prompting = Prompting("zero-shot")
    examples = [
        Example(prompting.prompt(text, suggested(catalogue, choice, text).first, catalogue), tuple(outline_lines(flow)))
        for text, flow in known[: settings.cases]
    ]
    weights = fit(base, examples, settings)
    return apply_adapter(load(settings.path, settings.max_prompt_tokens), weights, settings.lora_rank)


class EndpointDecoder:
    """Asks an OpenAI-compatible endpoint for an outline in a JSON schema; the steps are an enumeration."""

    def __init__(self, settings: OpenaiCompatible, key: str | None) -> None:
        self.name, self.spent, self._settings = settings.model, Spent(), settings
        self._client = ChatClient(settings, key)
        self.dropped = 0  # steps of answers that were not in the catalogue

    def outline(self, prompt: Prompt, suggestions: Suggestions) -> list[str]:
        """Returns the lines of the outline; what the catalogue does not have is dropped, and blocks are made sound."""
        step = {
            "type": "object",
            "properties": {
                "depth": {"type": "integer", "minimum": 0, "maximum": _MOST_DEPTH},
                "step": {"type": "string", "enum": [*suggestions.steps, *LOGIC]},
            },
            "required": ["depth", "step"],
            "additionalProperties": False,
        }
        schema = {
            "type": "object",
            "properties": {
                "trigger": {"type": "string", "enum": list(suggestions.triggers)},
                "steps": {"type": "array", "items": step},
            },
            "required": ["trigger", "steps"],
            "additionalProperties": False,
        }
        return list(self._ask(prompt, "flow", schema, lambda value: self._lines(value, suggestions)))

    def choose(self, prompt: Prompt, options: Sequence[str]) -> str:
        """Returns one option."""
        chosen = {"type": "string", "enum": list(options)}
        properties = {"type": "object", "properties": {"choice": chosen}, "required": ["choice"]}

        def use(value: Any) -> str:
            if not isinstance(value, dict) or value.get("choice") not in options:
                raise ValueError("the answer is none of the options")
            return str(value["choice"])

        return str(self._ask(prompt, "choice", {**properties, "additionalProperties": False}, use))

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
        if not sound:
            raise ValueError("no step of the answer is in the catalogue")
        depths: dict[int | None, int] = {None: -1}
        for component in sound:
            depths[component.order] = depths[component.block] + 1
        return [f"when {value['trigger']}", *("  " * depths[c.order] + c.name for c in sound)]

    def _ask(self, prompt: Prompt, name: str, schema: Mapping[str, Any], use: Callable[[Any], Any]) -> Any:
        body = {
            "model": self._settings.model,
            "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            "temperature": 0,
            "seed": 0,
            "max_tokens": self._settings.max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": name, "strict": True, "schema": schema},
            },
        }

        def read(reply: Reply) -> Any:
            self.spent.add(reply.tokens_in, reply.tokens_out)
            try:
                value = json.loads(reply.content)
            except (ValueError, RecursionError):
                raise ValueError("the answer is not JSON") from None
            return use(value)

        return self._client.ask(body, read)
