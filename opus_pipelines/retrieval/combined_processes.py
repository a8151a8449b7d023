"""The further processes that an intake's own documents demand, besides the process of its similar cases.

No case of history may have combined them; a workflow may. A demanded step that similar cases did not do is looked up
where history did it. Where it is a critical task of those cases, the whole process is demanded; otherwise only the step
is. This is the project's own rule.
"""

from collections.abc import Iterable, Iterator, Sequence

from opus_pipelines.core.settings import Generation
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import ProcessDemand
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.requirements.encode import Intention
from opus_pipelines.retrieval.constraint_resolution import (
    ConstraintResolution,
    IntakeStatements,
    ProcessHistory,
    ResolutionContext,
)
from opus_pipelines.retrieval.critical_tasks import critical_tasks
from opus_pipelines.retrieval.precedence import stable_precedence
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.retrieval.task_matcher import TaskMatcher

Pair = tuple[str, str]
MOST = 3  # most processes of one Intention; documents that mention more describe all the work of a company


def combined_processes(
    first: ProcessDemand, intention: Intention, intake: Intake, index: SnapshotIndex, settings: Generation
) -> list[ProcessDemand]:
    """Return the process of the similar cases first, then each further process that a demanded step belongs to."""
    demands = [first]
    for task in dict.fromkeys(demanded_tasks(intention, intake, index)):
        if len(demands) < MOST and not any(demand.supports(task) for demand in demands):
            cases = index.cases.near_case_with(task, intention.vector, intake.industry, settings.near_cases)
            critical = critical_tasks(cases, index.critical_task_rows(intake.industry), intake.client, settings)
            belongs = any(task in group for group in critical)
            if cases:
                demands.append(ProcessDemand(cases, critical if belongs else [frozenset({task})]))
    return demands


def critical_groups(demands: Iterable[ProcessDemand]) -> list[frozenset[str]]:
    """Return the groups of critical tasks of all processes, each once, in order of their ids."""
    return sorted({group for demand in demands for group in demand.critical}, key=sorted)


def combined_precedence(demands: Sequence[ProcessDemand], share: float) -> frozenset[Pair]:
    """Return the stable precedence of the first process, and of each further one what does not contradict it."""
    pairs: set[Pair] = set()
    for demand in demands:
        pairs |= {(a, b) for a, b in stable_precedence(demand.cases, share) if (b, a) not in pairs}
    return frozenset(pairs)


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
