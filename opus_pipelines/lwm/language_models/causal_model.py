"""A causal language model of the transformers library: loading, decoding within names, and LoRA adapters.

Nothing is downloaded, no code of a checkpoint is run, and weights are read from safetensors only. Constrained decoding
asks a `TokenTrie` which token may come next, so that a model writes what a catalogue or a grammar allows and no more.
"""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from opus_pipelines.core.errors import LakeError, OpusError, SettingsError
from opus_pipelines.core.ids import digest
from opus_pipelines.lwm.language_models.prompts import Prompt

# Which lines may follow those that are written, and whether the text may end here.
Following = Callable[[tuple[str, ...]], tuple[Sequence[str], bool]]


@dataclass
class _Node:
    """A place in the tokens of the lines that may follow."""

    after: "dict[int, _Node]" = field(default_factory=dict)
    line: str | None = None


class TokenTrie:
    """Which token may come next, so that a language model writes lines that may follow one another and nothing else.

    A text is lines, each with a separator after its tokens, and END. Of lines with the same tokens the first is taken;
    a line that begins with all tokens of another one can be written where that one may not follow any more.
    """

    def __init__(self, following: Following, tokens: Callable[[str], Sequence[int]], end: int) -> None:
        """Take what may follow, the tokens of a line, its separator included, and the token that ends a text."""
        self._following, self._tokens, self._end = following, tokens, end
        self._tries: dict[tuple[str, ...], tuple[_Node, bool]] = {}
        self._known: dict[str, Sequence[int]] = {}

    def allowed(self, written: Sequence[int]) -> list[int]:
        """Return the tokens that may follow: inside a line its next ones, after a line those of all that may follow."""
        _, node, can_end = self._walk(written)
        return [*sorted(node.after), *([self._end] if can_end else [])] or [self._end]

    def lines(self, written: Sequence[int]) -> list[str]:
        """Return the lines that are written whole."""
        return self._walk(written)[0]

    def _walk(self, written: Sequence[int]) -> tuple[list[str], _Node, bool]:
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
                for token in self._tokens_of(line):
                    node = node.after.setdefault(token, _Node())
                node.line = node.line or line
            self._tries[lines] = root, can_end
        return self._tries[lines]

    def _tokens_of(self, line: str) -> Sequence[int]:
        if line not in self._known:
            self._known[line] = self._tokens(line)
        return self._known[line]


def each_once(names: Sequence[str]) -> Following:
    """Return that each of the names may be written once, in any order, and at least one."""
    return lambda written: ([name for name in names if name not in written], bool(written))


SEPARATORS = ("\n", ";")  # after a name: the first that the tokenizer keeps
_MOST_TOKENS = 600  # of an answer
LARGEST_ADAPTER = 2**30  # bytes of a file of adapter weights
_DESCRIBED_BY = ("config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json")


@dataclass(frozen=True)
class LanguageModel:
    """A model with its tokenizer, and `max_prompt_tokens` that a prompt may have."""

    tokenizer: Any
    model: Any
    max_prompt_tokens: int

    def sequences(self, prompt: Prompt, most: int) -> list[list[str]]:
        """Return at most `most` lists of names of the prompt's catalogue by beam search, the likeliest first."""
        import torch

        trie, ids = self.trie(each_once(list(prompt.names))), self.prompt_tokens(prompt)
        given = torch.tensor([ids], device=self.model.device)
        with quiet(), torch.no_grad():
            made = self.model.generate(
                given,
                attention_mask=torch.ones_like(given),
                num_beams=most,
                num_return_sequences=most,
                do_sample=False,
                max_new_tokens=_MOST_TOKENS,
                prefix_allowed_tokens_fn=lambda _, written: trie.allowed(written[len(ids) :].tolist()),
                return_dict_in_generate=True,
                output_scores=True,
                pad_token_id=self.end,
                eos_token_id=self.end,
            )
        scores = made.sequences_scores.tolist() if most > 1 else [0.0]
        rows = [row[len(ids) :] for row in made.sequences.tolist()]
        found = [trie.lines(row) for row, score in zip(rows, scores, strict=True) if np.isfinite(score)]
        return [names for n, names in enumerate(found) if names and names not in found[:n]]

    def written(
        self,
        ids: Sequence[int],
        most: int,
        allowed: Callable[[list[int]], list[int]] | None = None,
        temperature: float = 0.0,
    ) -> list[int]:
        """Return at most `most` tokens that the model writes after these.

        `allowed` gives the tokens that may follow what is written. A temperature above 0 draws with a fixed seed.
        """
        import torch

        how: dict[str, Any] = {"do_sample": False}
        if temperature > 0:
            torch.manual_seed(0)
            how = {"do_sample": True, "temperature": temperature}
        if allowed is not None:
            how["prefix_allowed_tokens_fn"] = lambda _, tokens: allowed(tokens[len(ids) :].tolist())
        given = torch.tensor([list(ids)], device=self.model.device)
        with quiet(), torch.no_grad():
            made = self.model.generate(
                given,
                attention_mask=torch.ones_like(given),
                max_new_tokens=most,
                pad_token_id=self.end,
                eos_token_id=self.end,
                **how,
            )
        tokens: list[int] = made[0, len(ids) :].tolist()
        return tokens

    def trie(self, following: Following) -> TokenTrie:
        """Return the lines that may follow one another as tokens."""
        return TokenTrie(following, self.name_tokens, self.end)

    def name_tokens(self, name: str) -> list[int]:
        """Return the tokens of a name and of the separator after it."""
        return [*self._tokens(name), *self._separator]

    def prompt_tokens(self, prompt: Prompt) -> list[int]:
        """Return the tokens of a prompt, in the chat template of the tokenizer where it has one.

        A prompt that is too long loses tokens from its middle.
        """
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        if getattr(self.tokenizer, "chat_template", None):
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        else:
            text = f"{prompt.system}\n\n{prompt.user}\n"
        tokens: list[int] = self.tokenizer(text, add_special_tokens=True)["input_ids"]
        if len(tokens) > self.max_prompt_tokens:
            half = self.max_prompt_tokens // 2
            tokens = [*tokens[:half], *tokens[len(tokens) - (self.max_prompt_tokens - half) :]]
        return tokens

    @property
    def end(self) -> int:
        """Return the token that ends a sequence."""
        if self.tokenizer.eos_token_id is None:
            raise SettingsError("the tokenizer of causal_lm.path has no end-of-sequence token")
        return int(self.tokenizer.eos_token_id)

    @property
    def _separator(self) -> list[int]:
        return next((tokens for text in SEPARATORS if (tokens := self._tokens(text))), [self.end])

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def load(path: Path, max_prompt_tokens: int) -> LanguageModel:
    """Load a model from a folder. Raises SettingsError where there is none, or none as safetensors."""
    base_hash(path)
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)  # a process whose torch has threads cannot be forked safely
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
            model: Any = AutoModelForCausalLM.from_pretrained(
                path, local_files_only=True, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
            )
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise SettingsError(f"causal_lm.path {path} cannot be loaded: {_first_line(error)}") from None
    if torch.cuda.is_available():
        model = model.to("cuda")
    return LanguageModel(tokenizer, model.eval(), max_prompt_tokens)


def base_hash(path: Path) -> str:
    """Return a hash of a model's configuration, its tokenizer, and the names and sizes of its weights; it reads none.

    Raises SettingsError where the folder has no weights as safetensors.
    """
    weights = sorted(path.glob("*.safetensors")) if path.is_dir() else []
    if not weights:
        raise SettingsError(f"causal_lm.path {path} has no *.safetensors; weights of another kind are not read")
    return _hash(path, tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in weights))


@cache
def _hash(path: Path, weights: tuple[tuple[str, int, int], ...]) -> str:
    described = [(name, (path / name).read_bytes()) for name in _DESCRIBED_BY if (path / name).is_file()]
    return digest([(name, size) for name, size, _ in weights], *(part for pair in described for part in pair))


# --- adapters


def with_adapter(model: Any, rank: int) -> Any:
    """Return the model with an untrained LoRA adapter of this rank on all its linear layers."""
    from peft import LoraConfig, get_peft_model

    with quiet():
        config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
        return get_peft_model(model, config)


def adapter_of(model: Any) -> dict[str, np.ndarray]:
    """Return the weights of the adapter by name."""
    from peft import get_peft_model_state_dict

    return {name: part.detach().cpu().numpy() for name, part in get_peft_model_state_dict(model).items()}


def read_adapter(file: Path) -> dict[str, np.ndarray]:
    """Read the weights of an adapter. Raises LakeError where the file is damaged, too large or not finite."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if file.stat().st_size > LARGEST_ADAPTER:
        raise LakeError(f"{file.name} has {file.stat().st_size:,} bytes, more than an adapter has; not read")
    try:
        weights = load_file(file)
    except (SafetensorError, ValueError, KeyError) as error:
        raise LakeError(f"{file.name} is damaged ({error}); run `opus train --backend causal_lm`") from None
    if not all(np.isfinite(part).all() for part in weights.values()):
        raise LakeError(f"{file.name} has numbers that are not finite")
    return weights


def apply_adapter(base: LanguageModel, weights: Mapping[str, np.ndarray], rank: int) -> LanguageModel:
    """Return the model with the adapter's weights merged in. Raises OpusError where they do not fit it."""
    import torch
    from peft import set_peft_model_state_dict

    adapted = with_adapter(base.model, rank)
    wanted = {name: part.shape for name, part in adapter_of(adapted).items()}
    if wanted != {name: part.shape for name, part in weights.items()}:
        raise OpusError("the adapter does not fit the model of causal_lm.path; run `opus train --backend causal_lm`")
    with quiet():
        set_peft_model_state_dict(adapted, {name: torch.from_numpy(part) for name, part in weights.items()})
        return LanguageModel(base.tokenizer, adapted.merge_and_unload().eval(), base.max_prompt_tokens)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' notices and progress bars from whoever reads the terminal."""
    from transformers.utils import logging as notices

    notices.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
