"""Which way of carrying out a task a workflow takes."""

from opus_pipelines.wkg.graph import Task, Way


def choose_way(task: Task) -> Way:
    """The most frequent way; ties by actor kind, model and group. A task never carried out gets a way of which nothing is known."""
    return min(task.ways, key=_order, default=Way())


def _order(way: Way) -> tuple[int, str, str, str]:
    return -way.implementations, way.actor_kind or "", way.model or "", way.actor_group or ""
