"""The Large Work Model's interface: (Intention, subgraphs, near cases) to task sequences. Every backend takes and
gives these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from opus_pipelines.core.errors import PluginError
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.core.settings import Generation
from opus_pipelines.lwm.procedure_reading import ParsedProcedure
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.steiner_tree import SubWKG


@dataclass(frozen=True)
class SimilarCase:
    """A case of history near the Intention. `weight` falls with distance; `success` None where unknown.

    `tasks` and `task_keys` run in step, in order of carrying out, repetitions included. `is_decision`: nobody carried
    it out; it is a workflow that a person accepted or wrote for a similar intake.
    """

    implementation_id: str
    similarity: float
    weight: float
    success: bool | None
    expected_outcome: bool | None
    client: str | None
    kind_of_case: str | None
    tasks: tuple[str, ...]
    task_keys: tuple[str, ...]
    task_cost_usd: tuple[float | None, ...]
    task_duration_ms: tuple[float | None, ...]
    actor_kinds: tuple[str | None, ...]
    is_decision: bool = False
    models: tuple[str | None, ...] = ()
    actor_groups: tuple[str | None, ...] = ()
    activities: tuple[str, ...] = ()
    lead_time_ms: float | None = None

    @property
    def is_informative(self) -> bool:
        """Its outcome teaches: known, and success was the right outcome."""
        return self.success is not None and self.expected_outcome is not False


@dataclass(frozen=True)
class ProcessDemand:
    """A kind of work that an Intention asks for: the cases of history near it, and groups of tasks of each of which
    they needed one.
    """

    cases: Sequence[SimilarCase]
    critical: Sequence[frozenset[str]]

    def supports(self, task: str) -> bool:
        """Some case that did not fail did the task and all that is needed."""
        groups = [*self.critical, {task}]
        return any(c.success is not False and all(g & set(c.tasks) for g in groups) for c in self.cases)


@dataclass(frozen=True)
class LwmRequest:
    """What a backend may look at: Γ, the graph, one SWKG a neighbourhood, the nearest cases, and the intake's
    procedure as it was read.

    `works`: the kinds of work to be done in one workflow, where the intake asks for more than the nearest cases did.
    `agreed`: the steps that similar cases agree on, in order, where history tells no outcomes.
    """

    vector: np.ndarray
    graph: WorkGraph
    subgraphs: Sequence[SubWKG]
    cases: Sequence[SimilarCase]
    seed: int = 0
    procedure: ParsedProcedure | None = None
    demands: Sequence[ProcessDemand] = ()
    consensus: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskSequence:
    """One sequence written for one subgraph (its index); `score` orders a backend's sequences, best highest.

    `source`: history (a near case's), lwm (a walk, or several cases' made one), procedure (read from the intake's own)
    or decision (a person accepted or wrote it).
    """

    subgraph: int
    tasks: tuple[str, ...]
    score: float
    source: str


class LargeWorkModel(Protocol):
    """A backend. `name` and `version` stand in every row it causes."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """Sequences for every subgraph, best first; tasks are of the graph's catalogue, but for the reading's new
        steps.
        """
        ...


class BackendFactory(Protocol):
    """Makes a backend, which loads what it needs with its first request."""

    def __call__(self) -> LargeWorkModel: ...


LWM_BACKENDS: Registry[BackendFactory] = Registry(  # by the name that `generation.lwm_backend` states
    "lwm_backends", {"history": "opus_pipelines.lwm.history_backend:HistoryBackend"}, lambda name, value: takes(value)
)


def backend_of(settings: Generation) -> LargeWorkModel:
    """Returns the backend that the settings choose; raises PluginError where an added one does not fit."""
    backend, origin = LWM_BACKENDS.get(settings.lwm_backend)(), LWM_BACKENDS.origin(settings.lwm_backend)
    reason = lacks(backend, "name", "version", "generate") or takes(backend.generate, "request")
    if reason or (origin and not backend.version.startswith(f"{settings.lwm_backend}-")):
        reason = reason or f"its version {backend.version!r} must begin with {settings.lwm_backend + '-'!r}"
        raise PluginError(f"the LWM backend {settings.lwm_backend!r} of {origin} does not fit: {reason}")
    return backend
