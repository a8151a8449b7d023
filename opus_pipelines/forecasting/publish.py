"""Forecasts of one source's running cases: learnt, turned into rows, and published in the lake."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opus_pipelines.core.errors import InputError
from opus_pipelines.core.ids import digest, make_id
from opus_pipelines.core.schemas import FORECAST_CASES, FORECAST_STEPS
from opus_pipelines.forecasting.forecaster import Forecast, Forecaster, StepOutlook
from opus_pipelines.forecasting.history_traces import CaseRecord, OpenRule, history_records
from opus_pipelines.forecasting.lake_contexts import LakeContexts
from opus_pipelines.forecasting.traces import END
from opus_pipelines.lake.layout import Lake, slug, table_of, write_table

VERSION = 3  # of the forecasts: raise it when they change for the same input
MIN_SIMILAR = 20  # similar prefixes with an activity, from which its success is compared
BETTER_SUCCESS = 0.05  # by which an activity's success must be higher to be preferred to the most probable one
MIN_PROBABILITY = 0.1  # of an activity that may be preferred
MOST_PROBABLE, HIGHER_SUCCESS = "most probable", "higher success"


@dataclass(frozen=True)
class ForecastOptions:
    """`open_rule`: which cases of history are open; None: by their silence. `limit_s`: seconds that a case may take.

    `calendar`: dates of running cases are real. `silence`: nothing happened from a case's last event to the newest
    event of all of them; else each is seen at its last event.
    """

    open_rule: OpenRule | None = None
    limit_s: float | None = None
    calendar: bool = True
    silence: bool = True


@dataclass(frozen=True)
class SourceForecast:
    """The forecast of one source: its id and the rows of forecasts/cases and forecasts/next_steps."""

    id: str
    source: str
    cases: list[dict[str, Any]]
    next_steps: list[dict[str, Any]]


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
    return make_id("f", source, digest(VERSION, folder.name, used, running is None, cases, repr(options)))


def _folder_of(lake: Lake, source: str) -> Path:
    folders = sources_of(lake)
    if source not in folders:
        raise InputError(f"no source {source!r} in the lake; there are: {', '.join(sorted(folders)) or 'none'}")
    return folders[source]


def forecast_source(lake: Lake, request: ForecastRequest) -> SourceForecast:
    """Learns from the history of the request and forecasts its running cases.

    Raises:
        TooLittleHistory: fewer than two cases of the source have ended.
    """
    history, running, options = request.history, request.running, request.options
    again = {r.trace.case_id for r in running}
    learnt = [r.trace for r in history if r.trace.is_open or r.trace.case_id not in again]
    silent = [request.seen_until - r.trace.times[-1] if options.silence else 0.0 for r in running]
    found = (
        Forecaster(learnt, options.calendar, contexts=_contexts(lake, request.source, history, again)).forecast(
            [r.trace for r in running], silent, options.limit_s
        )
        if running
        else []
    )
    head = {"forecast": request.id, "source": request.source}
    case_head = head | {"snapshot": request.snapshot}
    cases = [
        case_head | _case_row(record, one, record.trace.times[-1] + wait, options)
        for record, one, wait in zip(running, found, silent, strict=True)
    ]
    return SourceForecast(request.id, request.source, cases, [head | row for one in found for row in _step_rows(one)])


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
    rows = {FORECAST_CASES: forecast.cases, FORECAST_STEPS: forecast.next_steps}
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

    It is the most probable one, unless similar cases succeeded clearly more often with another that is usual, too.
    """
    first = following[0]
    better = [
        one
        for one in following[1:]
        if one.activity != END
        and first.activity != END
        and min(one.similar, first.similar) >= MIN_SIMILAR
        and one.probability >= MIN_PROBABILITY
        and one.p_success is not None
        and first.p_success is not None
        and one.p_success - first.p_success >= BETTER_SUCCESS
    ]
    if better:
        return max(better, key=lambda one: one.p_success or 0.0).activity, HIGHER_SUCCESS
    return (None if first.activity == END else first.activity), MOST_PROBABLE


def _case_row(record: CaseRecord, one: Forecast, seen_until: float, options: ForecastOptions) -> dict[str, Any]:
    first, trace = one.following[0], record.trace
    do_next, reason = advice(one.following)
    cost = one.remaining_cost_usd
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
        "time_limit_ms": None if options.limit_s is None else options.limit_s * 1000,
        "p_late": one.p_late,
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
            "similar": step.similar,
        }
        for place, step in enumerate(one.following, start=1)
    ]


def _named(activity: str) -> str | None:
    return None if activity == END else activity
