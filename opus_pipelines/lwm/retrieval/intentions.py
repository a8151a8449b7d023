"""The Intentions of an intake, their missing part from history, and whether history has work of their kind at all.

How near a request must be to history to be work of its kind is learnt from requests of history that were held out.
Every request is compared with the cases of other requests, as an intake is. Requests whose own industry is held out
show how near work is that history does not know: the bound is a high quantile of their nearest cosines, at least
`completeness.LEAST_COSINE` (two industries alone may be very unlike), and at most a low quantile of those of all
requests, so that few known ones are below it. This is the project's own rule (a reject option, Chow 1970, with both
errors estimated by leaving out).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from opus_pipelines.intakes.intake import Intake
from opus_pipelines.intakes.requirements.intention import (
    Intention,
    Precedent,
    encode_intention,
    goals_of,
    missing_part,
    resolve_missing_part,
)
from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.texts import stretches, unit, words_of
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.completeness import LEAST_COSINE
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


UNKNOWN_INDUSTRY = ""  # of an intake that states none and is unlike all history
FALSE_ALARMS = 0.02  # share of the requests of history that may be below the bound
CAUGHT = 0.98  # share of the requests of a held-out industry that shall be below it
FEWEST = 20  # distinct requests, and of held-out industries, from which the bound is learnt
_MOST_REQUESTS = 500  # distinct requests that are compared, taken evenly


@dataclass(frozen=True)
class Likeness:
    """The least cosine with the nearest case; `is_learnt` is False where history has too few requests or industries."""

    least_cosine: float = LEAST_COSINE
    is_learnt: bool = False

    def reason(self, nearest: Sequence[SimilarCase]) -> str | None:
        """Return why an intake with these nearest cases is unlike all history, None where it is not."""
        if not nearest or nearest[0].similarity >= self.least_cosine:
            return None
        return (
            "no case of history is like this intake, and it states no industry: the most similar case has cosine "
            f"{nearest[0].similarity:.2f}, and {self.least_cosine:.2f} is asked"
        )


@dataclass(frozen=True)
class HeldOutRequests:
    """The nearest cosine of each request among other requests of history, and with its own industry held out."""

    known: np.ndarray
    unknown: np.ndarray

    @property
    def likeness(self) -> Likeness:
        """Return the bound that they show."""
        if len(self.known) < FEWEST or len(self.unknown) < FEWEST:
            return Likeness()
        low, high = np.quantile(self.known, FALSE_ALARMS), np.quantile(self.unknown, CAUGHT)
        return Likeness(round(float(min(low, max(high, LEAST_COSINE))), 6), True)


def held_out_requests(index: SnapshotIndex, encoder: TextEncoder) -> HeldOutRequests:
    """Return the nearest cosines of at most MOST distinct requests of the snapshot."""
    table, search, requests = index.cases.table, index.cases.search, index.snapshot.requests
    ids, industry_of = table["implementation_id"].to_pylist(), np.array(table["industry"].to_pylist(), dtype=object)
    rows = [row for row in np.flatnonzero(search.has_vector).tolist() if ids[row] in requests]
    distinct = sorted({requests[ids[row]] for row in rows})
    asked = distinct[:: max(1, -(-len(distinct) // _MOST_REQUESTS))]
    place = {request: n for n, request in enumerate(distinct)}
    request_of = np.full(table.num_rows, -1)
    request_of[rows] = [place[requests[ids[row]]] for row in rows]
    known, unknown = list[float](), list[float]()
    for request, vector in zip(asked, _encoded(asked, encoder) if asked else (), strict=True):
        own = request_of == place[request]
        for others, cosines in ((~own, known), (~np.isin(industry_of, list(set(industry_of[own]))), unknown)):
            _, found = search.nearest(vector, 1, search.among(others & (request_of >= 0)))
            cosines += found[:1].tolist()
    return HeldOutRequests(np.array(known), np.array(unknown))


def _encoded(texts: Sequence[str], encoder: TextEncoder) -> np.ndarray:
    """Return the unit vectors [n, d] of requests, as a case has them without its context."""
    words = words_of(encoder.max_tokens)
    cut = [stretches(text, words) for text in texts]
    passages = sorted({passage for found in cut for passage in found})
    vector_of = dict(zip(passages, encoder.encode(passages), strict=True))
    return np.stack([unit(np.array([vector_of[p] for p in found]).mean(0)) for found in cut])


def likeness_of(index: SnapshotIndex, encoder: TextEncoder) -> Likeness:
    """Return the bound of a snapshot, learnt once for each index."""
    if index.likeness is None:
        index.likeness = held_out_requests(index, encoder).likeness
    return index.likeness
