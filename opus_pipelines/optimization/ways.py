"""The ways of carrying out a task."""

from opus_pipelines.wkg.graph import Task, Way


def ways_of(task: Task) -> tuple[Way, ...]:
    """Most frequent first; ties by actor kind, model and group. A task never carried out has one way, of which nothing is known."""
    return tuple(sorted(task.ways, key=_order)) or (Way(),)


def _order(way: Way) -> tuple[int, str, str, str]:
    return -way.implementations, way.actor_kind or "", way.model or "", way.actor_group or ""
