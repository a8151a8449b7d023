"""The Dagster runs behind `opus rebuild` and `opus generate`: the same jobs that the schedule and the UI start."""

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from opus_pipelines.cli.home import prepare
from opus_pipelines.core.errors import LakeError, OpusError
from opus_pipelines.core.settings import Settings
from opus_pipelines.intakes.discover import ContractFolder
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.lock import this_process
from opus_pipelines.reporting.status import has_unfinished_runs, reason_of

if TYPE_CHECKING:
    import dagster as dg

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}  # progress is shown by our own logger
logger = logging.getLogger("opus_pipelines.cli")


def rebuild(settings: Settings, full: bool, reset_lambda: bool, publish: bool = False) -> None:
    """Run the job `rebuild`; raises OpusError with the reason when it fails, or naming the files that were rejected
    whole.
    """
    mine = {"reset_lambda": reset_lambda, "publish": publish or full}
    config = {"read_history": {"config": {"full": full}}, "mine": {"config": mine}}
    problems = _run(settings, "rebuild", lambda _: [{}], {"ops": config})
    logger.info("snapshot %s is current", Lake(settings.paths.lake).current_snapshot())
    _complain(problems)


def record_unchanged(settings: Settings, snapshot: str) -> None:
    """Leave in Dagster's record that history was looked at and `snapshot` is still what it makes: what keeps the
    snapshot fresh there.
    """
    prepare(settings)
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        instance.report_runless_asset_event(
            dg.AssetMaterialization(
                ["wkg", "snapshot"],
                description="nothing new",
                metadata={"snapshot": snapshot},
                tags={"dagster/data_version": snapshot},
            )
        )


def generate(settings: Settings, wanted: list[ContractFolder], retry_failed: bool = False) -> None:
    """Run the job `generate` over the wanted contracts, one run for each span of them; raises OpusError naming what
    failed.
    """
    keys = {folder.key for folder in wanted}
    config = {"generate_contracts": {"config": {"retry_failed": retry_failed}}}
    _complain(_run(settings, "generate", lambda instance: _spans(instance, keys), {"ops": config}))


def _run(
    settings: Settings, job: str, tags_of: Callable[[Any], Iterable[dict[str, str]]], config: dict[str, Any]
) -> list[str]:
    """Run a job once for each set of tags; a line for each thing that failed or was left out."""
    with Lake(settings.paths.lake).lock():
        pass  # who writes already is found before anything heavy is loaded
    prepare(settings)
    start = time.monotonic()
    problems: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dagster's beta and deprecation notices are not for the person at the terminal
        import dagster as dg

        from opus_pipelines.definitions import build_defs
        from resources.lake import PROCESS

        resolved = build_defs(settings).resolve_job_def(job)
        with dg.DagsterInstance.get() as instance:
            for tags in ({PROCESS: this_process()} | more for more in tags_of(instance)):
                result = resolved.execute_in_process(
                    instance=instance, raise_on_error=False, run_config=QUIET | config, tags=tags
                )
                problems += (
                    _warnings(result)
                    if result.success
                    else [f"{_reason(result)} (its log: opus ui, run {result.run_id})"]
                )
    logger.info("%s took %.1f s", job, time.monotonic() - start)
    return problems


def settle(settings: Settings) -> None:
    """Have runs whose process died marked as failed, and what they left cleaned up, where no new run does it."""
    lake = Lake(settings.paths.lake)
    if not has_unfinished_runs(lake):
        return
    with warnings.catch_warnings(), contextlib.ExitStack() as held:
        try:
            held.enter_context(lake.lock())
        except LakeError:
            return  # a live run has the lake: it settled them when it began
        prepare(settings)
        warnings.simplefilter("ignore")  # as in _run
        import dagster as dg

        from resources.lake import fail_dead_runs

        with dg.DagsterInstance.get() as instance:
            fail_dead_runs(instance, "")


def _complain(problems: list[str]) -> None:
    if problems:
        raise OpusError("\nopus: ".join(problems))


def _spans(instance: "dg.DagsterInstance", keys: set[str]) -> Iterator[dict[str, str]]:
    """The tags of each run; keys that Dagster does not know yet are added in order."""
    from assets.partitions import CONTRACT
    from jobs.spans import order_with, ranges, tags

    order, new = order_with(instance.get_dynamic_partitions(CONTRACT), keys)
    instance.add_dynamic_partitions(CONTRACT, new)
    for first, last in ranges(order, keys):
        yield tags(first, last)


def _warnings(result: "dg.ExecuteInProcessResult") -> list[str]:
    """What a run went on without: the lines of its failed checks."""
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    told = [
        check.metadata["lines"] for check in failed if "lines" in check.metadata
    ]  # the others were said while it ran
    return [str(line) for lines in told for line in lines.value]  # type: ignore[union-attr]


def _reason(result: "dg.ExecuteInProcessResult") -> str:
    """Why a run failed, in the words of the deepest error: ours as they are, others with their type; a line each
    contract that failed.
    """
    found = [getattr(event.event_specific_data, "error", None) for event in result.all_events if event.is_failure]
    chain = [(error.cls_name, error.message) for error in _causes(next((e for e in found if e), None))]
    return "\nopus: ".join(reason_of(chain))


def _causes(error: Any) -> Iterator[Any]:
    while error is not None:
        yield error
        error = error.cause
