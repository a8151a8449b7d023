"""The in-context generator without a language model: it proposes by what the history of (program, reward) shows.

Like a model that reads its history, it tries what it has not tried yet, leaves what did not help, and comes back to
what helped elsewhere. Of an edit it remembers the phrase with its model, and the mean change of the reward.
"""

from collections import defaultdict

import numpy as np

from opus_pipelines.flows.programs.drafts import Bank, Draft, Edit, applied, random_edit

HOPE = 0.02  # change of the reward that is expected of what was not tried
SHARP = 200.0  # how strongly the expected change decides
FEWEST = 12  # candidates that a proposal is chosen from


class HistoryGenerator:
    """Proposes one edit at a time."""

    def __init__(self, bank: Bank, generator: np.random.Generator) -> None:
        self._bank, self._generator = bank, generator
        self._sums: dict[tuple[str, str, str], float] = defaultdict(float)
        self._counts: dict[tuple[str, str, str], int] = defaultdict(int)
        self._last: tuple[str, str, str] | None = None

    def propose(self, best: Draft) -> Draft:
        """Returns the best draft after the edit drawn by expected change among some random candidates."""
        candidates = [self._candidate(best) for _ in range(FEWEST)]
        keys = [_key(edit, best) for edit in candidates]
        expected = np.array([self._expected(key) for key in keys])
        weights = np.exp(SHARP * (expected - expected.max()))
        place = int(self._generator.choice(len(keys), p=weights / weights.sum()))
        self._last = keys[place]
        return applied(best, candidates[place])

    def learn(self, gain: float) -> None:
        """Adds a gain to the history of the last edit."""
        if self._last is not None:
            self._counts[self._last] += 1
            self._sums[self._last] += gain

    def _expected(self, key: tuple[str, str, str]) -> float:
        count = self._counts.get(key, 0)
        return (HOPE + self._sums.get(key, 0.0)) / (1 + count)

    def _candidate(self, best: Draft) -> Edit:
        return random_edit(best, self._bank, self._generator)


def _key(edit: Edit, best: Draft) -> tuple[str, str, str]:
    if edit.operator in ("add", "alternative", "replace"):
        return edit.operator, edit.phrase, edit.model
    at = best[edit.place] if edit.place < len(best) else None
    return edit.operator, at.phrase if at else "", at.model if at else ""
