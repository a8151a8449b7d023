"""Process models and exports to cases: what the formats that draw a flow share once they know their steps and links."""

from collections.abc import Iterable, Mapping
from typing import Any

from opus_pipelines.history.mapping import CaseMap, EventMap, case_names
from opus_pipelines.history.money import Money
from opus_pipelines.history.readers.flow import TooManyLinksError, unroll
from opus_pipelines.history.records import Case
from opus_pipelines.history.source_settings import CaseNames, EventNames, SourceSettings
from opus_pipelines.history.times import TimeParser
from opus_pipelines.history.values import BadValueError

LOOP_BACK = "loop_back_to"
_CASE = {"title": "name", "description": "documentation"}
_STEP = {
    "activity": "key", "task_title": "name", "task_description": "documentation", "instructions": "instructions", "actor": "actor",
    "actor_kind": "actor_kind", "actor_group": "lane", "model": "model",
    "inputs": "inputs", "outputs": "outputs", "predecessors": "predecessors",
}


class ModelMap:
    """Makes a case of a flow. Raw keys are those of `_CASE` and `_STEP` unless `[columns]` says otherwise; the rest are attributes."""

    def __init__(self, settings: SourceSettings, money: Money) -> None:
        stated = {k: v for k, v in settings.columns.model_dump(exclude_none=True).items() if isinstance(v, str)}
        names = case_names(settings, _CASE | {k: v for k, v in stated.items() if k in CaseNames.model_fields and k != "case"})
        self._case_map = CaseMap(names, settings.columns.attributes, money)
        of_steps = _STEP | {k: v for k, v in stated.items() if k in EventNames.model_fields}
        self._events = EventMap(of_steps, CaseMap({}, [], money), settings, TimeParser(settings.timezone, settings.time_format))

    def case(
        self, case_id: str, own: Mapping[str, Any], steps: list[dict[str, Any] | None], links: Iterable[tuple[int, int]]
    ) -> Case:
        """The case of a flow whose `steps` are raw records, or None where a node is no work. Raises BadValueError."""
        try:
            flow = unroll([step is not None for step in steps], links)
        except TooManyLinksError as error:
            raise BadValueError("too_many_links", str(error)) from None
        fields: dict[str, Any] = {}
        self._case_map.collect(fields, own)
        self._case_map.collect_attributes(fields, own)
        place = {node: n for n, node in enumerate(flow.order)}
        events = []
        for node in flow.order:
            raw: dict[str, Any] = (steps[node] or {}) | {"predecessors": [place[n] for n in flow.before[node]]}
            if node in flow.loops:
                raw[LOOP_BACK] = "; ".join(str((steps[n] or {}).get("name", "")) for n in flow.loops[node])
            events.append(self._events.event(raw, place[node]))
        return Case(case_id, fields, events)
