"""The cases of a training of the transformer as arrays, and as batches of tensors that are filled up to the longest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opus_pipelines.lwm.next_step.network import CLIP

if TYPE_CHECKING:
    from opus_pipelines.lwm.next_step.transformer_network import Batch

BATCH = 32  # cases of one gradient step
LINKED = 0.5  # probability of a link from which it is written
LIKELIEST = 0.1  # the same of the likeliest link of a step that has none; below, the step begins a branch


class Request(Protocol):
    """A request: its vector [d], and vectors [c, d] and places [c] of its clauses."""

    @property
    def vector(self) -> np.ndarray:
        """Return the vector."""
        ...

    @property
    def clauses(self) -> np.ndarray:
        """Return the vectors of the clauses."""
        ...

    @property
    def places(self) -> np.ndarray:
        """Return where the clauses stand."""
        ...


@dataclass(frozen=True)
class Shown:
    """A request with its candidates, as the network reads it, and the prefixes of its case.

    Attributes:
        request: its vector [d], with vectors [c, d] and places [c] of its clauses.
        vectors: of the candidates [k, d].
        pairs: [k, k, 4]: log-odds of the order, share together, transitions per case, and whether it was seen at all.
        steps: place of the step before each next one [t], -1 before the first, k + 1 where it was *new*.
        features: [t, k + 1, f] of what may come next, and of the end.
        chosen: what came [t]: k for the end, k + 1 for *new*.
        done: places of candidates that each prefix has [t].
        links: pairs of places of which the first step is directly before the second; None where nobody tells them.
    """

    request: Request
    vectors: np.ndarray
    pairs: np.ndarray
    steps: list[int]
    features: np.ndarray
    chosen: list[int]
    done: list[tuple[int, ...]]
    links: frozenset[tuple[int, int]] | None = None


def before_of(links: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Return for each step the places of the steps directly before it, given P(link) [steps, steps] of their order.

    They are those that are likelier than not; where no earlier step is, the likeliest one, unless it is unlikely. So
    steps that history has in both orders, without a link between them, stay parallel.
    """
    found = []
    for n in range(len(links)):
        likely = [m for m in range(n) if links[m, n] >= LINKED]
        best = int(links[:n, n].argmax()) if n else 0
        found.append(tuple(likely or ([best] if n and links[best, n] >= LIKELIEST else [])))
    return tuple(found)


def drawn(cases: Sequence[Shown], draw: np.random.Generator) -> list[list[int]]:
    """Return the cases of each batch in a random order; those of a batch are of similar length."""
    sizes = np.array([len(one.chosen) for one in cases]) + 2.0 * draw.random(len(cases))
    order = np.argsort(sizes, kind="stable")
    batches = [order[n : n + BATCH].tolist() for n in range(0, len(order), BATCH)]
    return [batches[n] for n in draw.permutation(len(batches)).tolist()]


def standardised(one: Shown, center: np.ndarray, scale: np.ndarray) -> Shown:
    """Return the case with features of mean 0 and deviation 1, clipped; a missing one is 0."""
    features = np.nan_to_num(np.clip((one.features - center) / scale, -CLIP, CLIP))
    return replace(one, features=features.astype(np.float32))


def moments(cases: Sequence[Shown]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation of each feature [f]; missing ones do not count."""
    total = np.zeros((3, cases[0].features.shape[-1]))
    for one in cases:
        rows = one.features.reshape(-1, one.features.shape[-1]).astype(np.float64)
        known = np.isfinite(rows)
        rows = np.where(known, rows, 0.0)
        total += [known.sum(0), rows.sum(0), (rows**2).sum(0)]
    count = np.maximum(1.0, total[0])
    center = total[1] / count
    scale = np.sqrt(np.maximum(0.0, total[2] / count - center**2)) + 1e-6
    return center.astype(np.float32), scale.astype(np.float32)


def batch_of(cases: Sequence[Shown]) -> "Batch":
    """Return cases as one batch, filled up to the longest."""
    import torch

    from opus_pipelines.lwm.next_step.transformer_network import PAIRS, Batch

    b, d = len(cases), len(cases[0].request.vector)
    c = max(len(one.request.clauses) for one in cases)
    k, t = max(len(one.vectors) for one in cases), max(len(one.chosen) for one in cases)
    f = cases[0].features.shape[-1]
    zeros = lambda *shape: np.zeros(shape, np.float32)
    whole: dict[str, Any] = {
        "request": np.stack([one.request.vector for one in cases]).astype(np.float32),
        "clauses": zeros(b, c, d),
        "places": zeros(b, c),
        "has_clause": np.zeros((b, c), bool),
        "candidates": zeros(b, k, d),
        "has_candidate": np.zeros((b, k), bool),
        "first": zeros(b, k + 1, f),
        "pairs": zeros(b, k, k, PAIRS),
        "steps": np.full((b, t), -1),
        "features": zeros(b, t, k + 1, f),
        "open": np.zeros((b, t, k + 2), bool),
        "chosen": np.full((b, t), -1),
        "both": np.zeros((b, k, k), bool),
        "linked": zeros(b, k, k),
    }
    for n, one in enumerate(cases):
        own, clauses, steps = len(one.vectors), len(one.request.clauses), len(one.chosen)
        moved = lambda place, own=own: place if place < own else place - own + k
        whole["clauses"][n, :clauses], whole["places"][n, :clauses] = one.request.clauses, one.request.places
        whole["has_clause"][n, :clauses], whole["has_candidate"][n, :own] = True, True
        whole["candidates"][n, :own], whole["pairs"][n, :own, :own] = one.vectors, one.pairs
        whole["first"][n, :own], whole["first"][n, k] = one.features[0, :own], one.features[0, own]
        whole["features"][n, :steps, :own], whole["features"][n, :steps, k] = (
            one.features[:, :own],
            one.features[:, own],
        )
        whole["steps"][n, :steps] = [moved(place) for place in one.steps]
        whole["chosen"][n, :steps] = [moved(place) for place in one.chosen]
        for step, done in enumerate(one.done):
            whole["open"][n, step, :own], whole["open"][n, step, k + 1] = True, True
            whole["open"][n, step, k] = step > 0
            whole["open"][n, step, list(done)] = False
        whole["open"][n, steps:, 0] = True
        if one.links:
            inside = [place for place in one.chosen if place < own]
            whole["both"][n][np.ix_(inside, inside)] = True
            whole["both"][n, inside, inside] = False
            whole["linked"][n, [a for a, _ in one.links], [b for _, b in one.links]] = 1.0
    return Batch(**{name: torch.from_numpy(part) for name, part in whole.items()})
