"""Which cause made which task be done: a noisy-or (Pearl 1988), fitted by expectation-maximisation (Dempster, Laird, Rubin 1977).

P(task done) = 1 - prod over the causes that are there of (1 - w[cause, task]). A sentence of a procedure is a cause of the checks
that it asks for.
"""

import numpy as np

ROUNDS = 60
CEILING = 0.999


def noisy_or(
    holds: np.ndarray, did: np.ndarray, weight: np.ndarray, prior: np.ndarray, strength: float = 1.0, most_last: float = CEILING
) -> np.ndarray:
    """w [causes, tasks] in ]0, 1[ from units: `holds` [units, causes] 0 or 1, `did` [units, tasks] the share that did it.

    `weight` [units, tasks] counts the evidence (0: none); `prior` [causes, tasks] in [0, 1] weighs as `strength` more of it.
    The last cause, which is there for what happens by chance, never gets more than `most_last`.
    """
    found = np.clip(0.2 + 0.5 * prior, 0.02, 0.9)
    seen = holds.T @ weight
    for _ in range(ROUNDS):
        chance = np.maximum(1 - np.exp(holds @ np.log1p(-np.minimum(found, CEILING))), 1e-6)
        credit = found * (holds.T @ (did / chance * weight))
        found = np.clip((credit + strength * prior) / (seen + strength), 1e-4, CEILING)
        found[-1] = np.minimum(found[-1], most_last)
    return found
