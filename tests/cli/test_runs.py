import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from opus_pipelines.cli.runs import failure_of, record_intakes_folder, record_unchanged
from opus_pipelines.core.settings import Paths, Settings
from opus_pipelines.lake.version import recorded_inputs


@pytest.mark.long
def test_a_night_with_nothing_new_stands_in_dagsters_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record_unchanged(Settings(paths=Paths(lake=tmp_path)), "w12")
        import dagster as dg

        with dg.DagsterInstance.get() as instance:
            event = instance.get_latest_materialization_event(dg.AssetKey(["wkg", "snapshot"]))
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["snapshot"].value == "w12"
    assert event.asset_materialization.tags == {"dagster/data_version": "w12"}


@pytest.mark.parametrize(
    ("name", "message", "said"),
    [
        (
            "Failure",
            "dagster.Failure: a/b: unknown key x\nc / d: no space\n",
            "a/b: unknown key x\nopus: c / d: no space",
        ),
        ("LakeError", "opus_pipelines.core.errors.LakeError: the lake\nis held\n", "the lake is held"),
        ("Py4JJavaError", "Py4JJavaError: one\n\tat two\n\tat three\n", "Py4JJavaError: one at two at three"),
    ],
)
def test_why_a_run_failed_is_told_a_line_each_thing(name: str, message: str, said: str) -> None:
    error = SimpleNamespace(cls_name=name, message=message, cause=None)
    event = SimpleNamespace(is_failure=True, event_specific_data=SimpleNamespace(error=error))
    assert failure_of(SimpleNamespace(all_events=[event])) == said  # type: ignore[arg-type]


def test_a_named_intakes_folder_is_kept_though_every_result_is_up_to_date(tmp_path: Path) -> None:
    settings = Settings(paths=Paths(lake=tmp_path / "lake", intakes=tmp_path / "intakes"))
    settings.paths.intakes.mkdir()
    record_intakes_folder(settings)
    assert recorded_inputs(settings.paths.lake) == {"intakes": settings.paths.intakes}
