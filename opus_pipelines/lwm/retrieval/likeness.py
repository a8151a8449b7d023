"""How near a request must be to history to be work of its kind, learnt from requests of history that were held out.

Every request is compared with the cases of other requests, as an intake is. Requests whose own industry is held out
show how near work is that history does not know: the bound is a high quantile of their nearest cosines, at least
`completeness.LEAST_COSINE` (two industries alone may be very unlike), and at most a low quantile of those of all
requests, so that few known ones are below it. This is the project's own rule (a reject
option, Chow 1970, with both errors estimated by leaving out).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.language.embedding.encoder import TextEncoder
from opus_pipelines.language.embedding.passages import stretches, unit, words_of
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.completeness import LEAST_COSINE
from opus_pipelines.lwm.retrieval.snapshot_index import SnapshotIndex

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
    table, vectors, requests = index.cases.table, index.case_vectors, index.snapshot.requests
    rows = zip(table["implementation_id"].to_pylist(), table["industry"].to_pylist(), strict=True)
    cases = [(i, industry or "", requests[i]) for i, industry in rows if i in vectors and i in requests]
    distinct = sorted({request for *_, request in cases})
    asked = distinct[:: max(1, -(-len(distinct) // _MOST_REQUESTS))]
    if not asked:
        return HeldOutRequests(np.zeros(0), np.zeros(0))
    place = {request: n for n, request in enumerate(distinct)}
    request_of = np.array([place[request] for *_, request in cases])
    industry_of = np.array([industry for _, industry, _ in cases], dtype=object)
    matrix = np.stack([vectors[i] for i, *_ in cases])
    known, unknown = [], []
    for request, vector in zip(asked, _encoded(asked, encoder), strict=True):
        cosines = matrix @ vector
        own = request_of == place[request]
        strange = ~np.isin(industry_of, list(set(industry_of[own])))
        known += [cosines[~own].max()] if not own.all() else []
        unknown += [cosines[strange].max()] if strange.any() else []
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
