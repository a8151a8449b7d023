"""Forecasts of one source's running cases: learnt, turned into rows, and published in the lake.

The nightly refresh: the cases that are still open in history are forecast again where anything changed.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import CASES, FORECAST_CASES, FORECAST_LIMITS, FORECAST_STEPS
from opus_pipelines.core.settings import Forecasts
from opus_pipelines.core.versions import FORECASTS_VERSION
from opus_pipelines.forecasts.context_counts import LakeContexts
from opus_pipelines.forecasts.forecaster import Forecast, Forecaster, StepOutlook
from opus_pipelines.forecasts.limits import (
    LEAD_TIME,
    UNITS,
    Limit,
    LimitOutlook,
    Limits,
    by_contract,
    in_force,
    limits_of,
)
from opus_pipelines.forecasts.traces import END, CaseRecord, Trace, history_records
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table, slug, table_of, write_table
from opus_pipelines.wkg.estimates.next_activity import PROBABLY_ENDED, OpenRule

MIN_SIMILAR = 20  # similar prefixes with an activity, from which its success is compared
BETTER_SUCCESS = 0.05  # by which an activity's success must be higher to be preferred to the most probable one
MIN_PROBABILITY = 0.1  # of an activity that may be preferred
FEWER_BROKEN = 0.05  # by which an activity's share of broken limits must be lower to be preferred
MOST_PROBABLE, HIGHER_SUCCESS, FEWER_LIMITS = "most probable", "higher success", "fewer broken limits"
COMMAND, CONTRACT, SETTINGS = "command", "contract", "settings"


@dataclass(frozen=True)
class LimitSources:
    """Where limits are stated: on the command line, by contracts (by client and contract), and for the source."""

    command: Limits = ()
    contracts: Mapping[tuple[str, str], Limits] = field(default_factory=dict)
    source: Limits = ()

    def of(self, record: CaseRecord) -> Limits:
        """The limits of one case."""
        return in_force(self.command, by_contract(self.contracts, record.client, record.contract), self.source)

    def stated_by(self, limit: Limit) -> str:
        """Who states this limit."""
        return COMMAND if limit in self.command else SETTINGS if limit in self.source else CONTRACT


@dataclass(frozen=True)
class ForecastOptions:
    """`open_rule`: which cases of history are open; None: by their silence. `limits`: those of cases.

    `calendar`: dates of running cases are real. `silence`: nothing happened from a case's last event to the newest
    event of all of them; else each is seen at its last event.
    """

    open_rule: OpenRule | None = None
    limits: LimitSources = LimitSources()
    calendar: bool = True
    silence: bool = True


@dataclass(frozen=True)
class SourceForecast:
    """The forecast of one source: its id and the rows of forecasts/cases, forecasts/next_steps and forecasts/limits."""

    id: str
    source: str
    cases: list[dict[str, Any]]
    next_steps: list[dict[str, Any]]
    limits: list[dict[str, Any]]


def sources_of(lake: Lake) -> dict[str, Path]:
    """The folder of implementations of every source in the current snapshot, by name.

    Raises:
        LakeError: the lake has no snapshot.
    """
    return {s["source"]: lake.root / s["folder"] for s in lake.manifest(lake.required_snapshot())["inputs"]["sources"]}


@dataclass(frozen=True)
class ForecastRequest:
    """What is to be forecast of one source, and the history that it is learnt from.

    `id` is a hash of all of it; until `seen_until` (seconds since the epoch) nothing more happened.
    """

    id: str
    source: str
    snapshot: str
    history: Sequence[CaseRecord]
    running: Sequence[CaseRecord]
    seen_until: float
    options: ForecastOptions


def request_of(
    lake: Lake, source: str, running: Sequence[CaseRecord] | None, options: ForecastOptions
) -> ForecastRequest:
    """The request for the running cases, or where they are None for the open cases in the source's history.

    Raises:
        InputError: the lake has no such source.
    """
    history = history_records(_folder_of(lake, source), options.open_rule)
    asked = [r for r in history if r.trace.is_open] if running is None else running
    until = max((r.trace.times[-1] for r in (history if running is None else asked)), default=0.0)
    forecast = forecast_id(lake, source, running, options)
    return ForecastRequest(forecast, source, lake.required_snapshot(), history, asked, until, options)


def forecast_id(lake: Lake, source: str, running: Sequence[CaseRecord] | None, options: ForecastOptions) -> str:
    """The id of a forecast: a hash of everything that it is made from. The cases of history are not read.

    A new snapshot that has the same history of the source, and the same contexts of its tasks, gives the same id.

    Raises:
        InputError: the lake has no such source.
    """
    folder, contexts = _folder_of(lake, source), LakeContexts.of(lake, source)
    cases = [[r.trace.case_id, list(r.trace.activities), list(r.trace.times)] for r in running or ()]
    used = None if contexts is None else contexts.content_hash
    return make_id("f", source, digest(FORECASTS_VERSION, folder.name, used, running is None, cases, repr(options)))


def _folder_of(lake: Lake, source: str) -> Path:
    folders = sources_of(lake)
    if source not in folders:
        raise InputError(f"no source {source!r} in the lake; there are: {', '.join(sorted(folders)) or 'none'}")
    return folders[source]


def forecast_source(lake: Lake, request: ForecastRequest) -> SourceForecast:
    """Learns from the history of the request and forecasts its running cases.

    Raises:
        TooLittleHistory: fewer than two cases of the source have ended.
        InputError: a limit of the source names an activity that its history does not have.
    """
    history, running, options = request.history, request.running, request.options
    again = {r.trace.case_id for r in running}
    learnt = [r.trace for r in history if r.trace.is_open or r.trace.case_id not in again]
    silent = [request.seen_until - r.trace.times[-1] if options.silence else 0.0 for r in running]
    found = _forecasts(lake, request, learnt, silent) if running else []
    head = {"forecast": request.id, "source": request.source}
    case_head = head | {"snapshot": request.snapshot}
    cases = [
        case_head | _case_row(record, one, record.trace.times[-1] + wait)
        for record, one, wait in zip(running, found, silent, strict=True)
    ]
    steps = [head | row for one in found for row in _step_rows(one)]
    limits = [head | row for one in found for row in _limit_rows(one, options.limits)]
    return SourceForecast(request.id, request.source, cases, steps, limits)


def _forecasts(
    lake: Lake, request: ForecastRequest, learnt: Sequence[Trace], silent: Sequence[float]
) -> list[Forecast]:
    options, again = request.options, {r.trace.case_id for r in request.running}
    contexts = _contexts(lake, request.source, request.history, again)
    forecaster = Forecaster(learnt, options.calendar, contexts=contexts)
    stated = options.limits.command + options.limits.source
    if unknown := forecaster.unknown_activities(stated):
        known = ", ".join(sorted(forecaster.vocabulary.activities[1:]))
        raise InputError(
            f"limits of source {request.source!r} name {', '.join(map(repr, unknown))}, which its history does not "
            f"have; correct `forecasts.limits`. Activities are: {known}"
        )
    return forecaster.forecast(
        [r.trace for r in request.running], silent, [options.limits.of(r) for r in request.running]
    )


def is_published(lake: Lake, source: str, forecast: str) -> bool:
    """Whether the lake has this very forecast."""
    return lake.folder(FORECAST_STEPS, source_key=source, forecast_key=forecast).is_dir()


def _contexts(lake: Lake, source: str, history: Sequence[CaseRecord], running: set[str]) -> LakeContexts | None:
    """The contexts of the current snapshot; ended cases of history that are to be forecast teach nothing."""
    found = LakeContexts.of(lake, source)
    ended = (r.trace for r in history if r.trace.case_id in running and not r.trace.is_open)
    return None if found is None else replace(found, not_learnt=tuple(ended))


def publish(lake: Lake, forecast: SourceForecast) -> None:
    """Writes the rows into the lake, and then removes the source's earlier forecasts. The caller holds the lock."""
    lake.ensure_empty()
    rows = {FORECAST_CASES: forecast.cases, FORECAST_STEPS: forecast.next_steps, FORECAST_LIMITS: forecast.limits}
    with lake.staging() as staged:
        for dataset, own in rows.items():
            write_table(dataset, table_of(dataset, own), staged / dataset.view)
            final = lake.folder(dataset, source_key=forecast.source, forecast_key=forecast.id)
            final.parent.mkdir(parents=True, exist_ok=True)
            lake.publish(staged / dataset.view, final)
    for dataset in rows:
        for folder in sorted(lake.folder(dataset, source_key=forecast.source).glob("forecast_key=*")):
            if folder.name != f"forecast_key={slug(forecast.id)}":
                lake.remove(folder)


def advice(following: Sequence[StepOutlook]) -> tuple[str | None, str]:
    """The activity to do now, None where the case seems to have ended, and the reason.

    It is the most probable one, unless similar cases succeeded clearly more often with another that is usual, too; or,
    where none is so, broke clearly fewer limits with it and did not succeed less often.
    """
    first = following[0]
    usual = [
        one
        for one in following[1:]
        if END not in (one.activity, first.activity)
        and min(one.similar, first.similar) >= MIN_SIMILAR
        and one.probability >= MIN_PROBABILITY
    ]
    better = [one for one in usual if (_gain(one.p_success, first.p_success) or 0.0) >= BETTER_SUCCESS]
    if better:
        return max(better, key=lambda one: one.p_success or 0.0).activity, HIGHER_SUCCESS
    sooner = [
        one
        for one in usual
        if (_gain(first.p_limit, one.p_limit) or 0.0) >= FEWER_BROKEN
        and (_gain(one.p_success, first.p_success) or 0.0) >= 0.0
    ]
    if sooner:
        return min(sooner, key=lambda one: one.p_limit or 0.0).activity, FEWER_LIMITS
    return (None if first.activity == END else first.activity), MOST_PROBABLE


def _gain(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _case_row(record: CaseRecord, one: Forecast, seen_until: float) -> dict[str, Any]:
    first, trace = one.following[0], record.trace
    do_next, reason = advice(one.following)
    cost = one.remaining_cost_usd
    late = next((found for found in one.limits if found.limit.kind == LEAD_TIME), None)
    return {
        "case_id": trace.case_id,
        "client": record.client,
        "contract": record.contract,
        "steps": one.steps,
        "last_activity": trace.activities[-1],
        "last_event_at": datetime.fromtimestamp(trace.times[-1], UTC),
        "seen_until": datetime.fromtimestamp(seen_until, UTC),
        "next_activity": _named(first.activity),
        "p_next": first.probability,
        "p_end": one.p_end,
        "rest": list(one.rest),
        "remaining_ms": one.remaining_s.middle * 1000,
        "remaining_ms_low": one.remaining_s.low * 1000,
        "remaining_ms_high": one.remaining_s.high * 1000,
        "remaining_cost_usd": cost.middle if cost else None,
        "remaining_cost_usd_low": cost.low if cost else None,
        "remaining_cost_usd_high": cost.high if cost else None,
        "p_success": one.p_success,
        "time_limit_ms": None if late is None else late.limit.value * 1000,
        "p_late": None if late is None else late.p_broken,
        "p_limit": one.p_limit,
        "do_next": do_next,
        "do_next_reason": reason if do_next else None,
        "similar": one.similar,
    }


def _step_rows(one: Forecast) -> list[dict[str, Any]]:
    return [
        {
            "case_id": one.case_id,
            "place": place,
            "activity": _named(step.activity),
            "probability": step.probability,
            "p_success": step.p_success,
            "remaining_ms": None if step.remaining_s is None else step.remaining_s * 1000,
            "p_limit": step.p_limit,
            "similar": step.similar,
        }
        for place, step in enumerate(one.following, start=1)
    ]


def _limit_rows(one: Forecast, stated: LimitSources) -> list[dict[str, Any]]:
    """The limits of one case, the most probably broken first."""

    def scaled(found: LimitOutlook, value: float | None) -> float | None:
        return None if value is None else value * (1000.0 if UNITS[found.limit.kind] == "ms" else 1.0)

    ordered = sorted(one.limits, key=lambda found: -1.0 if found.p_broken is None else found.p_broken, reverse=True)
    return [
        {
            "case_id": one.case_id,
            "place": place,
            "kind": found.limit.kind,
            "activity": found.limit.activity,
            "after": found.limit.after,
            "unit": UNITS[found.limit.kind],
            "limit_value": scaled(found, found.limit.value),
            "so_far": scaled(found, found.so_far),
            "expected": scaled(found, found.expected),
            "p_broken": found.p_broken,
            "stated_by": stated.stated_by(found.limit),
        }
        for place, found in enumerate(ordered, start=1)
    ]


def _named(activity: str) -> str | None:
    return None if activity == END else activity


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did: forecast cases by source, sources whose forecast was up to date, and why others failed."""

    cases: dict[str, int]
    unchanged: tuple[str, ...]
    failed: dict[str, str]


def refresh(
    lake: Lake,
    settings: Forecasts,
    contract_limits: Mapping[tuple[str, str], Limits] | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Refreshed:
    """Forecasts the open cases of every source that has some, and publishes them. The caller holds the lock.

    `contract_limits`: the limits of contracts, by client and contract; those of a source stand in the settings.
    `progress` is told the sources that are done, and of how many.
    A source that fails is named and logged; the forecasts of the others, and its earlier ones, stay as they are.
    """
    cases: dict[str, int] = {}
    unchanged, failed = [], {}
    asked = _with_open_cases(lake, settings)
    if not asked:
        return Refreshed({}, (), {})
    for number, (source, rule) in enumerate(asked.items()):
        progress(number, len(asked))
        try:
            own = settings.limits.get(source)
            limits = LimitSources((), contract_limits or {}, limits_of(own) if own else ())
            options = ForecastOptions(rule, limits)
            if is_published(lake, source, forecast_id(lake, source, None, options)):
                unchanged.append(source)
                continue
            request = request_of(lake, source, None, options)
            if not request.running:  # those of an earlier night no longer run
                if any(lake.folder(FORECAST_CASES, source_key=source).glob("*")):
                    publish(lake, SourceForecast(request.id, source, [], [], []))
                continue
            publish(lake, forecast_source(lake, request))
            cases[source] = len(request.running)
        except Exception as error:  # the snapshot is published already: no forecast may fail the night
            failed[source] = f"{type(error).__name__}: {error}"
            logger.warning("the open cases of %s were not forecast: %s", source, failed[source])
    progress(len(asked), len(asked))
    return Refreshed(cases, tuple(unchanged), failed)


def stated_rule(lake: Lake, source: str, settings: Forecasts) -> OpenRule | None:
    """What is stated of the open cases of a source: by the settings, else by its source.toml when it was mined."""
    kept = lake.manifest(lake.required_snapshot())["inputs"].get("open_cases", {})  # older snapshots say nothing
    stated = settings.stated(source) or kept.get(source, ())
    return OpenRule.of(*stated) if stated else None


def _with_open_cases(lake: Lake, settings: Forecasts) -> dict[str, OpenRule | None]:
    """The sources that may have open cases, or had some, with the rule of each that has one.

    Of the others the snapshot knows which cases have probably not ended, so that nothing else is read.
    """
    folder = lake.snapshot_folder(lake.required_snapshot())
    known = read_table(CASES, dataset_folder(folder, CASES), columns=["source", "p_ended"])
    silent = Counter(known.filter(pc.less(known["p_ended"], PROBABLY_ENDED))["source"].to_pylist())
    stated = settings.open_cases if isinstance(settings.open_cases, dict) else {}
    had = {source for source in sources_of(lake) if any(lake.folder(FORECAST_CASES, source_key=source).glob("*"))}
    return {source: stated_rule(lake, source, settings) for source in sorted({*silent, *stated, *had})}
