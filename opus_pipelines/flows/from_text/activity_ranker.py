"""Ranks the activities of a catalogue for a clause: a conditional logit over the features, trained on pairs of clause
and activity with the hardest other activities as negatives (Liu: Learning to Rank for Information Retrieval, 2009).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activity_features import FeatureTable, Query
from opus_pipelines.flows.from_text.synthesis import Example

if TYPE_CHECKING:
    import numpy as np

HARDEST = 60  # activities beside the right one that an example is trained against
PENALTY = 0.02  # of the squared weights, for each example
# Where training starts: the sign that each feature has by its meaning. It is also what the ranker knows untrained.
FIRST_WEIGHTS = (
    7.8,
    4.2,
    1.3,
    3.5,
    1,
    0.1,
    1.4,
    -1.5,
    1.3,
    1.4,
    -2.4,
    3.4,
    -2.5,
    3,
    1.6,
    1.2,
    1,
    1,
    -1.8,
    2,
    2.4,
    1.3,
    0.7,
    0,
    2.1,
)


@dataclass(frozen=True)
class Ranked:
    """An activity with its score (higher is better) and its share of the softmax over all activities."""

    activity: str
    score: float
    probability: float


class ActivityRanker:
    """A linear score over the features of an activity for a query."""

    def __init__(self, table: FeatureTable, weights: "np.ndarray | None" = None) -> None:
        import numpy as np

        self.table = table
        self.weights = np.asarray(FIRST_WEIGHTS, np.float64) if weights is None else weights

    def ranked(self, query: Query, count: int = 50) -> list[Ranked]:
        """Returns the best activities for a query, the best first; of equal scores the first one of the catalogue."""
        import numpy as np

        scores = self.table.rows(query) @ self.weights
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        order = np.argsort(-scores, kind="stable")[:count]
        activities = self.table.catalogue.activities
        return [Ranked(activities[i].id, float(scores[i]), float(shares[i])) for i in order]


def train(table: FeatureTable, examples: Sequence[tuple[Example, float]]) -> ActivityRanker:
    """Learns the weights from examples with their importance. Examples of unknown activities are left out.

    The negatives of an example are the activities that the untrained ranker scores best beside the right one. The
    penalty pulls the weights to where they started, so that a feature without evidence keeps its meaning.
    """
    import numpy as np
    from scipy.optimize import minimize

    start = np.asarray(FIRST_WEIGHTS, np.float64)
    place = {activity.id: i for i, activity in enumerate(table.catalogue.activities)}
    known = [(example, weight) for example, weight in examples if example.activity in place]
    if not known:
        return ActivityRanker(table, start)
    table.encode([example.query for example, _ in known])
    table.leaves_out = True
    rows, importance = [], []
    for example, weight in known:
        features = table.rows(example.query).astype(np.float64)
        right = place[example.activity]
        hardest = np.argsort(-(features @ start), kind="stable")[: HARDEST + 1]
        others = [i for i in hardest if i != right][:HARDEST]
        chosen = features[[right, *others]]
        if len(chosen) < HARDEST + 1:
            chosen = np.concatenate([chosen, np.repeat(chosen[-1:], HARDEST + 1 - len(chosen), axis=0)])
        rows.append(chosen)
        importance.append(weight)
    table.leaves_out = False
    data, weights = np.stack(rows), np.asarray(importance) / sum(importance)

    def loss(guess: "np.ndarray") -> tuple[float, "np.ndarray"]:
        scores = data @ guess
        scores -= scores.max(axis=1, keepdims=True)
        shares = np.exp(scores)
        shares /= shares.sum(axis=1, keepdims=True)
        away = guess - start
        value = -(weights * np.log(shares[:, 0] + 1e-12)).sum() + PENALTY * (away**2).sum() / 2
        gradient = (weights[:, None] * ((shares[:, :, None] * data).sum(axis=1) - data[:, 0])).sum(axis=0)
        return float(value), gradient + PENALTY * away

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return ActivityRanker(table, found.x)
