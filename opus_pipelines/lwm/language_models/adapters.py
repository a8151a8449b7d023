"""LoRA adapters (Hu et al. 2021): training one for a causal language model, and the store of the lake.

An adapter learns to write the steps that history did. The loss is the cross-entropy of the steps and of END after the
prompt; the prompt itself is not learnt. The base model stays as it is. The adapters of a lake are those that
`opus train --backend causal_lm` made for one base model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.core.ids import make_id
from opus_pipelines.core.settings_sections import CausalLm
from opus_pipelines.lake.models import CARD, ModelKind, save_tensors
from opus_pipelines.lwm.language_models.causal_model import LanguageModel, adapter_of, quiet, read_adapter, with_adapter
from opus_pipelines.lwm.language_models.prompts import PROMPT_VERSION, Prompt

ADAPTER_SEED = 0
LARGEST_GRADIENT = 1.0  # norm to which gradients are clipped
_IGNORED = -100  # label of a token that is not learnt (torch.nn.CrossEntropyLoss)


class AdapterError(OpusError):
    """An adapter cannot be trained: there are no examples, or the loss is not finite."""


@dataclass(frozen=True)
class Example:
    """A prompt, and the names of its catalogue that history did, in order."""

    prompt: Prompt
    names: tuple[str, ...]


def fit_adapter(
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
    torch.manual_seed(ADAPTER_SEED)
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


WEIGHTS = "adapter.safetensors"


@dataclass(frozen=True)
class Adapter:
    """An adapter in the lake: its weights by name, and the rank and the base model that they are of."""

    model_id: str
    weights: Mapping[str, np.ndarray]
    rank: int
    base: str


def adapter_id(weights: Mapping[str, np.ndarray]) -> str:
    """Return the id of an adapter; equal weights have the same id."""
    return make_id("a", PROMPT_VERSION, *(part for name in sorted(weights) for part in (name, weights[name].tobytes())))


def save_adapter(weights: Mapping[str, np.ndarray], file: Path) -> None:
    """Write the weights as safetensors."""
    save_tensors(weights, file)


def _write(weights: Mapping[str, np.ndarray], folder: Path) -> dict[str, Any]:
    save_adapter(weights, folder / WEIGHTS)
    return {}


def _read(folder: Path, name: str, card: Mapping[str, Any]) -> Adapter:
    rank, base = card.get("rank"), card.get("base")
    if card.get("version") != PROMPT_VERSION or not isinstance(rank, int) or not isinstance(base, str):
        raise LakeError(f"{CARD} is of another version of the prompts; run `opus train --backend causal_lm`")
    weights = read_adapter(folder / WEIGHTS)
    if adapter_id(weights) != name:
        raise LakeError(f"{WEIGHTS} was changed after it was written; run `opus train --backend causal_lm`")
    return Adapter(name, weights, rank, base)


# The card of an adapter has its `rank`, and `base`, the hash of its base model.
ADAPTERS: ModelKind[Mapping[str, np.ndarray], Adapter] = ModelKind(
    "causallm", PROMPT_VERSION, adapter_id, _write, _read
)
