"""From the Workflow Graph to ranked candidates: proposals, each worked out, evaluated, scored, held against what is demanded, ranked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from opus_pipelines.evaluation.cost import time_usd
from opus_pipelines.evaluation.reward import evaluate
from opus_pipelines.generation.penalised import measured
from opus_pipelines.generation.plans import Planner
from opus_pipelines.generation.proposals import binding, proposals
from opus_pipelines.generation.reading import needed_because
from opus_pipelines.generation.situation import Candidate, Plan, Situation, either
from opus_pipelines.generation.sureness import with_sureness
from opus_pipelines.ids import make_id
from opus_pipelines.optimization.constraints import violations
from opus_pipelines.optimization.ranking import diverse, rank
from opus_pipelines.workflow.model import TaskNode


def candidates(situation: Situation) -> list[tuple[int, Candidate]]:
    """The `generation.k` best workflows with their ranks, EVAL (13), each different in its tasks from every better one.

    Every proposal is worked out; those that would be ranked are refined, until all that are ranked have been.
    """
    proposed = proposals(situation)
    planner = Planner(situation, proposed, lambda *of: measured(*of)[1].penalty)
    found = [evaluated(situation, planner.plan(proposal), proposal.notes) for proposal in proposed]
    while rough := [c for c in _kept(situation, found) if not c.plan.is_refined]:
        done = {c.id: _refined(situation, c, planner.refined(c.plan)) for c in rough}
        found = [done.get(c.id, c) for c in found]
    ranked = with_sureness(situation, _kept(situation, found))
    bound = [replace(c, plan=replace(c.plan, binding=(*c.plan.binding, *binding(situation)))) for c in ranked[:1]]
    return list(enumerate([*bound, *ranked[1:]], start=1))


def _refined(situation: Situation, candidate: Candidate, made: Plan) -> Candidate:
    """The candidate with its plan refined; where that changed nothing in the workflow, everything that is said of it stays."""
    if made.workflow == candidate.workflow:
        return replace(candidate, plan=made)
    return evaluated(situation, made, made.notes)


def _kept(situation: Situation, found: Sequence[Candidate]) -> list[Candidate]:
    settings = situation.settings
    ordered = [candidate for _, candidate in rank(found, settings.reward.quantum_usd)]
    return diverse(ordered, settings.generation.diversity)[: settings.generation.k]


def evaluated(situation: Situation, made: Plan, notes: Sequence[str] = ()) -> Candidate:
    """A plan with everything that is said of it; `notes` join its violations where it has any."""
    worth = evaluate(made.workflow, situation.cost, situation.settings.reward)
    lacking = [
        f"needed: {either(group, situation.graph)} is left out, and {needed_because(group, situation.reading)}"
        for group in situation.needed if not group & set(made.tasks)
    ]
    titles = [situation.graph.tasks[t].title for t in made.tasks]
    broken = violations(situation.constraints, worth, titles, situation.names.titles)
    if situation.demands:
        broken = [situation.demands.cited(violation) for violation in broken]
    scores, penalties = measured(situation, made.workflow)
    return Candidate(
        _id(situation, made), made, worth,
        path_cost_usd=sum(_path_cost_usd(situation, node) for node in made.workflow.tasks),
        transitions=_transitions(situation, made.tasks),
        violations=(*lacking, *broken, *notes) if lacking or broken else (),
        sequence_ids=_behind(made.tasks, situation.sequences),
        scores=scores,
        penalties=penalties,
    )


def _id(situation: Situation, made: Plan) -> str:
    """By its tasks, who does each, its reviews and which step waits for which."""
    steps = [(t.id, t.actor_kind, t.model, t.actor_group) for n in made.nodes if isinstance(t := made.workflow.by_id[n], TaskNode)]
    return make_id("f", situation.intention_id, steps, made.workflow.edges)


def _path_cost_usd(situation: Situation, node: TaskNode) -> float:
    """C(t) of LWM (12), a review's among them."""
    return node.cost_usd + time_usd(node.duration_ms, situation.cost)


def _transitions(situation: Situation, tasks: Sequence[str]) -> int:
    return sum(edge.transitions for pair in pairwise(tasks) if (edge := situation.wfg.edges.get(pair)))


def _behind(tasks: tuple[str, ...], sequences: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The sequences that are this very workflow; where none is, those that brought its edges."""
    same = [s for s, t in sequences.items() if t == tasks]
    pairs = set(pairwise(tasks))
    return tuple(sorted(same or [s for s, t in sequences.items() if pairs & set(pairwise(t))]))
