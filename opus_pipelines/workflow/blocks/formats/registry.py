"""The formats of flows by name: the built-in ones and those of installed distributions, and what each cannot express.

A format declares its features. `reduced` turns a flow into one that has no others and lists each loss; for such a flow
`parse(write(flow)) == flow` holds in every format.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from opus_pipelines.core.errors import InputError, PluginError
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.workflow.blocks.expressions import FlowError, is_name
from opus_pipelines.workflow.blocks.formats.bpmn_reader import read_bpmn
from opus_pipelines.workflow.blocks.formats.bpmn_writer import write_bpmn
from opus_pipelines.workflow.blocks.formats.core_flow import flow_program, program_flow
from opus_pipelines.workflow.blocks.formats.core_program import LARGEST_CORE_BYTES, parse_core, write_core
from opus_pipelines.workflow.blocks.formats.python_ir import parse_ir, write_ir
from opus_pipelines.workflow.blocks.formats.tree_files import decoded, read_json, read_yaml, write_json, write_yaml
from opus_pipelines.workflow.blocks.model import (
    MAX_DEPTH,
    Block,
    Call,
    Flow,
    Parallel,
    Statement,
    depth,
    identified,
    map_blocks,
    walk,
)


class Feature(StrEnum):
    """What a format may be able to express beyond calls, user tasks, if, for and while."""

    PARALLEL = "parallel"
    ARGUMENTS = "arguments of calls"
    FREE_NAMES = "activities whose name is no Python name"
    TITLE = "the name of the flow"


ALL = frozenset(Feature)


class Loss(NamedTuple):
    """What a format does not keep of a flow: the step, the feature, and what was done instead."""

    id: str
    feature: Feature
    what: str


class FlowFormat(Protocol):
    """Reads and writes flows. `suffixes`: the endings of its files, each with its dot, in lower case."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The endings of its files, each with its dot, in lower case."""
        ...

    @property
    def features(self) -> frozenset[str]:
        """Which of `Feature` it keeps."""
        ...

    def parse(self, content: bytes, name: str) -> Flow:
        """Returns the flow of a file, every statement with an id; raises FlowError with line and column or element."""
        ...

    def write(self, flow: Flow) -> bytes:
        """Returns the content of the file; raises FlowError where the flow cannot be expressed."""
        ...


@dataclass(frozen=True)
class BuiltIn:
    """A format made of two functions."""

    suffixes: tuple[str, ...]
    features: frozenset[str]
    parse: Callable[[bytes, str], Flow]
    write: Callable[[Flow], bytes]


def _read_ir(content: bytes, name: str) -> Flow:
    return parse_ir(decoded(content, 1 << 17))


def _read_bpmn(content: bytes, name: str) -> Flow:
    return read_bpmn(content, name).flow


def _read_core(content: bytes, name: str) -> Flow:
    return program_flow(parse_core(decoded(content, LARGEST_CORE_BYTES)))


_BUILT_IN: dict[str, FlowFormat | str] = {
    "python": BuiltIn((".py",), frozenset(), _read_ir, lambda flow: (write_ir(flow) + "\n").encode()),
    "core": BuiltIn(
        (".core",),
        frozenset({Feature.ARGUMENTS}),
        _read_core,
        lambda flow: write_core(flow_program(flow)).encode(),
    ),
    "bpmn": BuiltIn((".bpmn",), ALL, _read_bpmn, write_bpmn),
    "camunda": BuiltIn((), ALL, _read_bpmn, lambda flow: write_bpmn(flow, camunda=True)),
    "json": BuiltIn((".json",), ALL, read_json, write_json),
    "yaml": BuiltIn((".yaml", ".yml"), ALL, read_yaml, write_yaml),
    "servicenow": "opus_pipelines.flows.enterprise.block_flows:SERVICENOW",
    "mermaid": "opus_pipelines.workflow.blocks.formats.mermaid:MERMAID",
    "n8n": "opus_pipelines.workflow.blocks.formats.n8n:N8N",
    "dmn": "opus_pipelines.workflow.blocks.formats.dmn:DMN",
}


def _misfit(name: str, added: Any) -> str:
    missing = lacks(added, "suffixes", "features", "parse", "write")
    return missing or takes(added.parse, "content", "name") or takes(added.write, "flow")


FLOW_FORMATS: Registry[FlowFormat] = Registry("flow_formats", _BUILT_IN, _misfit)


def flow_format(name: str) -> FlowFormat:
    """Returns the format of this name; raises InputError for an unknown one."""
    if name not in FLOW_FORMATS.names():
        raise InputError(f"{name!r} is no format of flows; known are {', '.join(FLOW_FORMATS.names())}")
    return FLOW_FORMATS.get(name)


def format_of(path: Path) -> str:
    """Returns the name of the format whose files have this ending; raises InputError where there is none."""
    for name, known in FLOW_FORMATS.entries().items():
        if path.suffix.casefold() in known.suffixes:
            return name
    endings = sorted(suffix for known in FLOW_FORMATS.entries().values() for suffix in known.suffixes)
    raise InputError(f"{path}: the ending tells no format of flows; known are {', '.join(endings)}")


def read_flow(path: Path, name: str | None = None, duplicate: bool = False) -> Flow:
    """Returns the flow of a file, by the ending of its name or as format `name`.

    `duplicate`: in BPMN, steps that several ways share are written once for each. Raises InputError that names
    the file, and FlowError with line and column or element.
    """
    name = name or format_of(path)
    form = flow_format(name)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    try:
        if duplicate and name in ("bpmn", "camunda"):
            return read_bpmn(content, path.stem, duplicate=True).flow
        return form.parse(content, path.stem)
    except FlowError as error:
        raise FlowError(f"{path}: {error}") from None


def written(flow: Flow, name: str) -> tuple[bytes, list[Loss]]:
    """Returns the flow in the format of this name, and what the format does not keep.

    Raises InputError for an unknown name, FlowError where the format cannot express the flow, and PluginError where an
    added format does not give bytes.
    """
    form = flow_format(name)
    flow, losses = reduced(identified(flow), form.features)
    content = form.write(flow)
    if not isinstance(content, bytes):
        raise PluginError(f"the format {name!r} of {FLOW_FORMATS.origin(name)} does not give bytes")
    return content, losses


def reduced(flow: Flow, features: Iterable[str]) -> tuple[Flow, list[Loss]]:
    """Returns the flow without what is not in `features`, and each loss; the same flow and no loss where all is.

    Branches of a parallel are put one after another. Raises FlowError where statements stand deeper in one another than
    any format reads, and where two activities would get one name.
    """
    if depth(flow.body) > MAX_DEPTH:
        raise FlowError(f"more than {MAX_DEPTH} statements stand inside one another")
    reducer = _Reducer(frozenset(map(str, features)), flow)
    name = flow.name
    if name and Feature.TITLE not in reducer.features:
        reducer.losses.append(Loss("", Feature.TITLE, f"the name {name!r} is left out"))
        name = ""
    return Flow(reducer.block(flow.body), name), reducer.losses


class _Reducer:
    def __init__(self, features: frozenset[str], flow: Flow) -> None:
        self.features = features
        self.losses: list[Loss] = []
        self._names: dict[str, str] = {
            s.activity: s.activity for s in walk(flow.body) if isinstance(s, Call) and is_name(s.activity)
        }

    def block(self, block: Block) -> Block:
        return tuple(new for statement in block for new in self._statement(statement))

    def _statement(self, statement: Statement) -> Block:
        if isinstance(statement, Parallel) and Feature.PARALLEL not in self.features:
            self.losses.append(Loss(statement.id, Feature.PARALLEL, "its branches stand one after another"))
            return tuple(new for branch in statement.branches for new in self.block(branch))
        if isinstance(statement, Call):
            return (self._call(statement),)
        return (map_blocks(statement, self.block),)

    def _call(self, call: Call) -> Call:
        if call.arguments and Feature.ARGUMENTS not in self.features:
            names = ", ".join(name for name, _ in call.arguments)
            self.losses.append(Loss(call.id, Feature.ARGUMENTS, f"{call.activity} loses {names}"))
            call = replace(call, arguments=())
        if Feature.FREE_NAMES not in self.features and not is_name(call.activity):
            name = re.sub(r"\W+", "_", call.activity).strip("_") or "activity"
            name = name if is_name(name) else f"activity_{name}"
            if self._names.setdefault(name, call.activity) != call.activity or not is_name(name):
                raise FlowError(f"step {call.id}: {call.activity!r} and another activity would both be called {name}")
            self.losses.append(Loss(call.id, Feature.FREE_NAMES, f"{call.activity!r} is called {name}"))
            call = replace(call, activity=name)
        return call
