"""A BERT checkpoint in bfloat16, run by OpenVINO on CPUs that multiply such numbers (AVX512-BF16, AMX)."""

import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.language.embedding.onnx_bert import Bert, Graph, threads

if TYPE_CHECKING:
    import numpy as np

TOKENS_OF_BFLOAT16 = 2_048  # of a batch: more makes it hardly faster


class OpenVinoBert(Bert):
    """BERT in bfloat16. Windows of one length are run as a batch, in which each has the vector that it has alone.

    Raises SettingsError where OpenVINO is not installed, or where this CPU does not multiply bfloat16.
    """

    texts_at_once = 1_024  # so that many windows have the same length

    def means(self, texts: "Sequence[Sequence[Sequence[int]]]") -> "np.ndarray":
        """Returns as `Bert.means` does; each thread runs one batch after the other."""
        import numpy as np

        of_length: dict[int, list[tuple[int, Sequence[int]]]] = defaultdict(list)
        for number, windows in enumerate(texts):
            for window in windows:
                of_length[len(window)].append((number, window))
        batches = [
            alike[start : start + at_once]
            for length, alike in sorted(of_length.items(), reverse=True)  # the longest first, so that no thread waits
            for at_once in [max(1, TOKENS_OF_BFLOAT16 // length)]
            for start in range(0, len(alike), at_once)
        ]
        totals = np.zeros((len(texts), self.dimension), np.float32)
        with ThreadPoolExecutor(len(self._requests)) as pool:
            for batch, sums in zip(batches, pool.map(self._sums, batches), strict=True):  # floats: in one order
                np.add.at(totals, [number for number, _ in batch], sums)
        return totals / np.array([[sum(map(len, windows))] for windows in texts], np.float32)

    def _sums(self, batch: "Sequence[tuple[int, Sequence[int]]]") -> "np.ndarray":
        """Returns the sums [windows, dimension] of the last states of each window's tokens."""
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
