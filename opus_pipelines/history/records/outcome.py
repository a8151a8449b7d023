"""Decides whether a case succeeded by the source's `[success]` rule. The outcome is NULL if the rule cannot decide."""

from typing import Any

from opus_pipelines.history.records import values
from opus_pipelines.history.records.records import Task
from opus_pipelines.history.records.source_settings import Success
from opus_pipelines.history.records.values import BadValueError


def succeeded(rule: Success, fields: dict[str, Any], stated: Any, tasks: list[Task]) -> bool | None:
    """Returns the outcome of a case: by the rule, else by its own `success` value in `fields`.

    `stated` is the value of the rule's column. A rule about tasks cannot decide a case without tasks.
    """
    if rule.column is not None:
        return None if stated is None else _equals(stated, rule.equals)
    done = [t.task_key for t in tasks]
    if rule.last_activity_in is not None:
        return done[-1] in rule.last_activity_in if done else None
    if rule.contains_activity is not None:
        return not set(done).isdisjoint(rule.contains_activity) if done else None
    if rule.contains_none_of is not None:
        return set(done).isdisjoint(rule.contains_none_of) if done else None
    return fields.get("success")


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_equals(value, w) for w in wanted)
    try:
        if isinstance(wanted, bool):
            return values.boolean(value) == wanted
        if isinstance(wanted, float):
            return values.number(value) == wanted
    except BadValueError:
        return False
    return bool(values.text(value).strip() == wanted.strip())
