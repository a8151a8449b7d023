"""The formats that `opus export` writes, by name: the built-in ones, and those that installed distributions add."""

from typing import Any, Protocol

from opus_pipelines.core.errors import InputError, PluginError
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.workflow.formats.annotated import AnnotatedWorkflow
from opus_pipelines.workflow.formats.bpmn import as_bpmn
from opus_pipelines.workflow.formats.json_yaml import as_json, as_yaml
from opus_pipelines.workflow.formats.mermaid import as_mermaid


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
