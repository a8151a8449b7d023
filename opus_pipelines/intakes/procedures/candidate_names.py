"""The names that a new sentence of a procedure may mean: the tasks of history, and the headings without text."""

from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from opus_pipelines.intakes.procedures.listed_steps import Encode
from opus_pipelines.intakes.procedures.name_coverage import fit_probability
from opus_pipelines.intakes.procedures.sentence_task_model import OUTPUT_WEIGHT, SentenceTaskModel
from opus_pipelines.language.embedding.text_parts import plain

LIKELY = 0.5  # probability from which a sentence asks for a task, or a tool


class CandidateNames:
    """Scores names for a sentence, once for all questions about it.

    `bare` has the headings of a procedure that have no text: names of steps that history may not know. `encode` returns
    the unit vectors [n, d] of n texts.
    """

    def __init__(self, bare: Sequence[str], model: SentenceTaskModel, encode: Encode) -> None:
        self._model, self._encode = model, encode
        self._new = [head for head in bare if model.task_named(head) not in model.tasks]
        self._names = [*(model.title_of[task] for task in model.tasks), *self._new]
        self._tasks = [*model.tasks, *map(model.task_named, self._new)]
        self._scored: dict[str, np.ndarray] = {}

    def best(self, sentence: str, without: Collection[str]) -> tuple[str | None, float]:
        """Return the name that fits the sentence best, and its probability.

        Candidates are the intermediate tasks of history and the headings, but no task `without`. Where none is likely,
        the final tasks that may be a step are tried too (`SentenceTaskModel.may_be_step`).
        """
        best: tuple[str | None, float] = (None, 0.0)
        for may_be in (self._model.is_intermediate, self._model.may_be_step):
            if candidates := self._candidates(without, may_be):
                best = self._best_of(candidates, sentence, 0.0)
            if best[1] >= LIKELY:
                break
        return best

    def fits(self, sentence: str, without: Collection[str]) -> dict[str, float]:
        """Return how likely each name is what the sentence asks for, without the tasks `without`."""
        scores = self._scores(sentence)
        found: dict[str, float] = {}
        for n in self._candidates(without, self._model.may_be_step):
            found.setdefault(self._names[n], float(fit_probability(scores[n])))
        return found

    def that_returns(self, sentence: str, without: Collection[str]) -> tuple[str, float] | None:
        """Return the best name among the tasks of which the sentence states an output, and its probability."""
        stated = set(np.flatnonzero(self._model.states_outputs(sentence)).tolist())
        candidates = [n for n in self._candidates(without, self._model.may_be_step) if n in stated]
        return self._best_of(candidates, sentence, OUTPUT_WEIGHT) if candidates else None

    def _best_of(self, candidates: Sequence[int], sentence: str, bonus: float) -> tuple[str, float]:
        """Return the candidate of the highest score, the first among equals, and its probability with the bonus."""
        scores = self._scores(sentence)
        n = max(candidates, key=lambda name: round(float(scores[name]), 6))
        return self._names[n], float(fit_probability(scores[n] + bonus))

    def _candidates(self, without: Collection[str], may_be: np.ndarray) -> list[int]:
        """Return the indices of the names that are no task `without`; of the model's tasks those that `may_be` a step.

        `may_be` has a flag for each of the model's tasks.
        """
        return [n for n, task in enumerate(self._tasks) if task not in without and (n >= len(may_be) or may_be[n])]

    def _scores(self, sentence: str) -> np.ndarray:
        """Return the scores [names] of all names for a sentence, or for one of its clauses."""
        if not self._names:
            return np.zeros(0)
        if sentence not in self._scored:
            vector, coverage = self._encode([sentence]), self._model.name_coverage
            self._scored[sentence] = coverage.scores([sentence], vector, self._names, self._vectors)[0]
        return self._scored[sentence]

    @cached_property
    def _vectors(self) -> np.ndarray:
        known = self._model.task_vectors if self._model.tasks else ()
        new = self._encode([plain(name) for name in self._new]) if self._new else ()
        return np.stack([*known, *new])
