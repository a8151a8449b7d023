"""Which activity of a catalogue a clause asks for, or whether it asks for work of a person.

The ranker is a linear score over the features, and compares a clause with those of flows that are known, whose clauses
are aligned with their steps. Weights that were learnt from such flows chose no better (benchmarks/results/deleted.md).
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import Activity, ActivityCatalogue, split_words
from opus_pipelines.flows.from_text.activity_features import FEATURES, WEIGHTS, FeatureTable, Query
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.text.clauses import STEP, Clause
from opus_pipelines.flows.text.operations import operations_of_verb
from opus_pipelines.language.grammar.modality import is_base
from opus_pipelines.workflow.blocks.model import Call, Flow, UserTask, activities, walk

if TYPE_CHECKING:
    import numpy as np


_VERBS = {
    "retrieve": ("retrieve", "get", "fetch", "list", "find", "look up", "check", "pull"),
    "create": ("create", "add", "make", "open", "submit", "post", "set up"),
    "update": ("update", "change", "modify", "edit", "adjust"),
    "delete": ("delete", "remove", "cancel", "erase"),
    "send": ("send", "write"),
    "upsert": ("upsert", "upload", "put", "store"),
    "upload": ("upload", "attach", "add"),
}
_DETERMINERS = {
    "retrieve": ("all the", "all", "the", "every", "the latest", "my", "available", "existing"),
    "create": ("a", "a new", "new", "another", "the", "one", "a corresponding"),
}
_OTHERS = ("the", "an existing", "the old", "this", "a")
_PLACES = re.compile(r"\s(?:in|from|to|on|of|for|at|by|using|with|into|across|that|which|so)\s")


@dataclass(frozen=True)
class Example:
    """A query with the activity that is meant."""

    query: Query
    activity: str


def examples(catalogue: ActivityCatalogue, count: int, seed: int) -> list[Example]:
    """Returns `count` clauses for activities drawn at random; the same seed gives the same clauses."""
    draw = random.Random(seed)
    applications = sorted({activity.application for activity in catalogue.activities})
    made = []
    for _ in range(count):
        activity = draw.choice(catalogue.activities)
        made.append(_example(activity, applications, draw))
    return made


def shown_object(activity: Activity) -> list[str]:
    """Returns the words of the object as the description writes them, or as the id does."""
    if activity.description != activity.id:
        words = _PLACES.split(activity.description.partition(" ")[2].strip(". "))[0].split()
        plain = [word for word in words if word.lower() not in ("a", "an", "the", "all", "new", "details")]
        if 1 <= len(plain) <= 3:
            return [word.strip(",\"'.") for word in plain]
    return split_words(activity.object.removesuffix("_model"))[-3:]


def _example(activity: Activity, applications: Sequence[str], draw: random.Random) -> Example:
    verb = draw.choice(_VERBS.get(activity.operation, (activity.operation,)))
    determiners = _DETERMINERS.get(activity.operation, _OTHERS)
    thing = shown_object(activity)
    if draw.random() < 0.3 and len(thing) > 1:
        thing = thing[-1:]
    application = _shown(activity.application, draw)
    place = draw.random()
    words = [*verb.split(), *draw.choice(determiners).split()]
    named, carried = {activity.application: 1.0}, ""
    other = draw.choice(applications)
    if not application or place < 0.25:  # the application is carried over from an earlier clause
        carried = activity.application
        words += thing
        named = {activity.application: 1.0, other: 1.0} if draw.random() < 0.5 else named
    elif place < 0.6:
        words += [*application, *thing]
        carried = other
    else:
        words += [*thing, draw.choice(("in", "from", "on", "using", "to")), *application]
        carried = other if draw.random() < 0.7 else ""
    prior = frozenset([activity.application]) if draw.random() < 0.3 else frozenset()
    clause = Clause(STEP, tuple(words), verb=words[0])
    return Example(Query(clause, carried, named, prior), activity.id)


def _shown(application: str, draw: random.Random) -> list[str]:
    parts = [part for part in application.split("_") if part]
    if len(parts) > 1 and draw.random() < 0.5:
        parts = parts[-1:] if parts[0] in ("Microsoft", "Amazon", "AWS", "Google", "IBM") else parts[:1]
    return [part.lower() if draw.random() < 0.5 else part for part in parts]


@dataclass(frozen=True)
class Ranked:
    """An activity with its score (higher is better) and its share of the softmax over all activities."""

    activity: str
    score: float
    probability: float


class ActivityRanker:
    """A linear score over the features of an activity for a query."""

    def __init__(self, table: FeatureTable) -> None:
        import numpy as np

        self.table = table
        self.weights = np.asarray(list(WEIGHTS.values()), np.float64)

    def ranked(self, query: Query, count: int = 50) -> list[Ranked]:
        """Returns the best activities for a query, the best first; of equal scores the first one of the catalogue."""
        import numpy as np

        scores = self.table.rows(query) @ self.weights
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        order = np.argsort(-scores, kind="stable")[:count]
        activities = self.table.catalogue.activities
        return [Ranked(activities[i].id, float(scores[i]), float(shares[i])) for i in order]


_UNALIGNED = -12.0  # the score of a step that no clause asks for, and of a clause that asks for no step
_MANY = 500


def context_of(
    task_utterance: str, prior: Flow | None, ranker: ActivityRanker
) -> tuple[dict[str, float], frozenset[str]]:
    """Returns the applications that the utterance names, and those of the flow that is edited."""
    by_id = ranker.table.catalogue.by_id
    used = frozenset(by_id[a].application for a in activities(prior) if a in by_id) if prior else frozenset[str]()
    return ranker.table.names.named(task_utterance), used - {""}


def pairs(task: FlowTask, ranker: ActivityRanker) -> list[tuple[Query, str | None]]:
    """Returns the step clauses of a task as queries, each with its activity; None for a user task.

    A clause that is aligned with no step of the flow is left out. The alignment keeps the order and has the highest
    sum of scores.
    """
    if task.expected is None:
        return []
    clauses = [clause for clause in ranker.table.names.clauses(task.utterance) if clause.kind == STEP]
    wanted = _wanted(task.expected, task.prior)
    named, prior = context_of(task.utterance, task.prior, ranker)
    by_id = ranker.table.catalogue.by_id
    table: list[list[float]] = []
    ranker.table.encode([Query(clause, "", named, prior) for clause in clauses])
    for clause in clauses:
        ranked = {r.activity: r.score for r in ranker.ranked(Query(clause, "", named, prior), _MANY)}
        floor = min(ranked.values(), default=0.0)
        top = max(ranked.values(), default=0.0)
        table.append([top - 4.0 if step is None else ranked.get(step, floor) for step in wanted])
    aligned = _best_alignment(table, len(wanted))
    result: list[tuple[Query, str | None]] = []
    carried, used = "", set[str](activities(task.prior) if task.prior else ())
    for place, step in aligned:
        clause = clauses[place]
        result.append((Query(clause, carried, named, prior, frozenset(used)), wanted[step]))
        activity = by_id.get(wanted[step] or "")
        if activity is not None:
            carried = activity.application
            used.add(activity.id)
    return result


def _wanted(expected: Flow, prior: Flow | None) -> list[str | None]:
    left = (
        Counter(_step(s) for s in walk(prior.body) if isinstance(s, Call | UserTask))
        if prior
        else Counter[str | None]()
    )
    wanted = []
    for statement in walk(expected.body):
        if isinstance(statement, Call | UserTask):
            step = _step(statement)
            if left[step]:
                left[step] -= 1
            else:
                wanted.append(step)
    return wanted


def _step(statement: Call | UserTask) -> str | None:
    return statement.activity if isinstance(statement, Call) else None


def _best_alignment(table: Sequence[Sequence[float]], width: int) -> list[tuple[int, int]]:
    """Needleman-Wunsch over clauses and steps."""
    height = len(table)
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    for i in range(height + 1):
        for j in range(width + 1):
            if i or j:
                ways = []
                if i:
                    ways.append(best[i - 1][j] + _UNALIGNED)
                if j:
                    ways.append(best[i][j - 1] + _UNALIGNED)
                if i and j:
                    ways.append(best[i - 1][j - 1] + table[i - 1][j - 1])
                best[i][j] = max(ways)
    aligned, i, j = [], height, width
    while i and j:
        if best[i][j] == best[i - 1][j - 1] + table[i - 1][j - 1]:
            aligned.append((i - 1, j - 1))
            i, j = i - 1, j - 1
        elif best[i][j] == best[i - 1][j] + _UNALIGNED:
            i -= 1
        else:
            j -= 1
    return aligned[::-1]


# Verbs of work that people do; they only make examples, and the classifier does not look them up.
_HUMAN = (
    "validate verify approve review confirm discuss decide call visit interview sign evaluate login negotiate meet "
    "contact analyse investigate double-check calculate assess"
).split()
_OWN_KINDS = ["cosine", "coverage", "usual_operation", "possible_operation", "other_operation", "other_application"]
_SUPPORT = ["application", "carried_application", "application_in_utterance", "application_in_prior"]
_COLUMNS = [FEATURES.index(name) for name in _OWN_KINDS]


def user_task_text(clause: Clause) -> str:
    """Returns the text of the user task that a clause asks for: its words without articles, pronouns and quotes."""
    words = [word.strip("\"'") for word in clause.text.split()]
    dropped = ("a", "an", "the", "their", "its", "his", "her", "my", "our", "all", "on", "this", "these", "then")
    shown = [word for i, word in enumerate(words) if not i or word.lower() not in dropped]
    return " ".join(shown)


class UserTaskClassifier:
    """A logistic regression on the features of the best activity."""

    def __init__(self, ranker: ActivityRanker) -> None:
        self.ranker = ranker
        self._model: object = None

    def train(self, learnt: Sequence[tuple[Query, str | None]], made: Sequence[Example], seed: int) -> None:
        """Learns from aligned clauses, from made clauses, and from made clauses whose activity is hidden."""
        import numpy as np
        from sklearn.linear_model import LogisticRegression

        draw = random.Random(seed)
        rows, labels, weights = [], [], []
        weight = max(1.0, len(made) / max(1, len(learnt)))
        human = [_human(example, draw, self.ranker.table.catalogue) for example in made[: len(made) // 4]]
        self.ranker.table.encode([q for q, _ in learnt] + [e.query for e in made] + human)
        for query, activity in learnt:
            if not is_base(query.clause.verb.lower()):
                continue
            rows.append(self._row(query, ()))
            labels.append(activity is None)
            weights.append(weight)
        for example in made:
            rows.append(self._row(example.query, ()))
            labels.append(False)
            weights.append(1.0)
        for example in made[::4]:
            rows.append(self._row(example.query, self._fitting(example)))
            labels.append(True)
            weights.append(0.3)
        for query in human:
            rows.append(self._row(query, ()))
            labels.append(True)
            weights.append(2.0)
        model = LogisticRegression(C=10.0, max_iter=2000)
        model.fit(np.stack(rows), np.asarray(labels), sample_weight=np.asarray(weights))
        self._model = model

    def probability(self, query: Query) -> float:
        """Returns the probability that a clause is a user task; 0 before training.

        It is halved where the verb usually asks for what the best activity does to the object that the clause
        names, and does more than look at it.
        """
        if self._model is None:
            return 0.0
        row = self._row(query, ())
        probability = float(self._model.predict_proba(row[None])[0, 1])  # type: ignore[attr-defined]
        looks = operations_of_verb(query.clause.verb)[:1] == ("retrieve",)  # people look at things, too
        return (
            probability / 2
            if row[_OWN_KINDS.index("usual_operation")] and row[-1] == 1.0 and not looks
            else probability
        )

    def _fitting(self, example: Example) -> tuple[int, ...]:
        """The places of the activities of the example's application and object: with them hidden, no activity fits."""
        activities = self.ranker.table.catalogue.activities
        right = self.ranker.table.catalogue.by_id[example.activity]
        return tuple(
            i
            for i, a in enumerate(activities)
            if a.application == right.application and (a.operation == right.operation or a.object == right.object)
        )

    def _row(self, query: Query, hidden: Sequence[int]) -> "np.ndarray":
        import numpy as np

        features = self.ranker.table.rows(query)
        scores = features @ self.ranker.weights
        scores[list(hidden)] = -np.inf
        best = features[int(np.argmax(scores))]
        top = float(scores.max()) / 20.0
        has_operation = float(bool(operations_of_verb(query.clause.verb)))
        match = max(best[FEATURES.index("object_head")], best[FEATURES.index("object_described")])
        possible = float(best[FEATURES.index("possible_operation")])
        support = max(best[FEATURES.index(name)] for name in _SUPPORT)
        elsewhere = float(support == 0 and bool(query.carried or query.prior))
        return np.concatenate(
            [
                best[_COLUMNS],
                [
                    elsewhere,
                    has_operation,
                    has_operation * match,
                    possible * match,
                    has_operation * (1.0 - best[0]),
                    top,
                    match,
                ],
            ]
        )


def _human(example: Example, draw: random.Random, catalogue: ActivityCatalogue) -> Query:
    verb = draw.choice(_HUMAN)
    words = (verb, draw.choice(("the", "their", "its", "all the")), *shown_object(catalogue.by_id[example.activity]))
    clause = Clause(STEP, words, verb=verb)
    query = example.query
    return Query(clause, query.carried, query.named, query.prior)
