"""The Intentions of an intake, and their missing part from history."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import numpy as np

from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.encode import Intention, encode_intention
from opus_pipelines.intakes.requirements.goals import goals_of
from opus_pipelines.intakes.requirements.missing_part import Precedent, missing_part, resolve_missing_part
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex

CASES_OF_A_KIND = 25  # nearest cases that decide of which kind a request is
CLEAR_SHARE = 0.6  # least share of their weight that one kind has
CLEAR_COSINE = 0.35  # cosine of the nearest case, below which history has no case like the request


def intentions(intake: Intake, index: SnapshotIndex, encoder: TextEncoder) -> list[Intention]:
    """Return the Intention of an intake, or one for each of its goals."""

    def kind_of(vector: np.ndarray) -> str | None:
        return _kind(index.cases.near(vector, intake.industry, CASES_OF_A_KIND))

    return goals_of(encode_intention(intake.elements, intake.title, encoder), kind_of)


def with_missing_part(intention: Intention, cases: Sequence[SimilarCase], index: SnapshotIndex) -> Intention:
    """Return the Intention with the part that the client did not give, from similar cases that succeeded."""
    if missing_part(intention) is None:
        return intention
    models = (c for c in cases if c.success is not False and c.tasks)
    return resolve_missing_part(intention, [_precedent(c, index) for c in islice(models, CASES_OF_A_KIND)])


def _kind(cases: Sequence[SimilarCase]) -> str | None:
    weights: dict[str, float] = defaultdict(float)
    for case in cases:
        weights[case.kind_of_case or ""] += case.weight
    if not cases or cases[0].similarity < CLEAR_COSINE:
        return None
    best = max(sorted(weights), key=lambda kind: weights[kind])
    return best or None if weights[best] >= CLEAR_SHARE * sum(weights.values()) else None


def _precedent(case: SimilarCase, index: SnapshotIndex) -> Precedent:
    known = [index.task_vectors[t] for t in case.tasks if t in index.task_vectors]
    steps = np.stack(known) if known else np.zeros((0, 0), np.float32)
    return Precedent(case.implementation_id, case.similarity, steps, index.graph.tasks[case.tasks[-1]].outputs)
