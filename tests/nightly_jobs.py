"""Jobs of the nightly rebuild for tests: a small history, no sentence encoder, and any executor."""

import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dagster as dg

from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake
from resources.encoder import EncoderResource
from tests.wkg_fixtures import HashEncoder

STEPS = (("Receive order", "code"), ("Check stock", "human"), ("Ship goods", "human"), ("Send invoice", "code"))
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
SETTINGS = "TEST_NIGHTLY_SETTINGS"  # the variable that names the settings for the processes of one run
REFUSED = "refused"  # a file of this name in the lake lets the encoder fail


class HashResource(EncoderResource):
    """Stands where the meaning of a text does not matter; loads nothing."""

    def of_lake(self, lake: Lake) -> Any:
        if (self.typed.paths.lake / REFUSED).exists():
            raise RuntimeError("the encoder was taken away")
        return HashEncoder()


def write_history(folder: Path, cases: int) -> None:
    """A source of so many cases; every fourth skips the check of the stock and fails."""
    source = folder / "orders"
    source.mkdir(parents=True, exist_ok=True)
    (source / "source.toml").write_text(
        'industry = "retail"\nclient = "Acme"\n[columns]\nactor_kind = "who"\nsuccess = "ok"\n'
    )
    lines = ["case,activity,start,end,who,cost,ok"]
    for case in range(cases):
        day, bad = f"2026-{case // 28 + 1:02}-{case % 28 + 1:02}", case % 4 == 3
        lines += [
            f"c{case},{task},{day}T0{n}:00:00Z,{day}T0{n}:30:00Z,{who},1.5,{'false' if bad else 'true'}"
            for n, (task, who) in enumerate(STEPS)
            if not (bad and n == 1)
        ]
    (source / "orders.csv").write_text("\n".join(lines) + "\n")


def definitions(settings: Settings, **more: Any) -> dg.Definitions:
    """The definitions of the project with the encoder of hashes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's own beta and deprecation notices
        from opus_pipelines.definitions import build_defs

        return build_defs(settings, {"encoder": HashResource.of(settings)}, **more)


def run(
    settings: Settings,
    instance: dg.DagsterInstance,
    selection: Iterable[str] | None = None,
    job: str = "rebuild",
    **more: Any,
) -> dg.ExecuteInProcessResult:
    """Runs a job, or of it the selected assets with their checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resolved = definitions(settings).resolve_job_def(job)
        chosen = None if selection is None else [dg.AssetKey(name.split("/")) for name in selection]
        return resolved.execute_in_process(
            instance=instance, raise_on_error=False, run_config=QUIET, asset_selection=chosen, **more
        )


def steps_of(result: Any) -> list[str]:
    """The steps that succeeded, in their order."""
    return [event.step_key for event in result.all_events if event.is_step_success]


def reported(result: dg.ExecuteInProcessResult) -> set[str]:
    """The assets that the run reports."""
    events = [event for event in result.all_events if event.is_step_materialization]
    return {event.step_materialization_data.materialization.asset_key.to_user_string() for event in events}


def settings_of_test() -> Settings:
    return Settings.model_validate(json.loads(os.environ[SETTINGS]))


def one_process() -> dg.JobDefinition:
    """The rebuild of the settings in `SETTINGS`, in one process."""
    return definitions(settings_of_test()).resolve_job_def("rebuild")


def many_processes() -> dg.JobDefinition:
    """The same in a process for each step."""
    executor = dg.multiprocess_executor.configured({"max_concurrent": 1})
    return definitions(settings_of_test(), executor=executor).resolve_job_def("rebuild")
