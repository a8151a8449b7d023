"""The part that a client did not give, resolved from history by attention: LWM 4.2.

The query is the client input and the value is the missing part. Keys are the nearest successful cases, by their
similarity to what the client gave. Values: for a missing process context the mean vector of the steps of the case, for
a missing output the vector of its last step. The similar cases are looked up before this and do not change: a search
with history's own answer would only confirm it. The resolved part is marked as such and never counts as words of the
client.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.intakes.requirements.decode import StatedText
from opus_pipelines.intakes.requirements.encode import Intention
from opus_pipelines.language.embedding.passages import (
    CONTEXT_WEIGHT,
    OUTPUT_WEIGHT,
    REQUEST_WEIGHT,
    attention,
    compose,
    unit,
)

_NEAREST = 5  # successful cases that answer
_WEIGHT = {"input": REQUEST_WEIGHT, "context": CONTEXT_WEIGHT, "output": OUTPUT_WEIGHT}


@dataclass(frozen=True)
class Precedent:
    """A case of history as a source of the missing part.

    It has the similarity to the request, the vectors [n, d] of the steps of the case in order, and the outputs of
    the last step.
    """

    case_id: str
    similarity: float
    steps: np.ndarray
    outputs: tuple[str, ...] = ()


def missing_part(intention: Intention) -> str | None:
    """Return the part that the client did not give, "context" or "output", else None; the input is always given."""
    return next((part for part in ("context", "output") if not len(intention.parts.get(part, ()))), None)


def resolve_missing_part(intention: Intention, precedents: Sequence[Precedent]) -> Intention:
    """Return the Intention with its missing part from the precedents, nearest first.

    Returns it unchanged where no part is missing or no precedent has steps.
    """
    part = missing_part(intention)
    usable = [p for p in precedents if len(p.steps)][:_NEAREST]
    if part is None or not usable:
        return intention
    weights = attention(np.ones(1, np.float32), np.array([[p.similarity] for p in usable], np.float32))
    values = np.stack([unit(p.steps.mean(0)) if part == "context" else unit(p.steps[-1]) for p in usable])
    parts = {**intention.parts, part: (weights @ values)[None, :].astype(np.float32)}
    ids = tuple(p.case_id for p in usable)
    decoded = intention.decoded
    if part == "output":
        words = dict.fromkeys(text for p in usable for text in p.outputs)
        decoded = replace(
            decoded, outputs=tuple(StatedText(text, None, f"resolved from history: {', '.join(ids)}") for text in words)
        )
    vector = compose(unit(parts["input"].mean(0)), parts["context"], parts["output"])
    shares = _weighted_shares(intention.attention, part, dict(zip(ids, weights.tolist(), strict=True)), parts)
    return replace(intention, vector=vector, decoded=decoded, resolved=(part, *ids), attention=shares, parts=parts)


def _weighted_shares(
    given: dict[str, float], part: str, cases: dict[str, float], parts: dict[str, np.ndarray]
) -> dict[str, float]:
    """Return the shares of Γ: those of the elements, and the share of the resolved part, by case."""
    taken = _WEIGHT[part] / sum(_WEIGHT[p] for p in _WEIGHT if len(parts[p]))
    return {e: w * (1 - taken) for e, w in given.items()} | {c: w * taken for c, w in cases.items()}
