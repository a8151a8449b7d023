"""Which task a rule's clause means: by one of its names, by its verb where the clause names nothing else, or by what
it says.

Unsure is nothing: a clause that two tasks answer to, or none well enough, means no task. The thresholds are this
project's own; on the sample's rules no clause is taken for a task that it does not mean.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.word_stems import same, stems, within
from opus_pipelines.retrieval.task_names import TaskNames
from opus_pipelines.wkg.graph import WorkGraph

LEAST_COSINE = 0.50  # of a clause with a task's text
LEAST_LEAD = 0.10  # over the next task


@dataclass(frozen=True)
class TaskMatcher:
    """Looks clauses up among `tasks`. `vectors`: the tasks' unit vectors [d] by id; `clauses`: those of the clauses by
    text.
    """

    names: TaskNames
    graph: WorkGraph
    tasks: Collection[str]
    vectors: Mapping[str, np.ndarray]
    clauses: Mapping[str, np.ndarray]

    def match(self, clause: str, verb: str = "") -> str | None:
        """The task that a clause means; None where that is unsure. `verb`: a stem that one of its names must have;
        only where none is asked for may a clause of one word mean the task that begins with it.
        """
        words = stems(clause)
        return (
            self._by_name(words, verb) or (None if verb else self._by_verb(words)) or self._by_text(clause, words, verb)
        )

    def stemmed_names(self, task: str) -> tuple[tuple[str, ...], ...]:
        """A task's names as stems; a new step has but its title."""
        return self.names.stems(task) or (stems(self.graph.tasks[task].title),)

    def catalogue_task(self, clause: str, verb: str = "") -> str | None:
        """A task of the whole catalogue that goes by the clause's words, for the person who asks why a rule has no
        effect.
        """
        found = _longest({t: names for t in self.graph.tasks for names in [self.stemmed_names(t)]}, stems(clause), verb)
        return min(found) if found else None

    def nearest(self, clause: str, most: int = 3) -> tuple[str, ...]:
        """Titles of the tasks nearest to a clause, nearest first: by meaning where its vector is known, and by the
        words they share.
        """
        words, vector = stems(clause), self.clauses.get(clause)

        def near(task: str) -> float:
            names = [name for name in self.stemmed_names(task) if name]
            shared = max((sum(any(same(n, w) for w in words) for n in name) / len(name) for name in names), default=0.0)
            close = float(self.vectors[task] @ vector) if vector is not None and task in self.vectors else 0.0
            return round(shared + close, 6)

        ranked = sorted(self.tasks, key=lambda task: (-near(task), self.graph.tasks[task].title))
        return tuple(dict.fromkeys(self.graph.tasks[task].title for task in ranked))[:most]

    def _by_name(self, words: tuple[str, ...], verb: str) -> str | None:
        found = _longest({t: self.stemmed_names(t) for t in self.tasks}, words, verb)
        return found[0] if len(found) == 1 else None

    def _by_verb(self, words: tuple[str, ...]) -> str | None:
        """ "It is approved": the one task whose title begins so."""
        if len(words) != 1:
            return None
        found = [t for t in self.tasks if (title := stems(self.graph.tasks[t].title)) and same(title[0], words[0])]
        return found[0] if len(found) == 1 else None

    def _by_text(self, clause: str, words: tuple[str, ...], verb: str) -> str | None:
        """The task nearest in embedding space, where it is near, leads, and shares a word with the clause."""
        vector = self.clauses.get(clause)
        tasks = sorted(t for t in self.tasks if t in self.vectors)
        if vector is None or not tasks or len(words) < 2:
            return None
        cosines = np.stack([self.vectors[t] for t in tasks]) @ vector
        order = np.argsort(-cosines.round(6), kind="stable")
        best, lead = tasks[order[0]], float(cosines[order[0]] - (cosines[order[1]] if len(order) > 1 else 0.0))
        shares = any(same(w, n) for w in words for name in self.stemmed_names(best) for n in name)
        fits = not verb or any(same(verb, n) for name in self.stemmed_names(best) for n in name)
        return best if cosines[order[0]] >= LEAST_COSINE and lead >= LEAST_LEAD and shares and fits else None


def _longest(names: Mapping[str, Collection[tuple[str, ...]]], words: tuple[str, ...], verb: str) -> list[str]:
    """The tasks one of whose names, of two words at least, stands in the clause with the most words; more than one
    means unsure.
    """
    best: dict[str, int] = {}
    for task, known in names.items():
        for name in known:
            if len(name) > 1 and within(name, words) and (not verb or any(same(verb, n) for n in name)):
                best[task] = max(best.get(task, 0), len(name))
    most = max(best.values(), default=0)
    return sorted(task for task, length in best.items() if length == most)
