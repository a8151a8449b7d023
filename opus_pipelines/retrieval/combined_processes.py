"""Kinds of work that an intake's own documents demand beside what its near cases did: what no case combined, a
workflow may still combine.

A step that is demanded and that near cases did not do is looked up where history did it. Where it is what one does
there, all of that work is asked for, since a drying without an estimate settles nothing; where it is an extra there, it
is one here. Project's own rule.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from opus_pipelines.core.settings import Generation
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import ProcessDemand
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.requirements.rules import Rule
from opus_pipelines.retrieval.constraint_resolution import ConstraintResolution, ResolutionContext
from opus_pipelines.retrieval.critical_tasks import critical_tasks
from opus_pipelines.retrieval.precedence import stable_precedence
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.retrieval.task_matcher import TaskMatcher

Pair = tuple[str, str]
MOST = 3  # kinds of work of one Intention, beyond which documents are taken to speak of everything a house does


def combined_processes(
    first: ProcessDemand,
    rules: Sequence[Rule],
    texts: Mapping[str, np.ndarray],
    intake: Intake,
    vector: np.ndarray,
    knowledge: SnapshotIndex,
    knobs: Generation,
) -> list[ProcessDemand]:
    """The work of the near cases first, then each further one that a demanded step belongs to. `texts`: unit vectors
    of the clauses.
    """
    works = [first]
    for task in dict.fromkeys(_demanded(rules, texts, intake, knowledge)):
        if len(works) < MOST and not any(work.supports(task) for work in works):
            cases = knowledge.cases.near_case_with(task, vector, intake.industry, knobs.near_cases)
            needed = critical_tasks(cases, knowledge.critical_task_rows(intake.industry), intake.client, knobs)
            belongs = any(task in group for group in needed)
            if cases:
                works.append(ProcessDemand(cases, needed if belongs else [frozenset({task})]))
    return works


def critical_groups(works: Iterable[ProcessDemand]) -> list[frozenset[str]]:
    """The groups of all works, each once, in order of their ids."""
    return sorted({group for work in works for group in work.critical}, key=sorted)


def combined_precedence(works: Sequence[ProcessDemand], share: float) -> frozenset[Pair]:
    """What the first work settled, and of each further one what contradicts nothing before it."""
    found: set[Pair] = set()
    for work in works:
        found |= {(a, b) for a, b in stable_precedence(work.cases, share) if (b, a) not in found}
    return frozenset(found)


def _demanded(
    rules: Sequence[Rule], texts: Mapping[str, np.ndarray], intake: Intake, knowledge: SnapshotIndex
) -> Iterator[str]:
    """The steps of the industry that the intake's settings and its own process documents surely demand, in their
    order.
    """
    graph, names = knowledge.graph, knowledge.names
    mine = [t for t, task in graph.tasks.items() if intake.industry is None or intake.industry in task.industries]
    for name in intake.constraints.must_contain:
        yield from sorted(names.tasks(name) & set(mine))[:1]
    meaning = TaskMatcher(names, graph, mine, knowledge.task_vectors, texts)
    said = "\n".join([intake.title or "", *(e.text or "" for e in intake.elements if e.role == "input")])
    settling = ConstraintResolution(
        ResolutionContext(said, meaning, WFG(), (), frozenset(), intake.constraints, {}, intake.answers)
    )
    for rule in rules:
        if rule.sentence.role == "process":
            yield from filter(None, (settling.task_demanded(demand, rule.sentence.heading) for demand in rule.demands))
