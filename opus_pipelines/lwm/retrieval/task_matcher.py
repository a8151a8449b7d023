"""The task that a clause of a rule means: by its names, by its verb, or by its vector.

The verb alone decides only where the clause names nothing else. Where two tasks match, or none well enough, the clause
means no task. The thresholds are this project's own; on the sample's rules they match no clause with a wrong task.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from opus_pipelines.core.ids import SameObject
from opus_pipelines.language.word_stems import same, stems, within
from opus_pipelines.lwm.retrieval.task_names import TaskNames
from opus_pipelines.wkg.graph import WorkGraph

_LEAST_COSINE = 0.50  # least cosine between a clause and the text of its task
LEAST_LEAD = 0.10  # least lead of that cosine over the next task
_MOST_NEAREST = 3  # nearest tasks that are named
_KEPT_SETS = 32  # sets of tasks for which the answers are kept: all intakes of a contract ask for its rules
_Question = tuple[str, str, bool]  # a clause, a verb, and whether the vector of the clause is known


@dataclass(frozen=True)
class _Answers:
    """What was matched before, by question."""

    tasks: dict[_Question, str | None] = field(default_factory=dict)
    nearest: dict[_Question, tuple[str, ...]] = field(default_factory=dict)
    catalogue: dict[tuple[str, str], str | None] = field(default_factory=dict)


@lru_cache(_KEPT_SETS)
def _answers(
    names: SameObject[TaskNames],
    graph: SameObject[WorkGraph],
    tasks: tuple[str, ...],
    vectors: SameObject[Mapping[str, np.ndarray]],
) -> _Answers:
    """Return the answers for these tasks: empty ones, to be filled, where they are new."""
    return _Answers()


@dataclass(frozen=True)
class TaskMatcher:
    """Matches clauses with `tasks`.

    `vectors` has the unit vectors [d] of tasks by id, `clauses` those of clauses by text.
    """

    names: TaskNames
    graph: WorkGraph
    tasks: Collection[str]
    vectors: Mapping[str, np.ndarray]
    clauses: Mapping[str, np.ndarray]

    def match(self, clause: str, verb: str = "") -> str | None:
        """Return the task that a clause means; None where that is not certain.

        `verb`: a stem that one of the task's names must have. Only where it is "" may a clause of one word
        match the task that begins with it.
        """
        asked = clause, verb, clause in self.clauses
        known = self._known.tasks
        if asked not in known:
            words = stems(clause)
            known[asked] = (
                self._by_name(words, verb)
                or (None if verb else self._by_verb(words))
                or self._by_text(clause, words, verb)
            )
        return known[asked]

    def stemmed_names(self, task: str) -> tuple[tuple[str, ...], ...]:
        """Return the names of a task as stems; a new step has only its title."""
        return self.names.stems(task) or (stems(self.graph.tasks[task].title),)

    def catalogue_task(self, clause: str, verb: str = "") -> str | None:
        """Return a task of the whole catalogue whose name is in the clause, to explain why a rule has no effect."""
        asked, known = (clause, verb), self._known.catalogue
        if asked not in known:
            known[asked] = min(
                _longest({task: self.stemmed_names(task) for task in self.graph.tasks}, stems(clause), verb),
                default=None,
            )
        return known[asked]

    def nearest(self, clause: str) -> tuple[str, ...]:
        """Return the titles of the at most `MOST` tasks nearest to a clause, nearest first.

        The score is the share of common words, plus the cosine where the vector of the clause is known.
        """
        asked = clause, "", clause in self.clauses
        known = self._known.nearest
        if asked not in known:
            known[asked] = self._nearest(clause)
        return known[asked]

    @cached_property
    def _known(self) -> _Answers:
        return _answers(SameObject(self.names), SameObject(self.graph), tuple(self.tasks), SameObject(self.vectors))

    def _nearest(self, clause: str) -> tuple[str, ...]:
        words, vector = stems(clause), self.clauses.get(clause)

        def near(task: str) -> float:
            names = [name for name in self.stemmed_names(task) if name]
            shared = max((sum(any(same(n, w) for w in words) for n in name) / len(name) for name in names), default=0.0)
            close = float(self.vectors[task] @ vector) if vector is not None and task in self.vectors else 0.0
            return round(shared + close, 6)

        ranked = sorted(self.tasks, key=lambda task: (-near(task), self.graph.tasks[task].title))
        return tuple(dict.fromkeys(self.graph.tasks[task].title for task in ranked))[:_MOST_NEAREST]

    def _by_name(self, words: tuple[str, ...], verb: str) -> str | None:
        tasks = _longest({t: self.stemmed_names(t) for t in self.tasks}, words, verb)
        return tasks[0] if len(tasks) == 1 else None

    def _by_verb(self, words: tuple[str, ...]) -> str | None:
        """Return the only task whose title begins with the verb of a clause such as "it is approved"."""
        if len(words) != 1:
            return None
        tasks = [t for t in self.tasks if (title := stems(self.graph.tasks[t].title)) and same(title[0], words[0])]
        return tasks[0] if len(tasks) == 1 else None

    def _by_text(self, clause: str, words: tuple[str, ...], verb: str) -> str | None:
        """Return the task nearest in embedding space, if it is near, leads, and shares a word with the clause."""
        vector = self.clauses.get(clause)
        tasks = sorted(t for t in self.tasks if t in self.vectors)
        if vector is None or not tasks or len(words) < 2:
            return None
        cosines = np.stack([self.vectors[t] for t in tasks]) @ vector
        order = np.argsort(-cosines.round(6), kind="stable")
        best, lead = tasks[order[0]], float(cosines[order[0]] - (cosines[order[1]] if len(order) > 1 else 0.0))
        shares = any(same(w, n) for w in words for name in self.stemmed_names(best) for n in name)
        fits = not verb or any(same(verb, n) for name in self.stemmed_names(best) for n in name)
        return best if cosines[order[0]] >= _LEAST_COSINE and lead >= LEAST_LEAD and shares and fits else None


def _longest(names: Mapping[str, Collection[tuple[str, ...]]], words: tuple[str, ...], verb: str) -> list[str]:
    """Return the tasks with the longest name, of two words at least, that the clause holds.

    More than one means that the task is not certain.
    """
    best: dict[str, int] = {}
    for task, known in names.items():
        for name in known:
            if len(name) > 1 and within(name, words) and (not verb or any(same(verb, n) for n in name)):
                best[task] = max(best.get(task, 0), len(name))
    most = max(best.values(), default=0)
    return sorted(task for task, length in best.items() if length == most)
