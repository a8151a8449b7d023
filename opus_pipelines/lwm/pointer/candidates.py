"""The candidates of one request: the tasks that it may be given, with their features."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

SHARPNESS = (0.02, 0.05, 0.1)  # a case that is so much less similar than the most similar one has 1/e of its weight
FEW = (5, 15)  # nearest cases that vote for a task by their cosines
PRIOR = 0.001  # share of the cases that a task without any is taken to have

FEATURES = (
    *(f"support {sharpness}" for sharpness in SHARPNESS),
    "nearest case with the task",
    "kernel regression",
    "cosine",
    "cosine of the best clause",
    "common words",
    "log frequency",
    "gamma to",
    "gamma from",
    "together",
    "nearest case",
    "rank",
    "expected steps",
    "kernel regression of words",
    "kernel regression of vectors",
    *(f"vote of {few}" for few in FEW),
    "words of the title",
    "beginnings of the title",
    "letters of the title",
    "rarest word of the title",
)
WITHOUT_HISTORY: Mapping[str, float] = {  # the features of a task that no case did; the others are of texts
    **{f"support {sharpness}": 0.0 for sharpness in SHARPNESS},
    "nearest case with the task": -1.0,
    "kernel regression": 0.0,
    "log frequency": float(np.log(PRIOR)),
    "gamma to": 0.0,
    "gamma from": 0.0,
    "together": 0.0,
    "kernel regression of words": 0.0,
    "kernel regression of vectors": 0.0,
    **{f"vote of {few}": 0.0 for few in FEW},
}


@dataclass(frozen=True)
class Candidates:
    """The likeliest tasks of one request, with the features that do not depend on the steps so far.

    Attributes:
        tasks: places of the tasks in `IndustryGraph.tasks` [k].
        features: [k, f], one column for each of `FEATURES`.
        likelihood: estimated probability that the work has the task [k].
        place: where the request speaks of the task, as a share of its words [k].
        similarity: cosine of each clause and each task [c, k].
        before: number of cases that did a task at any time before another [k, k].
        direct: number of transitions of the WKG's edges [k, k].
        begins, ends: number of cases that began, or ended, with the task [k].
        counts: number of cases with the task [k].
        mean_place: mean place of the task in its cases, 0 for the first and 1 for the last step [k].
    """

    tasks: np.ndarray
    features: np.ndarray
    likelihood: np.ndarray
    place: np.ndarray
    similarity: np.ndarray
    before: np.ndarray
    direct: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    counts: np.ndarray
    mean_place: np.ndarray

    @cached_property
    def precedes(self) -> np.ndarray:
        """How much more often a task came before another than after it, as the log of the ratio [k, k]."""
        return np.asarray(np.log((self.before + 0.5) / (self.before.T + 0.5)))

    def without_history_of(self, tasks: np.ndarray) -> "Candidates":
        """Return the candidates as if no case had done some of them; `tasks` [k] says which.

        Features that are of the whole request stay as they are: rank, expected steps and the nearest case.
        """
        features, known = self.features.copy(), ~tasks
        for name, value in WITHOUT_HISTORY.items():
            column = FEATURES.index(name)
            features[tasks, column] = value
        both = known[:, None] & known
        return replace(
            self,
            features=features,
            likelihood=np.where(known, self.likelihood, PRIOR),
            before=self.before * both,
            direct=self.direct * both,
            begins=self.begins * known,
            ends=self.ends * known,
            counts=self.counts * known,
            mean_place=np.where(known, self.mean_place, 0.5),
        )
