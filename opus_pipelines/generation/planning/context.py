"""The records of planning and ranking, and the requirements as demands of the path search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opus_pipelines.core.settings import Cost, Settings
from opus_pipelines.generation.decisions import NOTHING_DECIDED, Applied, StandingDecisions
from opus_pipelines.generation.planning.prices import LeadTimes, Prices
from opus_pipelines.generation.planning.ranking import Ranking
from opus_pipelines.generation.search.constraints import DeadlineCheck
from opus_pipelines.generation.search.labels import ChosenPath, best_paths
from opus_pipelines.generation.search.local_search import RefinedPlan
from opus_pipelines.generation.search.problem import (
    Avoids,
    Before,
    Contains,
    Demand,
    Limit,
    Problem,
    Steps,
    keeps,
    steps_of,
)
from opus_pipelines.generation.search.relaxation import infeasibility, relaxation_costs
from opus_pipelines.intakes.contract_settings import Review
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.procedures.reading import ParsedProcedure
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.precedence import precedence_counts
from opus_pipelines.lwm.retrieval.completeness import BY_OUTCOMES, OUTCOMES, Completeness
from opus_pipelines.lwm.retrieval.rule_constraints import RuleConstraints
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import Constraints
from opus_pipelines.workflow.evaluation.cost import MS_PER_HOUR
from opus_pipelines.workflow.evaluation.lead_time import LeadTime
from opus_pipelines.workflow.evaluation.penalty import Scores, WorkflowPenalties
from opus_pipelines.workflow.evaluation.reward import Evaluation
from opus_pipelines.workflow.model import TaskNode, Workflow, review_id


@dataclass(frozen=True)
class Evidence:
    """What history, the intake's procedure and people say about one Intention.

    Attributes:
        cases: similar cases, each once.
        completeness: what decides which tasks may be left out: outcomes of history or support among similar cases.
        procedure: the steps that the intake's own procedure asks for; None where it has none that can be read.
        decided: decisions that people made on workflows of this Intention.
    """

    cases: Sequence[SimilarCase]
    completeness: Completeness = BY_OUTCOMES
    procedure: ParsedProcedure | None = None
    decided: StandingDecisions = NOTHING_DECIDED


@dataclass(frozen=True)
class Draft:
    """What a workflow may be made of.

    Attributes:
        graph: the WKG, with the steps that only the intake's procedure has.
        wfg: the Workflow Graph; a path through it is a workflow's chain of tasks.
        sequences: the tasks of each LWM sequence, each task once, by the sequence's id.
        prices: cost in USD, time in ms, p and q of each task in each execution mode.
        lead_times: how lead times of workflows are computed; None leaves them out.
    """

    graph: WorkGraph
    wfg: WFG
    sequences: Mapping[str, tuple[str, ...]]
    prices: Prices
    lead_times: LeadTimes | None = None


@dataclass(frozen=True)
class Requirements:
    """What a workflow must keep.

    Attributes:
        critical: groups of tasks; a workflow must have at least one task of each group.
        order: pairs (a, b) of tasks such that a must come before b where a workflow has both.
        rules: the constraints in force, with the sentences behind them.
        names: the tasks that a name in a constraint means.
    """

    critical: Sequence[frozenset[str]]
    order: frozenset[tuple[str, str]]
    rules: RuleConstraints
    names: TaskNames

    @property
    def constraints(self) -> Constraints:
        """The constraints in force."""
        return self.rules.constraints


@dataclass(frozen=True)
class RankingContext:
    """All that the planning and the ranking of one Intention read.

    Attributes:
        intake: the intake, with its stated gain in USD.
        intention_id: id of the Intention.
        draft: what a workflow may be made of.
        evidence: what history, the procedure and people say.
        requirements: what a workflow must keep.
        review: what the contract states of reviews.
        cost: prices in USD, and the weights of time and resources.
        settings: the settings of the run.
    """

    intake: Intake
    intention_id: str
    draft: Draft
    evidence: Evidence
    requirements: Requirements
    review: Review
    cost: Cost
    settings: Settings

    @cached_property
    def seen(self) -> Mapping[tuple[str, str], float]:
        """For each pair of tasks the number of similar cases without failure that did the first before the second."""
        return precedence_counts(case.tasks for case in self.evidence.cases if case.success is not False)

    @property
    def ranking(self) -> Ranking:
        """The criteria that workflows are ranked by."""
        rules = self.settings.reward
        return Ranking(
            rules.quantum_usd,
            rules.success_step,
            self.intake.gain_usd is not None,
            self.evidence.completeness.by_support,
        )

    @property
    def required(self) -> list[frozenset[str]]:
        """Groups of tasks; a path must have one task of each: critical tasks and demanded ones that the WFG has."""
        limits, tasks = self.requirements.constraints, self.requirements.names.tasks
        groups = [tasks(name) for name in limits.must_contain]
        groups += [frozenset[str]().union(*map(tasks, group)) for group in (*limits.one_of, *limits.exactly_one_of)]
        demanded = [group & self.draft.wfg.nodes.keys() for group in groups]
        return [*self.requirements.critical, *filter(None, demanded)]

    @cached_property
    def optional(self) -> frozenset[str]:
        """Tasks that neither outcomes of history nor a demand nor the procedure asks for; empty where support decides.

        The success model takes whatever has a q above 0 for a repair of what went wrong before; such a step must not
        make a workflow rank higher.
        """
        if self.evidence.completeness.rule != OUTCOMES:
            return frozenset()
        procedure = self.evidence.procedure
        steps = frozenset(procedure.tasks) if procedure else frozenset[str]()
        return frozenset(self.draft.prices.nodes) - steps - frozenset[str]().union(*self.required)

    @property
    def exclusive(self) -> list[tuple[frozenset[str], ...]]:
        """Groups of options; no path may have tasks of two options of a group."""
        tasks = self.requirements.names.tasks
        return [tuple(map(tasks, group)) for group in self.requirements.constraints.exactly_one_of]

    @property
    def forbidden(self) -> frozenset[str]:
        """Tasks that no path may have."""
        tasks = self.requirements.names.tasks
        return frozenset[str]().union(*(tasks(name) for name in self.requirements.constraints.must_not_contain))


@dataclass(frozen=True)
class Proposal:
    """A path of the WFG.

    Attributes:
        tasks: the tasks in their order.
        nodes: the execution mode that the search chose for a task; a task without one has its most frequent mode.
        gap: how much more another path may be worth; 0 where the search was exact, None where it is unknown.
        notes: where no path meets all requirements, which of them conflict and what would solve the conflict. They are
            added to the violations of the workflow.
    """

    tasks: tuple[str, ...]
    nodes: Mapping[str, TaskNode] = field(default_factory=dict)
    gap: float | None = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edit:
    """One accepted change of a workflow.

    Attributes:
        kind: the kind of change.
        what: the change in words.
        earned: Reward in USD that it adds, or probability of success where no gain is stated; 0 where it only lowers
            the Penalty.
    """

    kind: str
    what: str
    earned: float


@dataclass(frozen=True)
class Plan:
    """A path with its shape, execution modes and reviews.

    Attributes:
        workflow: W = (G, Φ).
        tasks: its tasks in one topological order, without reviews.
        edits: the changes of the proposed chain; their earnings add up to the Reward gained.
        exact: whether no other execution modes and reviews of these tasks in this shape earn more.
        gap: that of the proposal.
        choices: what each review and each more expensive execution mode earns.
        binding: the limits that cost Reward.
        notes: those of the proposal.
        refined_plan: the plan as the local search knows it; None where the search did not make it.
        is_refined: whether every small edit that helps was made.
        worth: EVAL (1)-(7).
        measured: scores by node, and EVAL (8)-(10).
    """

    workflow: Workflow
    tasks: tuple[str, ...]
    edits: tuple[Edit, ...] = ()
    exact: bool = True
    gap: float | None = 0.0
    choices: tuple[Edit, ...] = ()
    binding: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refined_plan: RefinedPlan | None = None
    is_refined: bool = False
    worth: Evaluation | None = None
    measured: tuple[Mapping[str, Scores], WorkflowPenalties] | None = None

    @property
    def nodes(self) -> list[str]:
        """Ids of the nodes in the order of the tasks; each review follows its task."""
        reviews = {n.id for n in self.workflow.tasks if n.is_review}
        inside = [n for t in self.tasks for n in (t, review_id(t)) if n == t or n in reviews]
        return [*(n.id for n in self.workflow.inputs), *inside, *(n.id for n in self.workflow.outputs)]


@dataclass(frozen=True)
class Confidence:
    """How certain the Reward and the rank of a candidate are.

    Attributes:
        reward_usd_p05: 5 % quantile of the Reward in USD; None where no gain is stated.
        reward_usd_p95: 95 % quantile of the Reward in USD; None where no gain is stated.
        beats_next: probability that it ranks before the next candidate; None for the last rank.
        best_share: probability that it is the best of the ranked candidates.
    """

    reward_usd_p05: float | None
    reward_usd_p95: float | None
    beats_next: float | None
    best_share: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """One evaluated workflow.

    Attributes:
        id: id of the workflow.
        plan: the plan that was evaluated.
        evaluation: EVAL (1)-(7).
        path_cost_usd: cost of the path in USD, LWM (12).
        transitions: how often history went along its edges.
        violations: the requirements that it breaks; none where it is feasible.
        sequence_ids: the LWM sequences that it comes from.
        scores: the four scores of each step, by node.
        penalties: EVAL (8)-(10).
        confidence: how certain Reward and rank are; None before the ranking.
        differs_by: swaps between it and the nearest better ranked workflow.
        fewer: why fewer than `generation.k` workflows are ranked.
        lead_time: lead time in ms with its quantiles.
        deadline_checks: the deadlines of its steps, compared with the lead time up to each step.
        decision: the effect of a person's decision on it.
        conformity: expected F1 of its steps against those of similar cases; None where conformity does not rank.
        order_conformity: the same for pairs of consecutive steps.
        has_optional: whether it has a step that nothing asks for (`RankingContext.optional`).
        compared_lead_ms: see `LeadTimes.compared_ms`; 0 where lead times do not rank.
        risks: the deadlines that it will probably miss, where it breaks nothing else; else none.
    """

    id: str
    plan: Plan
    evaluation: Evaluation
    path_cost_usd: float
    transitions: int
    violations: tuple[str, ...]
    sequence_ids: tuple[str, ...]
    scores: Mapping[str, Scores] = field(default_factory=dict)
    penalties: WorkflowPenalties | None = None
    confidence: Confidence | None = None
    differs_by: int | None = None
    fewer: str | None = None
    lead_time: LeadTime | None = None
    deadline_checks: tuple[DeadlineCheck, ...] = ()
    decision: Applied | None = None
    conformity: float | None = None
    order_conformity: float | None = None
    has_optional: bool = False
    compared_lead_ms: float = 0.0
    risks: tuple[str, ...] = ()

    @property
    def workflow(self) -> Workflow:
        """W = (G, Φ)."""
        return self.plan.workflow

    @property
    def tasks(self) -> tuple[str, ...]:
        """Its tasks in one topological order, reviews not among them."""
        return self.plan.tasks

    @cached_property
    def steps(self) -> Steps:
        """Its steps as they are carried out, reviews among them."""
        return steps_of(self.workflow)

    @property
    def worth(self) -> float:
        """The figure by which candidates are compared; it is never shown (`Evaluation.worth`)."""
        return self.evaluation.worth

    @property
    def penalty(self) -> float | None:
        """EVAL (10)."""
        return self.penalties.penalty if self.penalties else None

    @property
    def feasible(self) -> bool:
        """EVAL (12)."""
        return not self.violations

    @property
    def broken(self) -> int:
        """What it breaks: 0 nothing, 1 deadlines alone, 2 anything else. A bound is never met by leaving out a step."""
        return 0 if self.feasible else 1 if self.risks else 2


def either(group: Collection[str], graph: WorkGraph) -> str:
    """Names the tasks of a group, any one of which will do."""
    return " or ".join(repr(graph.tasks[t].title) for t in sorted(group))


# labels that a search may expand, so that the time of an intake is bounded; what is left open is reported as the gap
DEMANDS_EFFORT = 3_000
HISTORY = "the order of history"


def problem_of(context: RankingContext) -> Problem:
    """Returns the search problem: Reward, or success without a stated gain, under all requirements."""
    gain = context.intake.gain_usd
    return Problem(
        context.draft.wfg,
        context.draft.prices.nodes,
        context.cost,
        gain or 0.0,
        demands=(*_limits(context), *_named(context), *_by_history(context)),
        objective="success" if gain is None else "reward",
        shifts=context.draft.graph.shifts,
    )


def is_mendable(demand: Demand) -> bool:
    """Returns whether branches, which save time, or reviews, which raise success, may make a plan keep the demand."""
    return isinstance(demand, Limit) and demand.figure != "cost_usd"


def keeps_limits(path: ChosenPath, problem: Problem) -> bool:
    """Returns whether the chain keeps the limits."""
    figures = {"cost_usd": -path.cost_usd, "duration_ms": -path.duration_ms, "success": path.success}
    bounds = [
        (d.figure, d.value if d.figure == "success" else -d.value) for d in problem.demands if isinstance(d, Limit)
    ]
    return all(figures[figure] >= bound - 1e-9 * abs(bound) for figure, bound in bounds)


def binding_demands(context: RankingContext) -> tuple[str, ...]:
    """Says for each demand on tasks and order that binds how much more the best chain would earn without it.

    Limits on time and success are left out, as they are in `candidates.propose`; what limits cost a workflow is
    computed on its own steps (`explanations.binding_limits`).
    """
    problem = problem_of(context)
    problem = problem.without(*(d for d in problem.demands if is_mendable(d)))
    own = _named(context)
    free = best_paths(problem.without(*own), 1, DEMANDS_EFFORT).paths if own else []
    best = best_paths(problem, 1, DEMANDS_EFFORT).paths if free and not keeps(free[0].tasks, own) else []
    costs = relaxation_costs(problem, best[0].worth, own, DEMANDS_EFFORT) if best else []
    amounts = ((demand.name, more(worth, context.intake.gain_usd)) for demand, worth in costs)
    return tuple(f"{name}: without it the best chain would {amount}" for name, amount in amounts)


def more(worth: float, gain_usd: float | None) -> str:
    """Says how much more a plan would be worth."""
    return f"earn {worth:.2f} USD more" if gain_usd is not None else f"succeed in {worth:.1%} more of the cases"


def why_not(problem: Problem) -> tuple[str, ...]:
    """Says which demands conflict and what would solve the conflict; empty where a path meets all demands."""
    why = infeasibility(problem, DEMANDS_EFFORT)
    if why is None:
        return ()
    mendable = any(is_mendable(d) for conflict in why.conflicts for d in conflict)
    return (
        *why.sentences,
        *(["conflict: time and success are those of chains, before branches and reviews"] if mendable else []),
    )


def _limits(context: RankingContext) -> list[Demand]:
    limits = context.requirements.constraints
    demands: list[Demand] = []
    if limits.max_cost_usd is not None:
        demands.append(Limit(f"max_cost_usd {limits.max_cost_usd:g}", "cost_usd", limits.max_cost_usd))
    if limits.max_duration_hours is not None:
        demands.append(
            Limit(
                f"max_duration_hours {limits.max_duration_hours:g}",
                "duration_ms",
                limits.max_duration_hours * MS_PER_HOUR,
            )
        )
    if limits.min_success is not None:
        demands.append(Limit(f"min_success {limits.min_success:g}", "success", limits.min_success))
    return demands


def _named(context: RankingContext) -> list[Demand]:
    """Returns the demands of the constraints that name tasks."""
    limits, tasks = context.requirements.constraints, context.requirements.names.tasks
    return [
        *(Contains(f"must_contain {name!r}", tasks(name)) for name in limits.must_contain),
        *(Avoids(f"must_not_contain {name!r}", tasks(name)) for name in limits.must_not_contain),
        *(Before(f"before {[first, second]}", ((tasks(first), tasks(second)),)) for first, second in limits.before),
        *(Contains(f"one_of {list(group)}", frozenset[str]().union(*map(tasks, group))) for group in limits.one_of),
        *(
            d
            for group in limits.exactly_one_of
            for d in _exactly_one(f"exactly_one_of {list(group)}", list(map(tasks, group)))
        ),
    ]


def _exactly_one(name: str, options: list[frozenset[str]]) -> tuple[Demand, Demand]:
    """Returns the demands for one of the options, and for no two of them.

    The second demand lets each of two options come before the other, which no path can keep.
    """
    both = tuple((a, b) for a in options for b in options if a is not b)
    return Contains(name, frozenset[str]().union(*options)), Before(f"{name} (not both)", both)


def _by_history(context: RankingContext) -> list[Demand]:
    known = context.draft.wfg.nodes.keys()
    order = tuple(
        (frozenset({a}), frozenset({b})) for a, b in sorted(context.requirements.order) if a in known and b in known
    )
    needed = [
        Contains(f"needed {either(group, context.draft.graph)}", group) for group in context.requirements.critical
    ]
    return [*needed, *([Before(HISTORY, order)] if order else [])]
