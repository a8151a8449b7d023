"""The Intentions of an intake, their missing part from history, and their constraints."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.lwm.interface import ProcessDemand, SimilarCase
from opus_pipelines.lwm.workflow_graph import WFG
from opus_pipelines.requirements.encode import Intention, encode_intention
from opus_pipelines.requirements.goals import goals_of
from opus_pipelines.requirements.missing_part import Precedent, resolve_missing_part
from opus_pipelines.retrieval.constraint_resolution import ResolutionContext
from opus_pipelines.retrieval.constraints_from_rules import RuleConstraints, rule_constraints
from opus_pipelines.retrieval.snapshot_index import SnapshotIndex
from opus_pipelines.retrieval.task_matcher import TaskMatcher
from opus_pipelines.wkg.graph import WorkGraph

CASES_OF_A_KIND = 25  # nearest cases that tell which kind of case answers a request
CLEAR_SHARE = 0.6  # of their weight that one kind must have
CLEAR_COSINE = 0.35  # of the nearest of them, below which history does not know the request


def intentions(intake: Intake, knowledge: SnapshotIndex, encoder: TextEncoder) -> list[Intention]:
    """Return the Intention of an intake, or one for each of its goals."""

    def kind_of(vector: np.ndarray) -> str | None:
        return _kind(knowledge.cases.near(vector, intake.industry, CASES_OF_A_KIND))

    return goals_of(encode_intention(intake.elements, intake.title, encoder), kind_of)


def with_missing_part(intention: Intention, cases: Sequence[SimilarCase], knowledge: SnapshotIndex) -> Intention:
    """Return the Intention with the part that the client did not give, from similar cases that succeeded."""
    models = (c for c in cases if c.success is not False and c.tasks)
    return resolve_missing_part(intention, [_precedent(c, knowledge) for c in islice(models, CASES_OF_A_KIND)])


def resolve_constraints(
    intake: Intake,
    intention: Intention,
    alone: bool,
    knowledge: SnapshotIndex,
    graph: WorkGraph,
    wfg: WFG,
    demands: Sequence[ProcessDemand],
    precedence: frozenset[tuple[str, str]],
    is_timed: Callable[[str], bool] = lambda task: True,
) -> RuleConstraints:
    """Resolve what the settings state and the documents demand for this Intention.

    `alone`: it is the only Intention of the intake. `graph`: the WKG with the new steps of the intake's procedure.
    `is_timed`: whether history has times of a task.
    """
    own = (
        [e.text or "" for e in intake.elements if e.role == "input"]
        if alone
        else [s.text for s in intention.decoded.inputs]
    )
    tasks = sorted(n.task_id for n in wfg.nodes.values() if n.task_id)
    matcher = TaskMatcher(knowledge.names, graph, tasks, knowledge.task_vectors, intention.texts)
    documents = {e.element_id: f"{e.role}/{e.name}" for e in intake.elements}
    request_text = "\n".join([intake.title or "", *own])
    context = ResolutionContext(
        request_text, matcher, wfg, demands, precedence, intake.constraints, documents, intake.answers, is_timed
    )
    return rule_constraints(intention.decoded.rules, context)


def _kind(cases: Sequence[SimilarCase]) -> str | None:
    weights: dict[str, float] = defaultdict(float)
    for case in cases:
        weights[case.kind_of_case or ""] += case.weight
    if not cases or cases[0].similarity < CLEAR_COSINE:
        return None
    best = max(sorted(weights), key=lambda kind: weights[kind])
    return best or None if weights[best] >= CLEAR_SHARE * sum(weights.values()) else None


def _precedent(case: SimilarCase, knowledge: SnapshotIndex) -> Precedent:
    known = [knowledge.task_vectors[t] for t in case.tasks if t in knowledge.task_vectors]
    steps = np.stack(known) if known else np.zeros((0, 0), np.float32)
    return Precedent(case.implementation_id, case.similarity, steps, knowledge.graph.tasks[case.tasks[-1]].outputs)
