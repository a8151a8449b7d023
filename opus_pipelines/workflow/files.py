"""A workflow as a YAML or JSON file: what `opus score` reads. The typed models below are the schema that it documents.

A file is untrusted: its size is bounded, YAML aliases (with which a small file unfolds into a huge one) are refused.

Figures of a workflow file in another unit than the schema's: each is named with its unit, its field and the unit that
is read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from opus_pipelines.core.errors import InputError, SettingsError
from opus_pipelines.core.settings import Cost, Reward, Section, parse
from opus_pipelines.workflow.model import UNKNOWN, InputNode, OutputNode, TaskNode, Workflow

READ = {
    "duration": ("ms", "milliseconds"),
    "cost": ("usd", "US dollars"),
    "cost_compute": ("usd", "US dollars"),
    "gain": ("usd", "US dollars"),
    "cost_model": ("usd", "US dollars"),
    "cost_human": ("usd", "US dollars"),
    "memory": ("gb", "gigabytes"),
}
_UNITS = {
    "duration": "ns us s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days w week weeks",
    "memory": "b kb mb tb kib mib gib tib bytes",
}
_AMOUNT = re.compile(r"\s*([$€£¥])?\s*[-+]?\d[\d.,_]*(?:e[-+]?\d+)?\s*([^\W\d_]+|[$€£¥%])?\s*", re.IGNORECASE)


def foreign_units(data: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each figure of the file's nodes whose key or value names a unit that is not read."""
    lines: list[str] = []
    for kind in ("inputs", "tasks", "outputs"):
        nodes = data.get(kind)
        for place, node in enumerate(nodes if isinstance(nodes, list) else ()):
            if isinstance(node, dict):
                lines += [f"{kind}.{place}.{complaint}" for complaint in _complaints(node)]
    return lines


def _complaints(node: Mapping[str, Any]) -> Iterator[str]:
    for key, value in node.items():
        if not isinstance(key, str):
            continue
        base, _, unit = key.lower().rpartition("_")
        if key.lower() in READ:
            read, words = READ[key.lower()]
            yield f"{key}: it does not say its unit; write {key.lower()}_{read}, a number of {words}"
        elif base in READ and unit != READ[base][0] and _is_unit(base, unit):
            read, words = READ[base]
            yield f"{key}: its unit is {unit!r}, {words} are read; convert it and write {base}_{read}"
        elif (
            base in READ
            and isinstance(value, str)
            and (match := _AMOUNT.fullmatch(value))
            and (unit := match[1] or match[2])
        ):
            yield f"{key}: {value!r} comes with the unit {unit!r}; write a plain number of {READ[base][1]}"


def _is_unit(base: str, unit: str) -> bool:
    """Returns whether a text names a unit of this kind of figure; currencies go by their three letters."""
    if base in _UNITS:
        return unit in _UNITS[base].split()
    return re.fullmatch("[a-z]{3}|cents?|euros?|dollars?", unit) is not None


LARGEST_BYTES = 1 << 28
LONGEST_YAML = 1 << 25
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Basis = Literal["observed", "rate", "estimated", "prior"]
_Known = Literal["observed", "rate", "estimated", "prior", "unknown"]
_Priced = Literal[_Known, "declared"]
_COST = ("usd_per_hour_of_duration", "usd_per_gb_held", "usd_per_thread_held", "usd_per_unit", "usd_per_held")
_REWARD = ("inference", "alpha", "beta", "lambda_")


class InputEntry(Section):
    """What the client gives."""

    id: str = Field(description="unique in the file")
    title: str | None = Field(None, description="default: the id")
    prior: _Share = Field(1.0, description="π, the probability that it is right")
    data_type: str | None = Field(None, description="its type; composition and comparison need equal ones")


class Penalties(Section):
    """The four scores of EVAL (8), (9); 0 is best. Of a pair, an absent one is the other's complement."""

    cohesion: _Share | None = None
    coupling: _Share | None = None
    observability: _Share | None = None
    hygiene: _Share | None = None


class TaskEntry(Section):
    """One task, done in one way."""

    id: str = Field(description="unique in the file")
    kind: Literal["task", "review"] = Field("task", description="a review looks at what the steps before it left")
    task_id: str | None = Field(None, description="which task it is: equal ones are the same task; default: the title")
    title: str | None = Field(None, description="default: the id")
    description: str | None = Field(None, description="what it does, for people")
    objective: str | None = Field(None, description="what it is for")
    success_criterion: str | None = Field(None, description="when it has succeeded")
    instructions: tuple[str, ...] = Field((), description="how it is done, step by step")
    inputs: tuple[str, ...] = Field((), description="types of data it takes")
    outputs: tuple[str, ...] = Field((), description="types of data it leaves")
    actor_kind: str | None = Field(None, description="human, model or code")
    model: str | None = Field(None, description="name of the AI model")
    actor_group: str | None = Field(None, description="group or role of the people")
    p: _Share = Field(1.0, description="P(it succeeds | all its parents did)")
    p_basis: _Basis = Field("prior", description="what p rests on")
    q: _Share = Field(0.0, description="P(it succeeds | at least one parent did not)")
    q_basis: _Basis = Field("prior", description="what q rests on")
    cost_usd: _Amount | None = Field(None, description="dollars used up; default: the sum of the three parts")
    cost_compute_usd: _Amount | None = Field(None, description="of them for computing")
    cost_model_usd: _Amount | None = Field(None, description="of them for model calls")
    cost_human_usd: _Amount | None = Field(None, description="of them for people's time")
    cost_basis: _Priced = Field(
        "prior",
        description="what the cost rests on; unknown: nobody knows it, and it is in no total; declared: a price of the "
        "contract's catalogue",
    )
    duration_ms: _Amount = Field(0.0, description="d, working time in milliseconds")
    duration_basis: _Known = Field("prior", description="what the duration rests on, likewise")
    memory_gb: _Amount = Field(0.0, description="gigabytes held while it runs")
    threads: _Amount = Field(0.0, description="threads held while it runs")
    consumes: dict[str, _Amount] = Field(
        {}, description="further resources used up, by name; priced by cost.usd_per_unit"
    )
    holds: dict[str, _Amount] = Field(
        {}, description="further resources held while it runs, by name; weighed by cost.usd_per_held"
    )
    scores: Penalties | None = Field(None, description="what the Penalty is made of; without them it has none")


class OutputEntry(Section):
    """What the client receives."""

    id: str = Field(description="unique in the file")
    title: str | None = Field(None, description="default: the id")
    gain_usd: float | None = Field(
        None, allow_inf_nan=False, description="g, earned if it is right; without it there is no Reward"
    )
    data_type: str | None = Field(None, description="its type")


class Weights(Section):
    """What EVAL (5)-(10) weighs with; what stands here wins over opus.toml."""

    usd_per_hour_of_duration: _Amount | None = Field(None, description="w_d of (5)")
    usd_per_gb_held: _Amount | None = Field(None, description="w_r of (5), memory")
    usd_per_thread_held: _Amount | None = Field(None, description="w_r of (5), threads")
    usd_per_unit: dict[str, _Amount] | None = Field(
        None, description="price of a unit of any further resource that is used up"
    )
    usd_per_held: dict[str, _Amount] | None = Field(None, description="w_r of any further resource that is held")
    inference: Literal["product", "exact"] | None = Field(None, description="how success is inferred")
    alpha: _Share | None = Field(None, description="of (8)")
    beta: _Share | None = Field(None, description="of (9)")
    lambda_: _Share | None = Field(None, alias="lambda", description="of (10)")

    @classmethod
    def of(cls, cost: Cost, reward: Reward) -> "Weights":
        """Returns the weights of the settings in force; tables without an entry are left out."""
        weights = cost.model_dump(include=set(_COST)) | reward.model_dump(include=set(_REWARD))
        return cls(**{name: value for name, value in weights.items() if value != {}})

    def over(self, cost: Cost, reward: Reward) -> tuple[Cost, Reward]:
        """Returns the settings, with the weights that are stated here in place of theirs."""
        stated = self.model_dump(exclude_none=True)
        own = {name: stated[name] for name in _COST if name in stated}
        return cost.model_copy(update=own), reward.model_copy(
            update={name: stated[name] for name in _REWARD if name in stated}
        )


class WorkflowFile(Section):
    """One workflow: nodes and the edges between them."""

    title: str | None = Field(None, description="default: the file's name")
    weights: Weights | None = Field(None, description="what its cost and Penalty are weighed with; default: opus.toml")
    inputs: tuple[InputEntry, ...] = ()
    tasks: tuple[TaskEntry, ...] = ()
    outputs: tuple[OutputEntry, ...] = ()
    edges: tuple[tuple[str, str], ...] = Field((), description="pairs of node ids, the first before the second")

    def workflow(self) -> Workflow:
        """Returns the nodes and edges as a checked Workflow; raises WorkflowError with every defect."""
        inputs = [InputNode(n.id, n.title or n.id, n.prior, n.data_type) for n in self.inputs]
        outputs = [OutputNode(n.id, n.title or n.id, n.gain_usd, n.data_type) for n in self.outputs]
        return Workflow.of([*inputs, *map(_task, self.tasks), *outputs], self.edges)


def read_file(path: Path) -> WorkflowFile:
    """Reads a workflow file by the ending of its name: .yaml, .yml, .json, or .bpmn as `opus export` writes it.

    Raises InputError or SettingsError naming file and place.
    """
    if path.suffix.lower() not in (".yaml", ".yml", ".json", ".bpmn"):
        raise InputError(f"{path}: a workflow is read from .yaml, .yml, .json or .bpmn")
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise InputError(f"{path}: it has {size >> 20} MiB, more than a workflow may ({LARGEST_BYTES >> 20})")
        if path.suffix.lower() == ".bpmn":
            from opus_pipelines.workflow.formats.bpmn_reader import read_bpmn

            return read_bpmn(path.read_bytes(), str(path))
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


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of a workflow file."""
    return WorkflowFile.model_json_schema()


_FIGURES = tuple(
    n for n in TaskEntry.model_fields if n not in ("id", "task_id", "title", "description", "scores", "cost_usd")
)


def _task(entry: TaskEntry) -> TaskNode:
    figures = {name: getattr(entry, name) for name in _FIGURES}
    parts = (entry.cost_compute_usd, entry.cost_model_usd, entry.cost_human_usd)
    cost = sum(part or 0.0 for part in parts) if entry.cost_usd is None else entry.cost_usd
    for name, value, basis in (("cost", cost, entry.cost_basis), ("duration", entry.duration_ms, entry.duration_basis)):
        if value and basis == UNKNOWN:
            raise SettingsError(
                f"task {entry.id!r}: its {name} is {value:g} and its {name}_basis is unknown: leave one of them out"
            )
    return TaskNode(
        entry.id, entry.task_id or entry.title or entry.id, entry.title or entry.id, cost_usd=cost, **figures
    )


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: it is not JSON: {error}") from None


def _yaml(text: str, path: Path) -> Any:
    if len(text) > LONGEST_YAML:
        raise InputError(f"{path}: YAML of {len(text) >> 20} MiB takes too long to read; write it as JSON")
    try:
        for event in yaml.parse(text, yaml.CSafeLoader) if "&" in text else ():  # without anchors there are no aliases
            if isinstance(event, yaml.AliasEvent):
                place = event.start_mark.line + 1
                raise InputError(f"{path}: line {place}: aliases (*{event.anchor}) are not read; write the value out")
        return yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split()) or 'it is nested too deeply'}") from None
