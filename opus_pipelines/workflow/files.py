"""A workflow as a YAML or JSON file: what `opus score` reads. The typed models below are the schema that it documents.

A file is untrusted: its size is bounded, YAML aliases (with which a small file unfolds into a huge one) are refused. A
figure in another unit than the schema's is named with its unit, its field and the unit that is read. Floats are written
so that they are read back to the last bit. An `AnnotatedWorkflow` adds the facts that exported formats state: times,
evidence, data types and expected waits.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.settings import Cost, Reward, Section
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


Edge = tuple[str, str]
CLIENT, NOBODY = "Client", "No role stated"
_KINDS = {"human": "People", "model": "AI model", "code": "Software"}


@dataclass(frozen=True)
class AnnotatedWorkflow:
    """A workflow file with annotations; `file` holds nodes, edges, scores and weights.

    The maps are by node, or by edge; an unknown value is absent.
    """

    file: WorkflowFile
    id: str | None = None
    start_ms: Mapping[str, float] = field(default_factory=dict)
    finish_ms: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    data_types: Mapping[Edge, str] = field(default_factory=dict)
    expected: Mapping[Edge, Sequence[str]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The title of the workflow, else its id."""
        return self.file.title or self.id or "Workflow"

    @cached_property
    def workflow(self) -> Workflow:
        """W = (G, Φ); raises WorkflowError where the file is not well formed."""
        return self.file.workflow()

    @cached_property
    def tasks(self) -> dict[str, TaskEntry]:
        """The entries of its tasks and reviews, by node."""
        return {entry.id: entry for entry in self.file.tasks}

    def title_of(self, node: str) -> str:
        """Returns the title of a node."""
        return self.workflow.by_id[node].title

    def lane_of(self, node: str) -> str:
        """Returns the lane of a node: its group of people, AI model or software, or the client for inputs and outputs.

        A person without a stated group belongs to the lane of people.
        """
        entry = self.tasks.get(node)
        if entry is None:
            return CLIENT
        if entry.actor_kind == "model" and entry.model:
            return entry.model
        return entry.actor_group or _KINDS.get(entry.actor_kind or "", entry.actor_kind or NOBODY)

    def lanes(self) -> Sequence[str]:
        """Returns every lane, the client's first, then in topological order of their first nodes."""
        lanes_seen = dict.fromkeys(self.lane_of(node) for node in self.workflow.topological())
        return [*([CLIENT] if lanes_seen.pop(CLIENT, "") is None else []), *lanes_seen]


def as_json(file: WorkflowFile) -> str:
    """Returns the JSON text of the file; equal workflows give equal text."""
    return json.dumps(_data(file), indent=2, ensure_ascii=False) + "\n"


def as_yaml(file: WorkflowFile) -> str:
    """Returns the YAML text of the file; it has no aliases, which the reader rejects."""
    return yaml.dump(_data(file), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _data(file: WorkflowFile) -> dict[str, Any]:
    """Returns the values that differ from the defaults, because an absent key means its default."""
    return file.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True)


class _Dumper(yaml.CSafeDumper):  # type: ignore[misc]  # the C half has no types
    """Writes every value out, and a float so that YAML 1.1 readers take it for one."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _float(dumper: yaml.CSafeDumper, value: float) -> yaml.ScalarNode:
    text = repr(value)
    if "." not in text and "e" in text:
        text = text.replace("e", ".0e")
    mantissa, mark, exponent = text.partition("e")
    sign = "" if not mark or exponent.startswith(("+", "-")) else "+"
    return dumper.represent_scalar("tag:yaml.org,2002:float", f"{mantissa}{mark}{sign}{exponent}")


_Dumper.add_representer(float, _float)
