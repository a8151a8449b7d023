"""The files of workflows: written by `opus export` in a format by name, and read by the ending of their name.

Formats are the built-in ones, and those that installed distributions add.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from opus_pipelines.core.errors import InputError, PluginError, SettingsError
from opus_pipelines.core.formatting import mermaid_comment, mermaid_text
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.core.settings import parse
from opus_pipelines.workflow.files import (
    AnnotatedWorkflow,
    TaskEntry,
    WorkflowFile,
    as_json,
    as_yaml,
    foreign_units,
)
from opus_pipelines.workflow.formats.bpmn import as_bpmn, from_bpmn

_LARGEST_BYTES = 1 << 28
_LONGEST_YAML = 1 << 25


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


@dataclass(frozen=True)
class BuiltInExport:
    """An export format made of a function."""

    suffixes: tuple[str, ...]
    write: Callable[[AnnotatedWorkflow], bytes]


def _misfit(name: str, added: Any) -> str:
    return lacks(added, "suffixes", "write") or takes(added.write, "workflow")


BUILT_IN: dict[str, ExportFormat] = {
    "bpmn": BuiltInExport((".bpmn",), as_bpmn),
    "mermaid": BuiltInExport((".mmd", ".mermaid"), lambda workflow: as_mermaid(workflow).encode()),
    "json": BuiltInExport((".json",), lambda workflow: as_json(workflow.file).encode()),
    "yaml": BuiltInExport((".yaml", ".yml"), lambda workflow: as_yaml(workflow.file).encode()),
}
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


def read_file(path: Path) -> WorkflowFile:
    """Reads a workflow file by the ending of its name: .yaml, .yml, .json, or .bpmn as `opus export` writes it.

    Raises InputError or SettingsError naming file and place.
    """
    if path.suffix.lower() not in (".yaml", ".yml", ".json", ".bpmn"):
        raise InputError(f"{path}: a workflow is read from .yaml, .yml, .json or .bpmn")
    try:
        size = path.stat().st_size
        if size > _LARGEST_BYTES:
            raise InputError(f"{path}: it has {size >> 20} MiB, more than a workflow may ({_LARGEST_BYTES >> 20})")
        if path.suffix.lower() == ".bpmn":
            return from_bpmn(path.read_bytes(), str(path))
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: it is not UTF-8 (byte {error.start})") from None
    data = _json(text, path) if path.suffix.lower() == ".json" else _yaml(text, path)
    if not isinstance(data, dict):
        raise InputError(
            f"{path}: a workflow is a table with inputs, tasks, outputs and edges; `opus score --schema` shows it"
        )
    if mixed := foreign_units(data):
        raise SettingsError(f"{path}: " + "; ".join(mixed))
    return parse(WorkflowFile, data, str(path))


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: it is not JSON: {error}") from None


def _yaml(text: str, path: Path) -> Any:
    if len(text) > _LONGEST_YAML:
        raise InputError(f"{path}: YAML of {len(text) >> 20} MiB takes too long to read; write it as JSON")
    try:
        for event in yaml.parse(text, yaml.CSafeLoader) if "&" in text else ():  # without anchors there are no aliases
            if isinstance(event, yaml.AliasEvent):
                place = event.start_mark.line + 1
                raise InputError(f"{path}: line {place}: aliases (*{event.anchor}) are not read; write the value out")
        return yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split()) or 'it is nested too deeply'}") from None
