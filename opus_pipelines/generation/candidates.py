"""From the Workflow Graph to ranked candidates: proposals, each worked out, evaluated, scored, held against what is demanded, ranked."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from opus_pipelines.evaluation.reward import evaluate
from opus_pipelines.generation.plans import plan
from opus_pipelines.generation.proposals import proposals
from opus_pipelines.generation.situation import Candidate, Plan, Situation, either
from opus_pipelines.ids import make_id
from opus_pipelines.optimization.constraints import violations
from opus_pipelines.optimization.ranking import diverse, rank


def candidates(situation: Situation) -> list[tuple[int, Candidate]]:
    """The `generation.k` best workflows with their ranks, EVAL (13), each different in its tasks from every better one."""
    settings = situation.settings
    found = [evaluated(situation, plan(situation, proposal)) for proposal in proposals(situation)]
    ordered = [candidate for _, candidate in rank(found, settings.reward.quantum_usd)]
    return list(enumerate(diverse(ordered, settings.generation.diversity)[: settings.generation.k], start=1))


def evaluated(situation: Situation, made: Plan) -> Candidate:
    """A plan with everything that is said of it."""
    worth = evaluate(made.workflow, situation.cost, situation.settings.reward)
    lacking = [
        f"needed: {either(group, situation.graph)} is left out, and history failed without it"
        for group in situation.needed if not group & set(made.tasks)
    ]
    titles = [situation.graph.tasks[t].title for t in made.tasks]
    broken = violations(situation.constraints, worth, titles, situation.names.titles)
    return Candidate(
        make_id("f", situation.intention_id, made.tasks), made, worth,
        path_cost_usd=sum(situation.prices.path_cost_usd(node) for node in made.workflow.tasks),
        transitions=_transitions(situation, made.tasks),
        violations=(*lacking, *broken),
        sequence_ids=_behind(made.tasks, situation.sequences),
    )


def _transitions(situation: Situation, tasks: Sequence[str]) -> int:
    return sum(edge.transitions for pair in pairwise(tasks) if (edge := situation.wfg.edges.get(pair)))


def _behind(tasks: tuple[str, ...], sequences: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The sequences that are this very workflow; where none is, those that brought its edges."""
    same = [s for s, t in sequences.items() if t == tasks]
    pairs = set(pairwise(tasks))
    return tuple(sorted(same or [s for s, t in sequences.items() if pairs & set(pairwise(t))]))
