"""The formats that `opus export` writes, by name: the built-in ones, and those that installed distributions add."""

from collections.abc import Iterator
from typing import Any, Protocol

from opus_pipelines.core.errors import InputError, PluginError
from opus_pipelines.core.formatting import mermaid_comment, mermaid_text
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.workflow.files import AnnotatedWorkflow, TaskEntry, as_json, as_yaml
from opus_pipelines.workflow.formats.bpmn import as_bpmn


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


class ExportFormat(Protocol):
    """Writes a workflow for another program. `suffixes`: the endings of its files, each with its dot, in lower case."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of its files, each with its dot, in lower case."""
        ...

    def write(self, workflow: AnnotatedWorkflow) -> bytes:
        """Returns the content of the file; equal workflows give equal bytes."""
        ...


class _Bpmn:
    suffixes: tuple[str, ...] = (".bpmn",)

    def write(self, workflow: AnnotatedWorkflow) -> bytes:
        return as_bpmn(workflow)


class _Mermaid:
    suffixes: tuple[str, ...] = (".mmd", ".mermaid")

    def write(self, workflow: AnnotatedWorkflow) -> bytes:
        return as_mermaid(workflow).encode()


class _Json:
    suffixes: tuple[str, ...] = (".json",)

    def write(self, workflow: AnnotatedWorkflow) -> bytes:
        return as_json(workflow.file).encode()


class _Yaml:
    suffixes: tuple[str, ...] = (".yaml", ".yml")

    def write(self, workflow: AnnotatedWorkflow) -> bytes:
        return as_yaml(workflow.file).encode()


def _misfit(name: str, added: Any) -> str:
    return lacks(added, "suffixes", "write") or takes(added.write, "workflow")


BUILT_IN: dict[str, ExportFormat] = {"bpmn": _Bpmn(), "mermaid": _Mermaid(), "json": _Json(), "yaml": _Yaml()}
EXPORT_FORMATS: Registry[ExportFormat] = Registry("export_formats", BUILT_IN, _misfit)


def format_of_suffix(suffix: str) -> str | None:
    """Returns the name of the format whose files have this ending, in any case; None where no format has it."""
    return next((name for name, f in EXPORT_FORMATS.entries().items() if suffix.casefold() in f.suffixes), None)


def exported(workflow: AnnotatedWorkflow, name: str) -> bytes:
    """Returns the workflow in the format of this name.

    Raises InputError for an unknown name, and PluginError where an added format does not give bytes.
    """
    if name not in EXPORT_FORMATS.names():
        raise InputError(f"{name!r} is no export format; known are {', '.join(EXPORT_FORMATS.names())}")
    content = EXPORT_FORMATS.get(name).write(workflow)
    if not isinstance(content, bytes):
        origin = EXPORT_FORMATS.origin(name)
        raise PluginError(f"the export format {name!r} of {origin} gives a {type(content).__name__} instead of bytes")
    return content
