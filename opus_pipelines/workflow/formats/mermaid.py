"""Writes a workflow as a Mermaid flowchart, with a box for each actor and a node for each step."""

from collections.abc import Iterator

from opus_pipelines.core.safe_text import mermaid_comment, mermaid_text
from opus_pipelines.workflow.files import TaskEntry
from opus_pipelines.workflow.formats.annotated import AnnotatedWorkflow


def as_mermaid(described: AnnotatedWorkflow) -> str:
    """Returns the text; equal workflows give equal text. Characters of titles that could be syntax are escaped."""
    return "\n".join(_lines(described)) + "\n"


def _lines(described: AnnotatedWorkflow) -> Iterator[str]:
    order = described.workflow.topological()
    names = {node: f"n{i}" for i, node in enumerate(order)}
    yield f"%% {mermaid_comment(described.title)}"
    yield "flowchart LR"
    for i, lane in enumerate(described.lanes()):
        yield f"    subgraph lane{i}[{mermaid_text(lane)}]"
        yield from (f"        {names[n]}{_node(described, n)}" for n in order if described.lane_of(n) == lane)
        yield "    end"
    for src, dst in described.workflow.edges:
        expected = ", ".join(described.expected.get((src, dst), ()))
        data = "; ".join(filter(None, (described.data_types.get((src, dst)), expected))) or None
        yield f"    {names[src]} -->{f'|{mermaid_text(data)}|' if data else ''} {names[dst]}"
    reviews = [names[n] for n in order if (task := described.tasks.get(n)) and task.kind == "review"]
    if reviews:
        yield "    classDef review stroke-width:3px,stroke-dasharray:6 3"
        yield f"    class {','.join(reviews)} review"


def _node(described: AnnotatedWorkflow, node: str) -> str:
    title, task = mermaid_text(described.title_of(node))[1:-1], described.tasks.get(node)
    if task is None:
        return f'(["{title}"])'
    mark = "Review: " if task.kind == "review" and not (task.title or "").startswith("Review: ") else ""
    return f'["{mark}{title}<br/>{", ".join(_figures(described, task))}"]'


def _figures(described: AnnotatedWorkflow, task: TaskEntry) -> Iterator[str]:
    node = described.workflow.by_id[task.id]
    cost, took = node.known_cost_usd, node.known_duration_ms  # type: ignore[union-attr]  # it is a task's
    if cost is None:
        yield "cost unknown"
    else:
        yield f"{cost:.4f} USD" if 0 < cost < 1 else f"{cost:.2f} USD"
    if took is None:
        yield "time unknown"
    else:
        yield f"{took / 60_000:.1f} min" if took >= 60_000 else f"{took / 1000:.1f} s"
    if task.id in described.evidence:
        count = described.evidence[task.id]
        yield f"{count} case{'' if count == 1 else 's'}"
