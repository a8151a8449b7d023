"""A BERT checkpoint as an ONNX graph, run by ONNX Runtime or OpenVINO: the token sums of a text without loading torch.

The graph is made in memory from `config.json` and `model.safetensors`, so that there is no converted file that could
be older than its checkpoint. ONNX Runtime keeps all numbers float32: weights of eight bits found other neighbours
(docs/explanation/speed.md).
"""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np


CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
MICROSOFT = "com.microsoft"  # the domain of ONNX Runtime's own operators: whole attention, and addition with a norm
_OPSET, _IR = 18, 9


class Bert(ABC):
    """A BERT encoder with its tokenizer. Raises ValueError where the checkpoint is no plain BERT (see `fits`)."""

    texts_at_once = 1_024  # the least that `means` should get, so that many windows have the same length
    tokens_at_once: int  # of a batch; more makes it hardly faster

    def __init__(self, folder: Path, max_tokens: int) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        if (config := _config(folder)) is None:
            raise ValueError(f"{folder} holds no BERT checkpoint with {WEIGHTS} and {TOKENIZER}")
        self.dimension = int(config["hidden_size"])
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._load(Graph.of_bert(config, load_file(folder / WEIGHTS)))

    @staticmethod
    def fits(folder: Path) -> bool:
        """Tells whether the folder holds a BERT with GELU, absolute positions and a fast tokenizer."""
        return _config(folder) is not None

    def windows(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Returns the token ids of the windows of each text, each window with its start and end tokens."""
        return [[one.ids for one in (found, *found.overflowing)] for found in self._tokenizer.encode_batch(list(texts))]

    def means(self, texts: "Sequence[Sequence[Sequence[int]]]") -> "np.ndarray":
        """Returns for each text, as its windows, the mean [texts, dimension] of the last states of all its tokens.

        Windows of one length are run as a batch, in which each has the same sums as in any other batch: a row depends
        on its own text only. Each thread runs one batch after the other.
        """
        import numpy as np

        of_length: dict[int, list[tuple[int, Sequence[int]]]] = defaultdict(list)
        for number, windows in enumerate(texts):
            for window in windows:
                of_length[len(window)].append((number, window))
        batches = [
            alike[start : start + at_once]
            for length, alike in sorted(of_length.items(), reverse=True)  # the longest first, so that no thread waits
            for at_once in [max(1, self.tokens_at_once // length)]
            for start in range(0, len(alike), at_once)
        ]
        totals = np.zeros((len(texts), self.dimension), np.float32)
        with ThreadPoolExecutor(threads()) as pool:
            for batch, sums in zip(batches, pool.map(self._sums, batches), strict=True):  # floats: in one order
                np.add.at(totals, [number for number, _ in batch], sums)
        return totals / np.array([[sum(map(len, windows))] for windows in texts], np.float32)

    @abstractmethod
    def _sums(self, batch: "Sequence[tuple[int, Sequence[int]]]") -> "np.ndarray":
        """Returns the sums [windows, dimension] of the last states of each window's tokens."""

    @abstractmethod
    def _load(self, graph: "Graph") -> None:
        """Makes the graph ready to run."""


class OnnxBert(Bert):
    """BERT in float32 by ONNX Runtime."""

    tokens_at_once = 512

    def _sums(self, batch: "Sequence[tuple[int, Sequence[int]]]") -> "np.ndarray":
        import numpy as np

        windows = [window for _, window in batch]
        # a window that is run alone has other last bits than in every batch of several: it is run twice
        tokens = np.array(windows if len(windows) > 1 else windows * 2, np.int64)
        sums: np.ndarray = self._session.run(None, {"tokens": tokens})[0][: len(windows)]
        return sums

    def _load(self, graph: "Graph") -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts are encoded side by side
        options.log_severity_level = 3
        names = list(graph.weights)
        options.add_external_initializers(
            names, [onnxruntime.OrtValue.ortvalue_from_numpy(graph.weights[n]) for n in names]
        )  # the session shares the weights with NumPy
        self._session = onnxruntime.InferenceSession(graph.model(self.dimension), options, ["CPUExecutionProvider"])


def threads() -> int:
    """Returns how many texts are encoded at once: OMP_NUM_THREADS, as torch has it, else the cores of this process."""
    stated = os.environ.get("OMP_NUM_THREADS", "")
    return int(stated) if stated.isdigit() and int(stated) > 0 else len(os.sched_getaffinity(0))


def _config(folder: Path) -> dict[str, Any] | None:
    if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS, TOKENIZER)):
        return None
    config: dict[str, Any] = json.loads((folder / CONFIG).read_text("utf-8"))
    positions = config.get("position_embedding_type", "absolute")
    is_bert = config.get("model_type") == "bert" and config.get("architectures") == ["BertModel"]
    return config if is_bert and (config.get("hidden_act"), positions) == ("gelu", "absolute") else None


@dataclass
class Graph:
    """The nodes of a graph, and its weights by name."""

    nodes: list[Any] = field(default_factory=list)
    weights: "dict[str, np.ndarray]" = field(default_factory=dict)

    @classmethod
    def of_bert(cls, config: Mapping[str, Any], tensors: "Mapping[str, np.ndarray]") -> "Graph":
        """Returns the graph from `tokens` [texts, n] to `sums` [texts, dimension]: embeddings, then the layers."""
        graph = cls()
        graph._embed(tensors, config["layer_norm_eps"])
        states = "states"
        for number in range(config["num_hidden_layers"]):
            states = graph._layer(f"encoder.layer.{number}.", tensors, config, states)
        graph._add("ReduceSum", [states, graph._constant("second", [1])], "sums", keepdims=0)
        return graph

    def model(self, dimension: int, with_weights: bool = False) -> bytes:
        """Returns the graph as ONNX; without its weights, a session gets them as they are."""
        from onnx import TensorProto, helper, numpy_helper

        tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["texts", "n"])
        sums = helper.make_tensor_value_info("sums", TensorProto.FLOAT, ["texts", dimension])
        declared = [
            numpy_helper.from_array(values, name) if with_weights else _outside(name, values)
            for name, values in self.weights.items()
        ]
        made = helper.make_graph(self.nodes, "bert", [tokens], [sums], declared)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)]
        written: bytes = helper.make_model(made, opset_imports=opsets, ir_version=_IR).SerializeToString()
        return written

    def _embed(self, tensors: "Mapping[str, np.ndarray]", epsilon: float) -> None:
        name = "embeddings."
        kind = tensors[name + "token_type_embeddings.weight"][0]  # a text alone: all its tokens are of the first kind
        words = self._weight("words", tensors[name + "word_embeddings.weight"])
        places = self._weight("places", tensors[name + "position_embeddings.weight"] + kind)
        self._add("Gather", [words, "tokens"], "of words")
        self._add("Shape", ["tokens"], "length", start=1, end=2)
        self._add("Slice", [places, self._constant("first", [0]), "length"], "of places")
        self._add("Add", ["of words", "of places"], "embedded")
        norm = [self._weight(name + part, tensors[f"{name}LayerNorm.{part}"]) for part in ("weight", "bias")]
        self._add("LayerNormalization", ["embedded", *norm], "states", epsilon=epsilon)

    def _layer(self, name: str, tensors: "Mapping[str, np.ndarray]", config: Mapping[str, Any], states: str) -> str:
        """Adds one layer: attention, then a network of two, each added to what came in and normed."""
        parts = ("query", "key", "value")
        for part in parts:
            self._linear(f"{name}attention.self.{part}", tensors, states)
        found = [f"{name}attention.self.{part}.out" for part in parts]
        self._add("MultiHeadAttention", found, name + "attended", MICROSOFT, num_heads=config["num_attention_heads"])
        self._linear(name + "attention.output.dense", tensors, name + "attended")
        inner = self._normed(name + "attention.output.", tensors, states, config["layer_norm_eps"])
        wide = self._linear(name + "intermediate.dense", tensors, inner)
        self._add("Gelu", [wide], name + "wide", MICROSOFT)
        self._linear(name + "output.dense", tensors, name + "wide")
        return self._normed(name + "output.", tensors, inner, config["layer_norm_eps"])

    def _linear(self, name: str, tensors: "Mapping[str, np.ndarray]", states: str) -> str:
        weight = self._weight(name + ".weight", tensors[name + ".weight"].T)
        self._add("MatMul", [states, weight], name + ".product")
        return self._add(
            "Add", [name + ".product", self._weight(name + ".bias", tensors[name + ".bias"])], name + ".out"
        )

    def _normed(self, name: str, tensors: "Mapping[str, np.ndarray]", states: str, epsilon: float) -> str:
        norm = [self._weight(f"{name}norm.{part}", tensors[f"{name}LayerNorm.{part}"]) for part in ("weight", "bias")]
        inputs = [name + "dense.out", states, *norm]
        return self._add("SkipLayerNormalization", inputs, name + "normed", MICROSOFT, epsilon=epsilon)

    def _weight(self, name: str, values: "np.ndarray") -> str:
        import numpy as np

        self.weights[name] = np.ascontiguousarray(values, np.float32)
        return name

    def _constant(self, name: str, values: list[int]) -> str:
        import numpy as np
        from onnx import numpy_helper

        self._add("Constant", [], name, value=numpy_helper.from_array(np.array(values, np.int64)))
        return name

    def _add(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output


def _outside(name: str, values: "np.ndarray") -> Any:
    """Returns the declaration of a weight whose numbers are not in the graph."""
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="given")
    return tensor


class OpenVinoBert(Bert):
    """BERT in bfloat16.

    Raises SettingsError where OpenVINO is not installed, or where this CPU does not multiply bfloat16.
    """

    tokens_at_once = 2_048

    def _sums(self, batch: "Sequence[tuple[int, Sequence[int]]]") -> "np.ndarray":
        import numpy as np

        request = self._requests.pop()  # there is one for each thread
        try:
            sums: np.ndarray = request.infer({"tokens": np.array([window for _, window in batch], np.int64)})[0].copy()
        finally:
            self._requests.append(request)
        return sums

    def _load(self, graph: Graph) -> None:
        core = core_of(_openvino())
        model = core.read_model(graph.model(self.dimension, with_weights=True))
        how = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": threads(), "NUM_STREAMS": threads()}
        compiled = core.compile_model(model, "CPU", how)
        self._requests = [compiled.create_infer_request() for _ in range(threads())]


def core_of(openvino: Any) -> Any:
    """Returns the core of OpenVINO. Raises SettingsError where this CPU does not multiply bfloat16."""
    core = openvino.Core()
    if not _multiplies_bfloat16(core):
        raise SettingsError(
            "encoder.precision = 'bfloat16' needs a CPU with AVX512-BF16 or AMX, and this one has neither: set float32"
        )
    return core


def can_run() -> bool:
    """Tells whether this CPU has AVX512-BF16 or AMX. Raises SettingsError where OpenVINO is not installed."""
    return _multiplies_bfloat16(_openvino().Core())


def _multiplies_bfloat16(core: Any) -> bool:
    return "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _openvino() -> Any:
    """OpenVINO without its telemetry, which else forks a process that reports each read of a model to its maker."""
    loaded: dict[str, Any] = sys.modules
    loaded.setdefault("openvino_telemetry", None)
    try:
        import openvino
    except ModuleNotFoundError as error:
        if error.name != "openvino":
            raise
        raise SettingsError(
            "encoder.precision = 'bfloat16' needs OpenVINO: pip install 'opus-pipelines[openvino]', or set float32"
        ) from None
    return openvino
