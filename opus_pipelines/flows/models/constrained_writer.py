"""Flows by a causal model, which writes line by line: each line is one of those that the grammar allows.

The grammar knows the retrieved activities, the steps of the prior flow, and the conditions and loops of what the
generator without a language model makes of the utterance. So nothing outside the catalogue can come out.
"""

import time
from collections.abc import Sequence
from typing import Any

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.from_text.editing import edited
from opus_pipelines.flows.from_text.generator import FlowWriter, GenerationError
from opus_pipelines.flows.models.line_grammar import END, LineGrammar
from opus_pipelines.flows.models.prompts import FlowPrompter, ModelFlow
from opus_pipelines.lwm.language_models.token_trie import TokenTrie
from opus_pipelines.lwm.language_models.transformer import LanguageModel, quiet
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir
from opus_pipelines.workflow.blocks.model import Flow

MOST_TOKENS = 400  # of a line


class ConstrainedWriter:
    """Lets a causal model write a flow line by line among the lines that are allowed."""

    def __init__(self, prompter: FlowPrompter, model: LanguageModel) -> None:
        self.prompter, self.model = prompter, model

    def new(self, utterance: str, prior: Flow | None = None) -> ModelFlow:
        """Returns the flow that the model writes; nothing has to be repaired, and it costs no dollars.

        Raises GenerationError where the model ends before the first step, and what reading the utterance raises.
        """
        began = time.perf_counter()
        prompt = self.prompter.prompt(utterance, prior)
        sketch = _sketch(self.prompter.writer, utterance, prior)
        allowed = LineGrammar(list(prompt.names), sketch, prior, utterance)
        given = self.model.prompt_tokens(prompt)
        written: list[str] = []
        while len(written) < allowed.most_lines:
            line = self._choice(given, written, allowed.lines(written))
            if line == END:
                break
            written.append(line)
        text = "\n".join(allowed.closed(written))
        flow = parse_ir(text)
        if not flow.body:
            raise GenerationError("the language model wrote no step")
        tokens_out = len(self.model.tokenizer(text, add_special_tokens=False)["input_ids"])
        return ModelFlow(flow, 0, len(given), tokens_out, 0.0, time.perf_counter() - began)

    def _choice(self, given: list[int], written: Sequence[str], lines: Sequence[str]) -> str:
        """The line that the model writes among these by greedy decoding."""
        import torch

        if len(lines) == 1:
            return lines[0]
        trie = TokenTrie({line: self.model.name_tokens(line) for line in lines}, self.model.end)
        text = "".join(f"{line}\n" for line in written)
        start = [*given, *self.model.tokenizer(text, add_special_tokens=False)["input_ids"]]
        ids = torch.tensor([start], device=self.model.model.device)

        def allowed(_: int, tokens: Any) -> list[int]:
            own = tokens[len(start) :].tolist()
            return [trie.end] if trie.names(own) else [t for t in trie.allowed(own) if t != trie.end]

        with quiet(), torch.no_grad():
            made = self.model.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=MOST_TOKENS,
                prefix_allowed_tokens_fn=allowed,
                pad_token_id=trie.end,
                eos_token_id=trie.end,
            )
        names = trie.names(made[0, len(start) :].tolist())
        return names[0] if names else END


def _sketch(writer: FlowWriter, utterance: str, prior: Flow | None) -> Flow:
    """The flow without a language model, whose conditions and loops a model may use; empty where there is none."""
    try:
        return writer.new(utterance).flow if prior is None else edited(writer, utterance, prior).flow
    except OpusError:
        return Flow()
