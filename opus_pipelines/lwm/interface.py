"""The interface of the Large Work Model: from an Intention, its subgraphs and similar cases to task sequences.

Every backend takes and returns the records of this module.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from opus_pipelines.core.errors import PluginError
from opus_pipelines.core.registry import Registry, lacks, takes
from opus_pipelines.core.settings import Settings
from opus_pipelines.core.versions import history_backend_version
from opus_pipelines.lake.layout import Lake
from opus_pipelines.lake.models import INTENTION, POINTER, STEP_WRITER, ModelStore

if TYPE_CHECKING:  # the id of a result needs this module, and a command that only reads loads no model
    import numpy as np

    from opus_pipelines.intakes.procedures.reading import ParsedProcedure
    from opus_pipelines.intakes.requirements.intention import Decoded
    from opus_pipelines.lwm.pointer.candidates import EncodedRequest
    from opus_pipelines.lwm.pointer.memory import CaseMemory
    from opus_pipelines.lwm.step_writing.memory import Encode, TextMemory
    from opus_pipelines.lwm.step_writing.model import WrittenSteps
    from opus_pipelines.wkg.graph import WorkGraph
    from opus_pipelines.wkg.subgraphs import SubWKG


@dataclass(frozen=True)
class SimilarCase:
    """A case of history that is similar to the Intention.

    `similarity` is a cosine; `weight` in ]0, 1] falls with the distance; `success` is None where it is unknown.
    `tasks`, `task_keys` and the other tuples have one entry for each work step, in the order of execution,
    repetitions included; `activities` also has events and outcomes. Costs are in dollars, times in milliseconds.
    `outcome_by_activities`: the rule [success] of the source decides the outcome by the activities of the case, so that
    it tells which cases to follow and not what a step is worth. `is_decision`: nobody executed the case; it is a
    workflow that a person accepted or wrote for a similar intake. `attributes` are those of the case at the start.
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
    outcome_by_activities: bool = False
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def is_informative(self) -> bool:
        """Return whether the outcome is known, success was the right one, and it tells more than the activities do."""
        return self.success is not None and self.expected_outcome is not False and not self.outcome_by_activities

    def weighed(self, similarity: float, weight: float) -> "SimilarCase":
        """Returns the same case with another similarity and weight.

        It is what `dataclasses.replace` returns, in a sixth of its time: each intake has some hundred similar cases.
        """
        other = object.__new__(SimilarCase)
        other.__dict__.update(self.__dict__, similarity=similarity, weight=weight)
        return other


@dataclass(frozen=True)
class ProcessDemand:
    """A process that an Intention demands: its similar cases, and its groups of critical tasks.

    A workflow must do at least one task of each group in `critical`. `goals` are the demanded tasks that the process
    brings; none where nothing but the similar cases stands for it.
    """

    cases: Sequence[SimilarCase]
    critical: Sequence[frozenset[str]]
    goals: frozenset[str] = frozenset()

    def supports(self, task: str) -> bool:
        """Return whether some case that did not fail did the task and one task of every critical group."""
        groups = [*self.critical, {task}]
        return any(c.success is not False and all(g & set(c.tasks) for g in groups) for c in self.cases)


@dataclass(frozen=True)
class LwmRequest:
    """What a backend may use: Γ [d], the WKG, one SWKG for each neighbourhood, and similar cases.

    `procedure`: the intake's own procedure as it was read. `stitched`: the plan that joins several
    processes, where the intake demands more than the most similar cases did. `consensus`: the steps that similar
    cases agree on, in order, where history has no outcomes.
    """

    vector: "np.ndarray"
    graph: "WorkGraph"
    subgraphs: "Sequence[SubWKG]"
    cases: Sequence[SimilarCase]
    seed: int = 0
    procedure: "ParsedProcedure | None" = None
    stitched: tuple[str, ...] = ()
    consensus: tuple[str, ...] = ()
    decoded: "Decoded | None" = None
    client: str | None = None


@dataclass(frozen=True)
class Usage:
    """What an answer of a language model took: tokens read and written, and dollars; None where that is unknown."""

    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None

    @staticmethod
    def total(parts: "Iterable[Usage]") -> "Usage | None":
        """Return the sum, None where there are no parts; a figure that one part lacks is unknown."""
        each = list(parts)
        if not each:
            return None
        costs, tokens = [one.cost_usd for one in each], [(one.tokens_in, one.tokens_out) for one in each]
        known = [cost for cost in costs if cost is not None]
        read, written = ([n for n in column if n is not None] for column in zip(*tokens, strict=True))
        return Usage(
            sum(read) if len(read) == len(each) else None,
            sum(written) if len(written) == len(each) else None,
            sum(known) if len(known) == len(each) else None,
        )


@dataclass(frozen=True)
class TaskSequence:
    """One sequence for one subgraph (its index); `score` orders the sequences of a backend, the best is highest.

    `source`: history (of a similar case), lwm (several cases combined), procedure (read from the
    intake's own) or decision (a person accepted or wrote it).
    """

    subgraph: int
    tasks: tuple[str, ...]
    score: float
    source: str


@dataclass(frozen=True)
class ExpectedSequence:
    """A sequence of tasks, by their ids, that a trained model expects of a request, and its probability."""

    tasks: tuple[str, ...]
    probability: float


class TrainedIntention(Protocol):
    """Tells which tasks an Intention leads to, without a look at cases."""

    def composed(self, parts: "Mapping[str, np.ndarray]") -> "np.ndarray":
        """Return the unit vector [d] of the parts of an Intention, each unit vectors [n, d]."""
        ...

    def probabilities(self, intentions: "np.ndarray", tasks: "np.ndarray", rates: "np.ndarray") -> "np.ndarray":
        """Return P(the work has the task) [n, tasks] for composed Intentions [n, d].

        `tasks` are the unit vectors of the tasks' texts [tasks, d], `rates` the shares of cases that did each.
        """
        ...


class StepWriting(Protocol):
    """Writes the steps of a request as texts, where an industry has no fixed catalogue of tasks."""

    @property
    def rates(self) -> "Mapping[str, Sequence[float]]":
        """Return the rates of the industry's cases, see `lwm.step_writing.memory.TextMemory`."""
        ...

    def written(self, request: str, context: str, memory: "TextMemory", encode: "Encode") -> "WrittenSteps":
        """Return the steps; `context` is listed beside the request, `encode` returns the unit vectors of texts."""
        ...


class LargeWorkModel:
    """A backend of the LWM: all that generation asks of one. Its name and version are in every row that depends on it.

    A backend must have `name`, `version` and `generate`. The other methods are for one with settings, with trained
    weights in the lake, or with a price; what a backend leaves out does as it does here, whether it inherits from this
    class or not.
    """

    name: str

    @property
    def version(self) -> str:
        """Return the version of the backend; it changes when the sequences of a request change."""
        raise NotImplementedError

    def generate(self, request: LwmRequest) -> list[TaskSequence]:
        """Return sequences for every subgraph, best first.

        The tasks are of the catalogue of the graph, except for the new steps of the intake's procedure.
        """
        raise NotImplementedError

    def configure(self, settings: Settings) -> None:
        """Take the settings, before `open`. Raises SettingsError where they do not do."""

    def open(self, lake: Lake) -> None:
        """Load the weights that serve in this lake, if there are any."""

    def usage(self, request: LwmRequest) -> Usage | None:
        """Return what the answer to a request took when it was made, None where it cost nothing."""
        return None

    def serves(self, industry: str) -> bool:
        """Return whether a trained model says what requests of an industry lead to, in place of similar cases."""
        return False

    def load(self) -> None:
        """Load now what that model needs, before a process is forked that shares it."""

    def expected(self, request: "EncodedRequest", memory: "CaseMemory") -> list[ExpectedSequence]:
        """Return the likeliest sequences for a request of an industry that it serves, best first; they sum to 1."""
        return []

    def intention_encoder(self, industry: str) -> TrainedIntention | None:
        """Return what tells which tasks an Intention of an industry leads to; None where nothing trained does."""
        return None

    def step_writer(self, industry: str) -> StepWriting | None:
        """Return what writes the steps of an industry as texts; None where nothing trained does."""
        return None


# Every method that an added backend may leave out, with what it is called with
_OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "configure": ("settings",),
    "open": ("lake",),
    "usage": ("request",),
    "serves": ("industry",),
    "load": (),
    "expected": ("request", "memory"),
    "intention_encoder": ("industry",),
    "step_writer": ("industry",),
}


class _Added(LargeWorkModel):
    """An added backend that does not inherit from `LargeWorkModel`, with the defaults for what it leaves out."""

    def __init__(self, backend: object) -> None:
        self._backend = backend

    def __getattribute__(self, name: str) -> Any:
        """Return what the backend has under a name, else the default."""
        backend = object.__getattribute__(self, "_backend")
        return getattr(backend, name) if hasattr(backend, name) else object.__getattribute__(self, name)


class BackendFactory(Protocol):
    """Makes a backend, which loads what it needs with its first request."""

    def __call__(self) -> LargeWorkModel:
        """Return a new backend."""
        ...


LWM_BACKENDS: Registry[BackendFactory] = Registry(  # by the name that `generation.lwm_backend` states
    "lwm_backends",
    {
        "history": "opus_pipelines.lwm.history_backend:HistoryBackend",
        "pointer": "opus_pipelines.lwm.pointer_backend:PointerBackend",
        "causal_lm": "opus_pipelines.lwm.language_models.backends:CausalLmBackend",
        "openai_compatible": "opus_pipelines.lwm.language_models.backends:OpenaiCompatibleBackend",
    },
    lambda name, value: takes(value),
)


def backend_of(settings: Settings) -> LargeWorkModel:
    """Returns the backend that the settings choose, which has loaded what serves in their lake.

    Raises PluginError where an added one does not fit.
    """
    name = settings.generation.lwm_backend
    backend, origin = LWM_BACKENDS.get(name)(), LWM_BACKENDS.origin(name)
    reason = _misfit(backend)
    if not reason:
        backend = backend if isinstance(backend, LargeWorkModel) else _Added(backend)
        backend.configure(settings)
        backend.open(Lake(settings.paths.lake))
        if origin and not backend.version.startswith(f"{name}-"):
            reason = f"its version {backend.version!r} must begin with {name + '-'!r}"
    if reason:
        raise PluginError(f"the LWM backend {name!r} of {origin} does not fit: {reason}")
    return backend


def _misfit(backend: object) -> str:
    """Returns why an object is no backend, or an empty text."""
    if reason := lacks(backend, "name", "version", "generate") or takes(getattr(backend, "generate", None), "request"):
        return reason
    misfits = (
        (name, takes(getattr(backend, name), *arguments))
        for name, arguments in _OPTIONAL.items()
        if hasattr(backend, name)
    )
    return next((f"{name}: {why}" for name, why in misfits if why), "")


def version_of(settings: Settings) -> str:
    """Returns the version of the backend that the settings choose.

    The pointer backend is the history backend where the lake has no model of it. This is found out without the import
    of NumPy and of the models' code, which would be a quarter of the time of a command that compares versions.
    """
    lake = Lake(settings.paths.lake)
    kinds = (POINTER, STEP_WRITER, INTENTION)
    if settings.generation.lwm_backend == "pointer" and not any(ModelStore(lake, kind).names() for kind in kinds):
        return history_backend_version()
    return backend_of(settings).version
