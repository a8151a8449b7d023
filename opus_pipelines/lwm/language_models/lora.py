"""Fine-tunes a LoRA adapter (Hu et al. 2021) so that a causal language model writes the steps that history did.

The loss is the cross-entropy of the steps and of END after the prompt; the prompt itself is not learnt. The base model
stays as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.model_settings import CausalLm
from opus_pipelines.lwm.language_models.prompt import Prompt
from opus_pipelines.lwm.language_models.transformer import LanguageModel, adapter_of, quiet, with_adapter

SEED = 0
LARGEST_GRADIENT = 1.0  # norm to which gradients are clipped
_IGNORED = -100  # label of a token that is not learnt (torch.nn.CrossEntropyLoss)


class AdapterError(OpusError):
    """An adapter cannot be trained: there are no examples, or the loss is not finite."""


@dataclass(frozen=True)
class Example:
    """A prompt, and the names of its catalogue that history did, in order."""

    prompt: Prompt
    names: tuple[str, ...]


def fit(
    base: LanguageModel,
    examples: Sequence[Example],
    settings: CausalLm,
    report: Callable[[int, float], None] = lambda epoch, loss: None,
) -> dict[str, np.ndarray]:
    """Return the weights of an adapter by name. `base.model` is changed: load it anew for anything else.

    `report` is called after every epoch with its number, from 1, and the mean loss in nats. Raises AdapterError where
    there is no example, or where the loss is not finite.
    """
    import torch

    if not examples:
        raise AdapterError("there is no case with a step of its catalogue to learn from")
    torch.manual_seed(SEED)
    model = with_adapter(base.model, settings.lora_rank)
    rows = [_tokens(base, example) for example in examples]
    learnt = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=settings.learning_rate)
    model.train()
    for epoch in range(1, settings.epochs + 1):
        total = 0.0
        for place in torch.randperm(len(rows)).tolist():
            ids, labels = (torch.tensor([column], device=model.device) for column in rows[place])
            with quiet():
                loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
            if not torch.isfinite(loss):
                raise AdapterError(f"the loss is not finite in epoch {epoch}; no adapter is written")
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learnt, LARGEST_GRADIENT)
            optimizer.step()
            total += float(loss.detach())
        report(epoch, total / len(rows))
    return adapter_of(model)


def _tokens(base: LanguageModel, example: Example) -> tuple[list[int], list[int]]:
    """Return the tokens of prompt and steps, and which of them are learnt."""
    prompt = base.prompt_tokens(example.prompt)
    steps = [*(token for name in example.names for token in base.name_tokens(name)), base.end]
    return [*prompt, *steps], [*[_IGNORED] * len(prompt), *steps]
