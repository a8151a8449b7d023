"""Checks of a snapshot's drift from the last one: they warn, or block, beyond the shares of the settings."""

from collections.abc import Iterator

from opus_pipelines.schemas import EDGES, TASKS, Dataset
from opus_pipelines.settings import Checks
from opus_pipelines.wkg.checks import CheckResult
from opus_pipelines.wkg.drift import Drift

TASK_DRIFT, GONE, EDGE_DRIFT, SHARE_DRIFT = (
    "drift of tasks", "no industry or source vanished", "drift of edges", "drift of transition shares",
)
DRIFT_CHECKS: dict[str, Dataset] = {TASK_DRIFT: TASKS, GONE: TASKS, EDGE_DRIFT: EDGES, SHARE_DRIFT: EDGES}
MEANINGS = {  # what must hold, by check; `checks.drift` says whether a failure warns, blocks, or is not looked for
    TASK_DRIFT: "The share of tasks that came or went since the last snapshot is at most `checks.drift_tasks`.",
    GONE: "Every industry and every source of the last snapshot is still there.",
    EDGE_DRIFT: "The edges that came or went since the last snapshot have at most the share `checks.drift_edges` of the transitions.",
    SHARE_DRIFT: "The transition shares moved by at most `checks.drift_transitions` since the last snapshot.",
}


def check_drift(drift: Drift | None, settings: Checks) -> list[CheckResult]:
    """One result a check; all pass where there is nothing to compare with, or where the settings turn drift off."""
    if settings.drift == "off" or drift is None:
        said = "off by settings" if settings.drift == "off" else "no other snapshot to compare with"
        return [CheckResult(name, True, said, dataset.name, blocking=False) for name, dataset in DRIFT_CHECKS.items()]
    return list(_found(drift, settings))


def _found(drift: Drift, settings: Checks) -> Iterator[CheckResult]:
    came = f"{len(drift.tasks_added)} came, {len(drift.tasks_removed)} went of {drift.tasks[0]}"
    yield _result(TASK_DRIFT, drift.task_share, "drift_tasks", came, settings)
    lost = [f"{kind} {name}" for kind, names in (("industry", drift.industries_gone), ("source", drift.sources_gone)) for name in names]
    yield _made(GONE, not lost, f"gone: {', '.join(lost[:5])}{', ...' if len(lost) > 5 else ''}" if lost else "none", settings)
    came = f"{len(drift.edges_added)} came, {len(drift.edges_removed)} went of {drift.edges[0]}"
    yield _result(EDGE_DRIFT, drift.edge_share, "drift_edges", f"of the transitions; {came}", settings)
    worst = drift.movers[0] if drift.movers else None
    most = f"most: {worst.titles[0][:60]} -> {worst.titles[1][:60]} from {worst.before:.3f} to {worst.after:.3f}" if worst else "none moved"
    yield _result(SHARE_DRIFT, drift.moved, "drift_transitions", most, settings)


def _result(name: str, share: float, key: str, said: str, settings: Checks) -> CheckResult:
    limit: float = getattr(settings, key)
    passed = share <= limit
    return _made(name, passed, f"{share:.1%}{'' if passed else f', more than {key} = {limit:g}'} ({said})", settings)


def _made(name: str, passed: bool, detail: str, settings: Checks) -> CheckResult:
    blocking = settings.drift == "block"
    remedy = "; if it is meant, rebuild with OPUS_CHECKS_DRIFT=warn" if blocking and not passed else ""
    return CheckResult(name, passed, detail + remedy, DRIFT_CHECKS[name].name, blocking)
