"""The records of generation: what one stage hands to the next, and what stays the same for a whole run.

`Request` → `Retrieved` → `Drafted` → `Planned` → `Ranked`. Each record holds the one before it, so that a later stage
and the rows of a result read every figure from the record that introduced it. All are frozen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from opus_pipelines.core.errors import OpusError
from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.planning.candidates import PlannedCandidates
from opus_pipelines.generation.planning.context import Candidate, Evidence, RankingContext
from opus_pipelines.generation.search.costs import Baseline, TaskBaselines
from opus_pipelines.intakes.contract_settings import Review, prices
from opus_pipelines.intakes.decisions.record import NO_DECISIONS, Decisions
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import ContractFolder, Intake
from opus_pipelines.intakes.requirements.intention import Intention
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import unit
from opus_pipelines.language.reading.second_reader import SecondReader
from opus_pipelines.lwm.interface import LargeWorkModel, ProcessDemand, TaskSequence, Usage
from opus_pipelines.lwm.retrieval.case_memory import ContractCatalogue, IndustryMemory, memory_of
from opus_pipelines.lwm.retrieval.named_rules import NamedRule
from opus_pipelines.lwm.retrieval.requested_steps import History, required_groups
from opus_pipelines.lwm.retrieval.routing import Routed
from opus_pipelines.lwm.retrieval.similar_cases import StartOutcomes
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.retrieval.unknown_steps import UnknownStep
from opus_pipelines.lwm.stitching import Stitched, critical_groups
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.wkg.subgraphs import SubWKG
from opus_pipelines.workflow.evaluation.calendar_settings import CalendarSettings
from opus_pipelines.workflow.files import Weights


class Refused(OpusError):
    """Nothing can be generated for an intake. The message is the reason, for the person who sent the intake."""


@dataclass(frozen=True)
class ContractTerms:
    """What a contract states for all of its intakes, apart from their constraints.

    Attributes:
        cost: prices in USD, and the weights of time and resources.
        review: who reviews, and how well; nothing stated means that no review is placed.
        decisions: what people accepted, edited and rejected before.
        calendar: when the contract's people work; None means around the clock.
    """

    cost: Cost
    review: Review = field(default_factory=Review)
    decisions: Decisions = NO_DECISIONS
    calendar: CalendarSettings | None = None

    @classmethod
    def of(cls, contract: ContractFolder, settings: Settings) -> "ContractTerms":
        """Returns the terms of a contract. Raises SettingsError where its prices are not allowed."""
        stated = contract.settings
        cost = prices(settings, stated, contract.folder)
        return cls(cost, stated.review, contract.decisions, stated.calendar)


class Part(StrEnum):
    """A part of generation that an evaluation may leave out, to measure what it is worth (benchmarks/ablations.py)."""

    SIMILAR_CASES = "similar cases"
    PROCEDURE = "procedure"
    ROUTING = "routing"
    CRITICAL_TASKS = "critical tasks"
    COMPOSITION = "composition"
    UNKNOWN_STEPS = "steps that history lacks"
    SUBGRAPHS = "SWKG"
    ALGORITHM_1 = "Algorithm 1"


@dataclass(frozen=True)
class GenerationContext:
    """What stays the same for all intakes of a run of one contract.

    Attributes:
        index: the lookups in one snapshot of the Work Knowledge Graph.
        encoder: turns texts into unit vectors [d].
        model: the LWM backend that writes task sequences.
        settings: the settings of the run.
        terms: what the contract states.
        without: parts that an evaluation leaves out; none in a run.
        catalogue: the tools that the contract declares; None where it declares none.
        second: reads sentences beside the reader of `language.reading`; None where the settings name none.
    """

    index: SnapshotIndex
    encoder: TextEncoder
    model: LargeWorkModel
    settings: Settings
    terms: ContractTerms
    without: frozenset[Part] = frozenset()
    catalogue: ContractCatalogue | None = None
    second: SecondReader | None = None

    def history(self, industry: str | None) -> History:
        """What reading the procedure of an intake of the industry needs."""
        known = self.catalogue.history(industry) if self.catalogue else History(self.index.procedures)
        return replace(known, second=self.second)

    def memory(self, elements: Sequence[Element], industry: str) -> IndustryMemory | None:
        """The memory of the industry's cases, with the tools that only the contract's catalogue has; None without."""
        if self.catalogue is None:
            return memory_of(self.index, industry)
        return self.catalogue.memory(elements, industry, self.encoder)


@dataclass(frozen=True)
class Request:
    """Stage 1: one Intention of an intake whose documents were read.

    Attributes:
        intake: the documents, the stated constraints and the stated gain in USD.
        intention_id: id of the Intention, the same for the same intake and position.
        intention: Γ, a unit vector [d] (LWM (4) and (5)), with the rules that the documents state.
        is_only: whether the intake has no other Intention.
    """

    intake: Intake
    intention_id: str
    intention: Intention
    is_only: bool

    @cached_property
    def input_vector(self) -> np.ndarray:
        """The client input alone, as a unit vector [d]."""
        return unit(self.intention.parts["input"].mean(0))


@dataclass(frozen=True)
class Retrieved:
    """Stage 2: what history and the intake's own procedure say about the request.

    Attributes:
        request: the request; a part that the client did not give is filled in from similar cases.
        routed: tasks near Γ with their cosine, most similar first.
        subgraphs: one SWKG for each neighbourhood with its id, LWM (6)-(8).
        evidence: similar cases of all processes, the intake's procedure and standing decisions of people.
        processes: the processes that the intake asks for, each with its similar cases and its critical tasks; the
            first is that of the nearest cases.
        precedence: pairs (a, b) of tasks such that similar cases do a before b.
        expected: the steps that the trained Intention encoder expects, in order, where similar cases are too few to
            say by themselves what the work is.
        unlike: why no case of history is like the request; None where one is.
        stitched: the plan that joins the processes; None where the intake asks for one.
        named: the rules of the intake's procedures that name their steps and hold for the request.
        unknown: the steps that the procedures of a client without history ask for and that history lacks.
    """

    request: Request
    routed: list[Routed]
    subgraphs: list[tuple[str, SubWKG]]
    evidence: Evidence
    processes: list[ProcessDemand]
    precedence: frozenset[tuple[str, str]]
    expected: tuple[str, ...] = ()
    unlike: str | None = None
    stitched: Stitched | None = None
    named: tuple[NamedRule, ...] = ()
    unknown: tuple[UnknownStep, ...] = ()

    @property
    def critical(self) -> list[frozenset[str]]:
        """Groups of tasks; a workflow must have at least one task of each group."""
        return required_groups(self.evidence.procedure, critical_groups(self.processes))


@dataclass(frozen=True)
class Drafted:
    """Stage 3: task sequences and the Workflow Graph that joins them.

    Attributes:
        retrieved: the record of the stage before.
        sequences: the sequences of the LWM, and of the workflow that a person chose, by id.
        wfg: the Workflow Graph, LWM (10) and (11).
        graph: the WKG, with the steps that only the intake's procedure has.
        nearest: for each such new step the known task whose figures it takes.
        usage: what the answer of a language model took, None where none was asked.
        declared: the ids of the steps that only the contract's catalogue has.
    """

    retrieved: Retrieved
    sequences: dict[str, TaskSequence]
    wfg: WFG
    graph: WorkGraph
    nearest: dict[str, str]
    usage: Usage | None = None
    declared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Planned:
    """Stage 4: plans, each with its path, execution modes, shape and reviews.

    Attributes:
        drafted: the record of the stage before.
        context: the requirements, prices and lead times: all that planning reads.
        candidates: the plans that are kept, evaluated (EVAL (1)-(10)) and refined, best first.
        predecessors: dag_s of LWM (10): for each sequence id and each position the positions that it waits for.
    """

    drafted: Drafted
    context: RankingContext
    candidates: PlannedCandidates
    predecessors: dict[str, list[list[int]]]


@dataclass(frozen=True)
class Ranked:
    """Stage 5: the ranked workflows of one Intention, and the figures of history that they are compared with.

    Attributes:
        planned: the record of the stage before.
        ranked: (rank, workflow) from rank 1 on, with Reward, Penalty and confidence.
        baseline: medians over the compared cases: cost in USD, duration in ms, share of successes.
        baseline_lead_time_ms: median lead time of the nearest cases; None where none is known.
        task_baselines: for each task the mean cost in USD in the compared cases.
        weights: the weights that Reward and Penalty were computed with.
        compared: ids of the cases that the figures of history are over.
    """

    planned: Planned
    ranked: list[tuple[int, Candidate]]
    baseline: Baseline
    baseline_lead_time_ms: float | None
    task_baselines: TaskBaselines
    weights: Weights
    compared: frozenset[str] = frozenset()

    @property
    def context(self) -> RankingContext:
        """The requirements, prices and limits of the ranking."""
        return self.planned.context

    @property
    def drafted(self) -> Drafted:
        """The record of stage 3."""
        return self.planned.drafted

    @property
    def retrieved(self) -> Retrieved:
        """The record of stage 2."""
        return self.drafted.retrieved

    @property
    def evidence(self) -> Evidence:
        """What history, the procedure and people say."""
        return self.retrieved.evidence

    @property
    def at_start(self) -> StartOutcomes | None:
        """How the cases ended that are like the intake at the start.

        None where no outcome is known, or several processes are combined: no case did all of that work.
        """
        return self.evidence.completeness.at_start if len(self.retrieved.processes) == 1 else None

    @property
    def request(self) -> Request:
        """The record of stage 1."""
        return self.retrieved.request
