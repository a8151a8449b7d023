"""JSON and YAML: what `opus score` reads is what was written, to the last bit."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opus_pipelines.core.settings import Cost, Reward
from opus_pipelines.workflow.evaluation.score import score_file
from opus_pipelines.workflow.files import TaskEntry, Weights, WorkflowFile, as_json, as_yaml
from opus_pipelines.workflow.formats.registry import read_file
from tests.workflow.formats.conftest import files


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=files(), form=st.sampled_from([(as_json, "w.json"), (as_yaml, "w.yaml")]))
def test_what_is_written_is_read_back(tmp_path: Path, file: WorkflowFile, form: tuple) -> None:
    write, name = form
    (tmp_path / name).write_text(write(file), "utf-8")
    assert read_file(tmp_path / name) == file


def test_floats_are_floats_in_yaml(tmp_path: Path) -> None:
    file = WorkflowFile(tasks=(TaskEntry(id="a", cost_usd=1e-7, duration_ms=1e22, p=0.1 + 0.2),))
    text = as_yaml(file)
    assert "cost_usd: 1.0e-07" in text
    assert "duration_ms: 1.0e+22" in text
    assert "p: 0.30000000000000004" in text
    (tmp_path / "w.yaml").write_text(text)
    assert read_file(tmp_path / "w.yaml") == file


def test_a_files_own_weights_win_over_the_settings(faces: SimpleNamespace) -> None:
    file = faces.refund().file
    plain = score_file("w", file, Cost(), Reward()).parts
    assert (plain.cost_time_usd, plain.duration_ms) == (0.0, 422_500.0)
    dearer = file.model_copy(update={"weights": Weights(usd_per_hour_of_duration=36.0, **{"lambda": 0.25})})
    parts = score_file("w", dearer, Cost(), Reward()).parts
    assert parts.cost_time_usd == 4.225
    assert score_file("w", file, Cost(usd_per_hour_of_duration=36.0), Reward()).parts == parts


def test_the_weights_in_force_are_those_of_the_settings() -> None:
    made = Weights.of(Cost(usd_per_hour_of_duration=2.0, usd_per_held={"desk": 1.0}), Reward())
    assert made.model_dump_json(exclude_none=True, by_alias=True) == (
        '{"usd_per_hour_of_duration":2.0,"usd_per_gb_held":0.0,"usd_per_thread_held":0.0,"usd_per_held":{"desk":1.0},'
        '"inference":"exact","alpha":0.5,"beta":0.5,"lambda":0.5}'
    )
