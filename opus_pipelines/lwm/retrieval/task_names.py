"""The names of tasks: which task a name, a text or a clause of a rule means, and the check of names that are stated.

Titles and raw keys of every source are compared in the same way as titles. A clause means a task by its names, by its
verb, or by its vector. The verb alone decides only where the clause names nothing else. Where two tasks match, or none
well enough, the clause means no task. The thresholds are this project's own; on the sample's rules they match no clause
with a wrong task. A misspelt name that a person states is an error, and a demand that nobody can meet a reason.
"""

import difflib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from opus_pipelines.core.errors import SettingsError
from opus_pipelines.core.ids import SameObject
from opus_pipelines.core.settings import Cost
from opus_pipelines.intakes.procedures.names import rarity_among
from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.word_stems import same, stems, within
from opus_pipelines.wkg.graph import WorkGraph
from opus_pipelines.workflow.constraints import Constraints, folded

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
        self._by_words: dict[str, set[str]] = defaultdict(set)
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
        self._by_words[plain(name)].add(task)
        self._names[task].add(folded(name))

    def tasks(self, name: str) -> frozenset[str]:
        """Return the ids of the tasks with this name; where no name is written so, of those with the same words.

        A new client writes "Verify Coverage" where another one's history has `verify_coverage`.
        """
        return frozenset(self._tasks.get(folded(name), ())) or frozenset(self._by_words.get(plain(name), ()))

    def titles(self, name: str) -> list[str]:
        """Return the titles of the tasks with this name, sorted."""
        return sorted(self._graph.tasks[t].title for t in self.tasks(name))

    def stems(self, task: str) -> tuple[tuple[str, ...], ...]:
        """Return the stems of each name of a task, for a search in running text."""
        if task not in self._stems:
            self._stems[task] = tuple(sorted({stems(name) for name in self._names.get(task, ())}))
        return self._stems[task]


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


_NEAREST = 3
MISSPELT = 0.8  # similarity of spelling from which an unknown name is taken for a mistake (difflib)
KINDS = ("human", "model", "code")
# tables of prices whose keys are kinds, roles and models
PRICE_TABLES = ("usd_per_hour", "default_cost_usd", "default_duration_ms")


def refuse_misspelt_tasks(
    constraints: Constraints, names: TaskNames, titles: Collection[str], new: Iterable[str] = ()
) -> None:
    """Raise SettingsError where a stated constraint names no task of history and no new step, but nearly one of them.

    `new` has the names of new steps, `titles` those of history. A name that is like none of them is not misspelt:
    where a task is demanded `unknown_demands` says it, and any other constraint holds for every workflow.
    """
    known = {*map(folded, titles), *map(folded, new)}
    misspelt = [
        f"{kind} names {name!r}, and no task of history is called so; {_near(name, titles)}"
        for kind, name in _unknown(constraints, names, new)
        if difflib.get_close_matches(folded(name), known, n=1, cutoff=MISSPELT)
    ]
    if misspelt:
        raise SettingsError("; ".join(misspelt))


def unknown_demands(
    constraints: Constraints, names: TaskNames, titles: Collection[str], new: Iterable[str] = ()
) -> str | None:
    """Return why no workflow can do what the constraints demand, None where the demanded tasks are known.

    Demanded are the tasks of `must_contain`, and one task of each group of `one_of` and `exactly_one_of`.
    """
    unknown = {name for _, name in _unknown(constraints, names, new)}
    lacking = [f"must_contain demands {name!r}" for name in constraints.must_contain if name in unknown]
    groups = [(kind, group) for kind in ("one_of", "exactly_one_of") for group in getattr(constraints, kind)]
    lacking += [
        f"{kind} demands {' or '.join(map(repr, group))}" for kind, group in groups if unknown.issuperset(group)
    ]
    if not lacking:
        return None
    nearest = "; ".join(f"to {name!r} {_near(name, titles)}" for name in sorted(unknown))
    return (
        f"{'; '.join(lacking)}, and no task of history and no step of the procedure is called so ({nearest}); name a "
        "known task in contract.toml or intake.toml, or take the demand out"
    )


def _unknown(constraints: Constraints, names: TaskNames, new: Iterable[str]) -> list[tuple[str, str]]:
    """Return the kind and the name of every stated task that neither history nor the new steps know."""
    own = {folded(title) for title in new}
    stated = {
        "must_contain": constraints.must_contain,
        "must_not_contain": constraints.must_not_contain,
        "before": [name for pair in constraints.before for name in pair],
        "one_of": [name for group in constraints.one_of for name in group],
        "exactly_one_of": [name for group in constraints.exactly_one_of for name in group],
        "deadlines": [name for deadline in constraints.deadlines for name in (deadline.step, deadline.after) if name],
    }
    return [
        (kind, name)
        for kind, stated_names in stated.items()
        for name in stated_names
        if not names.tasks(name) and folded(name) not in own
    ]


def refuse_unknown_prices(cost: Cost, graph: WorkGraph) -> None:
    """Raise SettingsError where a price names no actor kind, and no role or AI model of history."""
    known = {name for task in graph.tasks.values() for mode in task.execution_modes for name in mode.actor if name}
    folded_names = {name.casefold() for name in known} | set(KINDS)
    unknown = [
        f"{table} states {name!r}, which is no actor kind ({', '.join(KINDS)}) and no role or AI model of history;"
        f" {_near(name, sorted(known - set(KINDS)))};"
        " the price of one person belongs in [rates] of the source's source.toml"
        for table in PRICE_TABLES
        for name in getattr(cost, table)
        if name.casefold() not in folded_names
    ]
    if unknown:
        raise SettingsError("; ".join(unknown))


def _near(name: str, known: Collection[str]) -> str:
    """Return the nearest known names in words: names with a common word first, then names with a similar spelling."""
    wanted = set(folded(name).split())
    by_name = {folded(title): title for title in sorted(known, reverse=True)}
    shared = sorted((t for t in by_name if wanted & set(t.split())), key=lambda t: (-len(wanted & set(t.split())), t))
    similar = difflib.get_close_matches(folded(name), sorted(by_name), n=_NEAREST, cutoff=0.4)
    near = list(dict.fromkeys([*(t for t in similar if t in shared), *shared, *similar]))[:_NEAREST]
    return (
        f"the nearest: {', '.join(repr(by_name[t]) for t in near)}"
        if near
        else f"history knows {len(known)} names, none of them near"
    )
