"""The backend of a causal language model, with a tiny model of random weights."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opus_pipelines.core.errors import OpusError, SettingsError
from opus_pipelines.core.settings import CausalLm, Generation, Paths, Settings
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lwm.interface import backend_of
from opus_pipelines.lwm.language_models import adapters
from opus_pipelines.lwm.language_models.adapters import ADAPTERS, WEIGHTS, save_adapter
from opus_pipelines.lwm.language_models.backends import CausalLmBackend
from opus_pipelines.lwm.language_models.causal_model import (
    adapter_of,
    apply_adapter,
    base_hash,
    load,
    read_adapter,
    with_adapter,
)
from opus_pipelines.lwm.language_models.prompts import prompt_of
from tests.lwm.language_models.lm_requests import TITLES, request
from tests.lwm.language_models.tiny_model import write_tiny_model

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # notices of torch and peft


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model"))


def backend(path: Path | None, lake: Path, **more: Any) -> CausalLmBackend:
    settings = Settings(
        paths=Paths(lake=lake),
        generation=Generation(lwm_backend="causal_lm"),
        causal_lm=CausalLm(path=path, **more),
    )
    made = backend_of(settings)
    assert isinstance(made, CausalLmBackend)
    return made


def keep_adapter(lake: Lake, path: Path, shift: float = 0.5) -> str:
    weights = {name: part + shift for name, part in adapter_of(with_adapter(load(path, 64).model, 2)).items()}
    name = ADAPTERS.keep(lake, weights, {"rank": 2, "base": base_hash(path), "industries": {}})
    ADAPTERS.store(lake).promote(name)
    return name


def test_a_random_model_writes_nothing_but_tasks_of_the_catalogue(path: Path, tmp_path: Path) -> None:
    one = backend(path, tmp_path)
    written = one.language_model.sequences(prompt_of(request()), 3)
    assert 1 <= len(written) <= 3
    assert all(set(names) <= set(TITLES.values()) and len(set(names)) == len(names) for names in written)
    found = one.generate(request())
    assert [TITLES[task] for task in found[0].tasks] == written[0]
    assert found[0].source == "lwm"


def test_the_same_request_gives_the_same_sequences(path: Path, tmp_path: Path) -> None:
    assert backend(path, tmp_path).generate(request()) == backend(path, tmp_path).generate(request())


def test_one_beam_is_enough(path: Path, tmp_path: Path) -> None:
    assert len(backend(path, tmp_path, sequences=1).language_model.sequences(prompt_of(request()), 1)) == 1


def test_a_long_prompt_is_cut_in_its_middle(path: Path, tmp_path: Path) -> None:
    one = backend(path, tmp_path, max_prompt_tokens=100)
    tokens = one.language_model.prompt_tokens(prompt_of(request("pay " * 90)))
    assert len(tokens) == 100
    assert one.language_model.tokenizer.decode(tokens).rstrip().endswith("needs:")


def test_an_adapter_that_serves_is_used_and_named(path: Path, tmp_path: Path) -> None:
    without = backend(path, tmp_path)
    name = keep_adapter(Lake(tmp_path), path)
    adapted = backend(path, tmp_path)
    assert adapted.version == f"{without.version}-{name}"
    weight = "model.layers.0.mlp.up_proj.weight"
    before, after = (one.language_model.model.state_dict()[weight].numpy() for one in (without, adapted))
    assert not np.allclose(before, after)


@pytest.mark.parametrize("damage", ["cut", "pickle", "missing", "changed"])
def test_a_damaged_adapter_is_named_and_the_model_without_it_serves(path: Path, tmp_path: Path, damage: str) -> None:
    lake = Lake(tmp_path)
    name = keep_adapter(lake, path)
    file = ADAPTERS.store(lake).folder / name / WEIGHTS
    if damage == "missing":
        shutil.rmtree(file.parent)
    elif damage == "changed":
        save_adapter({key: part * 2 for key, part in read_adapter(file).items()}, file)
    else:
        file.write_bytes(file.read_bytes()[:-8] if damage == "cut" else b"\x80\x04K\x01.")
    one = backend(path, tmp_path)
    assert one.adapter is None
    assert adapters.ADAPTERS.open(lake).stored[0].problem is not None
    assert one.generate(request())


def test_an_adapter_that_is_not_finite_or_of_another_model_is_refused(path: Path, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    keep_adapter(lake, path, float("nan"))
    assert "finite" in (adapters.ADAPTERS.open(lake).stored[0].problem or "")
    with pytest.raises(OpusError, match="fit"):
        apply_adapter(load(path, 64), {"w": np.zeros(3, np.float32)}, 2)
    other = write_tiny_model(tmp_path / "other")
    (other / "config.json").write_text((other / "config.json").read_text() + "\n")
    keep_adapter(lake, path)
    assert backend(other, lake.root).adapter is None


def test_what_is_no_model_is_named(tmp_path: Path, path: Path) -> None:
    with pytest.raises(SettingsError, match="path"):
        backend(None, tmp_path)
    with pytest.raises(SettingsError, match="safetensors"):
        backend(tmp_path / "nowhere", tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pytorch_model.bin").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(SettingsError, match="safetensors"):
        backend(tmp_path / "bin", tmp_path)
    broken = shutil.copytree(path, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(SettingsError, match="loaded"):
        backend(broken, tmp_path).generate(request())
