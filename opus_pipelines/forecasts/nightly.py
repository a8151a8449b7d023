"""The nightly refresh: the cases that are still open in history are forecast again where anything changed."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from opus_pipelines.core.schemas import CASES
from opus_pipelines.core.settings import Forecasts
from opus_pipelines.forecasts.history_traces import PROBABLY_ENDED, OpenRule
from opus_pipelines.forecasts.limits import Limits, limits_of
from opus_pipelines.lake.layout import Lake, dataset_folder, read_table

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Refreshed:
    """What a refresh did: forecast cases by source, sources whose forecast was up to date, and why others failed."""

    cases: dict[str, int]
    unchanged: tuple[str, ...]
    failed: dict[str, str]


def refresh(
    lake: Lake, settings: Forecasts, contract_limits: Mapping[tuple[str, str], Limits] | None = None
) -> Refreshed:
    """Forecasts the open cases of every source that has some, and publishes them. The caller holds the lock.

    `contract_limits`: the limits of contracts, by client and contract; those of a source stand in the settings.
    A source that fails is named and logged; the forecasts of the others, and its earlier ones, stay as they are.
    """
    cases: dict[str, int] = {}
    unchanged, failed = [], {}
    asked = _with_open_cases(lake, settings)
    if not asked:
        return Refreshed({}, (), {})
    # Here, so that a night without open cases does not load scikit-learn.
    from opus_pipelines.forecasts.publish import (
        ForecastOptions,
        LimitSources,
        forecast_id,
        forecast_source,
        is_published,
        publish,
        request_of,
    )

    for source, rule in asked.items():
        try:
            own = settings.limits.get(source)
            limits = LimitSources((), contract_limits or {}, limits_of(own) if own else ())
            options = ForecastOptions(rule, limits)
            if is_published(lake, source, forecast_id(lake, source, None, options)):
                unchanged.append(source)
                continue
            request = request_of(lake, source, None, options)
            if not request.running:
                continue
            publish(lake, forecast_source(lake, request))
            cases[source] = len(request.running)
        except Exception as error:  # the snapshot is published already: no forecast may fail the night
            failed[source] = f"{type(error).__name__}: {error}"
            logger.warning("the open cases of %s were not forecast: %s", source, failed[source])
    return Refreshed(cases, tuple(unchanged), failed)


def _with_open_cases(lake: Lake, settings: Forecasts) -> dict[str, OpenRule | None]:
    """The sources that may have open cases, with the rule of each that has one.

    Of the others the snapshot knows which cases have probably not ended, so that nothing else is read.
    """
    folder = lake.snapshot_folder(lake.required_snapshot())
    known = read_table(CASES, dataset_folder(folder, CASES), columns=["source", "p_ended"])
    silent = Counter(known.filter(pc.less(known["p_ended"], PROBABLY_ENDED))["source"].to_pylist())
    rules = {source: OpenRule.of(rule) for source, rule in settings.open_cases.items()}
    return {source: rules.get(source) for source in sorted({*silent, *rules})}
