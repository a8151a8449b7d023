"""The further processes that an intake's own documents demand, besides the process of its similar cases.

No case of history may have combined them; a workflow may. A demanded step that similar cases did not do, or that no
case did together with the other demanded steps, is looked up where history did it. Where it is a critical task of those
cases, all their critical tasks are demanded; otherwise only the step is. This is the project's own rule.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from opus_pipelines.core.settings import Generation
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.encode import Intention
from opus_pipelines.lwm.dependency import Pair
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase
from opus_pipelines.lwm.merging.workflow_graph import WFG
from opus_pipelines.lwm.retrieval.completeness import LEAST_COSINE
from opus_pipelines.lwm.retrieval.constraint_resolution import (
    ConstraintResolution,
    ProcessHistory,
    ResolutionContext,
)
from opus_pipelines.lwm.retrieval.critical_tasks import critical_tasks
from opus_pipelines.lwm.retrieval.intake_facts import IntakeStatements
from opus_pipelines.lwm.retrieval.precedence import stable_precedence
from opus_pipelines.lwm.retrieval.similar_cases import latest
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.lwm.retrieval.task_matcher import TaskMatcher
from opus_pipelines.lwm.stitching.industry_counts import IndustryCounts, counts_of
from opus_pipelines.lwm.stitching.link_scorer import links_of
from opus_pipelines.lwm.stitching.plan import Demand, Stitched, stitched

_MOST_PROCESSES = 3  # most processes of one Intention; documents that mention more describe all the work of a company


def combined_processes(
    first: ProcessDemand, intention: Intention, intake: Intake, index: SnapshotIndex, settings: Generation
) -> list[ProcessDemand]:
    """Return the process of the similar cases first, then each further process that a demanded step belongs to.

    A demanded step is a goal of the first process that supports it, if a case that did not fail did all of its goals.
    """
    demands, counts = [first], counts_of(index, intake.industry)
    for task in dict.fromkeys(demanded_tasks(intention, intake, index)):
        for n, demand in enumerate(demands):
            if demand.supports(task) and counts.with_all(demand.goals | {task}).any():
                demands[n] = replace(demand, goals=demand.goals | {task})
                break
        else:
            if len(demands) < _MOST_PROCESSES and (found := _process_of(task, intention, intake, index, settings)):
                demands.append(found)
    return demands


def _process_of(
    task: str, intention: Intention, intake: Intake, index: SnapshotIndex, settings: Generation
) -> ProcessDemand | None:
    """Return the process that a demanded step belongs to; None where no case that did not fail did the step.

    Without texts no case is nearer than another, so the latest ones stand for the process, and the step is demanded.
    """
    cases = index.cases.near_case_with(task, intention.vector, intake.industry, settings.near_cases)
    if cases:
        critical = critical_tasks(cases, index.critical_task_rows(intake.industry), intake.client, settings)
        belongs = any(task in group for group in critical)
        return ProcessDemand(cases, critical if belongs else [frozenset({task})], frozenset({task}))
    counts = counts_of(index, intake.industry)
    rows = latest(index.cases.table, counts.rows[counts.with_all(frozenset({task}))], settings.near_cases).tolist()
    cases = index.cases.at(rows, [1.0] * len(rows), None)
    return ProcessDemand(cases, [frozenset({task})], frozenset({task})) if cases else None


def stitch(demands: Sequence[ProcessDemand], industry: str | None, index: SnapshotIndex) -> Stitched | None:
    """Return the plan that joins the processes; None where there is only one, or none has a case.

    All cases with its goals tell what a process does. Where the similar cases support none of the goals, they stand for
    themselves if they are like the intake.
    """
    if len(demands) < 2:
        return None
    counts, found = counts_of(index, industry), []
    for demand in demands:
        if demand.goals:
            shares = counts.share(demand.goals)
            found.append(Demand(demand.goals, dict(zip(counts.tasks, shares.tolist(), strict=True))))
        elif demand.cases and demand.cases[0].similarity >= LEAST_COSINE and any(c.weight < 1 for c in demand.cases):
            found.append(Demand(frozenset(), _shares(demand.cases, counts)))
    return stitched(found, counts, index.graph, links_of(index, industry), critical_groups(demands)) if found else None


def _shares(cases: Sequence[SimilarCase], counts: IndustryCounts) -> dict[str, float]:
    """Return the share of similar cases that did each task, by weight, drawn to that of all cases by one case."""
    models = [case for case in cases if case.success is not False]
    done = dict.fromkeys(counts.tasks, 0.0)
    for case in models:
        for task in done.keys() & set(case.tasks):
            done[task] += case.weight
    total = sum(case.weight for case in models) + 1
    of_all = zip(counts.tasks, counts.of_all.tolist(), strict=True)
    return {task: (done[task] + share) / total for task, share in of_all}


def critical_groups(demands: Iterable[ProcessDemand]) -> list[frozenset[str]]:
    """Return the groups of critical tasks of all processes, each once, in order of their ids."""
    return sorted({group for demand in demands for group in demand.critical}, key=sorted)


def combined_precedence(demands: Sequence[ProcessDemand], share: float, plan: Sequence[str] = ()) -> frozenset[Pair]:
    """Return the stable precedence of the first process, and of each further one what does not contradict it.

    No pair contradicts the order of `plan`, which agrees best with all cases: the stitched plan, or the consensus where
    support decides. The few nearest cases would otherwise forbid what all similar cases, or a trained model, expect.
    """
    place = {task: n for n, task in enumerate(plan)}
    pairs: set[Pair] = set()
    for demand in demands:
        pairs |= {(a, b) for a, b in stable_precedence(demand.cases, share) if (b, a) not in pairs}
    return frozenset((a, b) for a, b in pairs if a not in place or b not in place or place[a] < place[b])


def demanded_tasks(intention: Intention, intake: Intake, index: SnapshotIndex) -> Iterator[str]:
    """Yield the tasks of the industry that the intake's settings and process documents certainly demand, in order."""
    graph, names = index.graph, index.names
    tasks = [t for t, task in graph.tasks.items() if intake.industry is None or intake.industry in task.industries]
    for name in intake.constraints.must_contain:
        yield from sorted(names.tasks(name) & set(tasks))[:1]
    matcher = TaskMatcher(names, graph, tasks, index.task_vectors, intention.texts)
    context = ResolutionContext(IntakeStatements.of(intake), matcher, WFG(), ProcessHistory())
    resolution = ConstraintResolution(context)
    for rule in intention.decoded.rules:
        if rule.sentence.role == "process":
            yield from filter(
                None, (resolution.task_demanded(demand, rule.sentence.heading) for demand in rule.demands)
            )
