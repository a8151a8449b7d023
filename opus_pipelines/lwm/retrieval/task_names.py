"""The names of tasks: titles and raw keys of every source, compared in the same way as titles, and found in a text."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opus_pipelines.intakes.procedures.name_coverage import rarity_among
from opus_pipelines.language.word_stems import stems
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import folded

NAMED_SHARE = 0.55  # least share of the words of a name, by their rarity among the names, that a text must have
ABBREVIATION = 4  # letters from which the word of a name may be the beginning of a word of the text
_LEAST_WORDS = 2  # of a name that a text must have; of a name of one word, that word must begin a sentence


def named_in(text: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return which names the sentences of a text name, as places in `names`.

    A name is found where two neighbouring sentences have enough of its words. Of two such names of which one has all
    found words of the other and more, only that one counts ("Adjust receipt" and "Receipt").
    """
    each = [frozenset(stems(name)) for name in names]
    rarity = rarity_among(each)
    sentences = [(stems(sentence), frozenset(stems(" ".join(sentence.split()[:1])))) for sentence in text]
    found: dict[int, frozenset[str]] = {}
    before: tuple[str, ...] = ()
    for sentence, first in sentences:
        present = frozenset((*before, *sentence))
        before = sentence
        for place, name in enumerate(each):
            shared = frozenset(word for word in name if word in present or _begins(word, present))
            enough = len(shared) >= _LEAST_WORDS or (len(name) == 1 and name == first)
            if enough and sum(rarity[w] for w in shared) >= NAMED_SHARE * sum(rarity[w] for w in name):
                found[place] = found.get(place, frozenset()) | shared
    return [place for place, shared in sorted(found.items()) if not any(shared < other for other in found.values())]


def _begins(word: str, present: frozenset[str]) -> bool:
    return len(word) >= ABBREVIATION and any(other.startswith(word) for other in present)


class TaskNames:
    """Task ids by any of their names."""

    def __init__(self, graph: WorkGraph, aliases: Iterable[Mapping[str, Any]]) -> None:
        self._graph = graph
        self._tasks: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)
        self._stems: dict[str, tuple[tuple[str, ...], ...]] = {}
        for task in graph.tasks.values():
            self._add(task.title, task.task_id)
        for row in aliases:
            for name in (row["title"], row["task_key"]):
                if name and row["task_id"] in graph.tasks:
                    self._add(name, row["task_id"])

    def _add(self, name: str, task: str) -> None:
        self._tasks[folded(name)].add(task)
        self._names[task].add(folded(name))

    def tasks(self, name: str) -> frozenset[str]:
        """Return the ids of the tasks with this name."""
        return frozenset(self._tasks.get(folded(name), ()))

    def titles(self, name: str) -> list[str]:
        """Return the titles of the tasks with this name, sorted."""
        return sorted(self._graph.tasks[t].title for t in self.tasks(name))

    def stems(self, task: str) -> tuple[tuple[str, ...], ...]:
        """Return the stems of each name of a task, for a search in running text."""
        if task not in self._stems:
            self._stems[task] = tuple(sorted({stems(name) for name in self._names.get(task, ())}))
        return self._stems[task]
