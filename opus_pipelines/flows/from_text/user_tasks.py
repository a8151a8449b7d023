"""Whether a step clause asks for work of a person: no activity of the catalogue fits it well enough."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import ActivityCatalogue
from opus_pipelines.flows.from_text.activity_features import FEATURES, Query
from opus_pipelines.flows.from_text.activity_ranker import ActivityRanker
from opus_pipelines.flows.from_text.synthesis import Example, shown_object
from opus_pipelines.flows.text.clauses import STEP, Clause
from opus_pipelines.flows.text.operations import operations_of_verb
from opus_pipelines.language.grammar.modality import is_base
from opus_pipelines.language.word_stems import stem

if TYPE_CHECKING:
    import numpy as np

# Verbs of work that people do; they only make examples, and the classifier does not look them up.
_HUMAN = [
    "validate",
    "verify",
    "approve",
    "review",
    "confirm",
    "discuss",
    "decide",
    "call",
    "visit",
    "interview",
    "sign",
    "evaluate",
    "login",
    "negotiate",
    "meet",
    "contact",
    "analyse",
    "investigate",
    "double-check",
    "calculate",
    "assess",
]
# What people work on; words of the catalogue are left out, and the classifier does not look the others up.
_THINGS = (
    "laptop office receipt presentation speech visa flight hotel lunch badge training medicine package parcel budget "
    "room machine proposal feedback background identity credential agreement signature interview results documents "
    "paperwork form desk key"
).split()
_DOING = (
    "order prepare clean book start begin fill print deliver pack arrange plan sign hand give bring install repair "
    "inspect scan pay talk discuss draft pick collect wait decide"
).split()
_OWN_KINDS = ["cosine", "coverage", "usual_operation", "possible_operation", "other_operation", "other_application"]
_SUPPORT = ["application", "carried_application", "application_in_utterance", "application_in_prior"]
_COLUMNS = [FEATURES.index(name) for name in _OWN_KINDS]


def user_task_text(clause: Clause) -> str:
    """Returns the text of the user task that a clause asks for: its words without articles, pronouns and quotes."""
    words = [word.strip("\"'") for word in clause.text.split()]
    dropped = ("a", "an", "the", "their", "its", "his", "her", "my", "our", "all", "on", "this", "these", "then")
    kept = [word for i, word in enumerate(words) if not i or word.lower() not in dropped]
    return " ".join(kept)


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
        elsewhere = _elsewhere(made[: len(made) // 4], draw, self.ranker.table.catalogue)
        self.ranker.table.encode([q for q, _ in learnt] + [e.query for e in made] + human + elsewhere)
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
        for query, counts in [*((q, 2.0) for q in human), *((q, 0.15) for q in elsewhere)]:
            rows.append(self._row(query, ()))
            labels.append(True)
            weights.append(counts)
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
        found = float(self._model.predict_proba(row[None])[0, 1])  # type: ignore[attr-defined]
        looks = operations_of_verb(query.clause.verb)[:1] == ("retrieve",)  # people look at things, too
        return found / 2 if row[_OWN_KINDS.index("usual_operation")] and row[-1] == 1.0 and not looks else found

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
        known = float(bool(operations_of_verb(query.clause.verb)))
        match = max(best[FEATURES.index("object_head")], best[FEATURES.index("object_described")])
        possible = float(best[FEATURES.index("possible_operation")])
        support = max(best[FEATURES.index(name)] for name in _SUPPORT)
        elsewhere = float(support == 0 and bool(query.carried or query.prior))
        return np.concatenate(
            [best[_COLUMNS], [elsewhere, known, known * match, possible * match, known * (1.0 - best[0]), top, match]]
        )


def _elsewhere(made: Sequence[Example], draw: random.Random, catalogue: ActivityCatalogue) -> list[Query]:
    """Clauses about things that the catalogue does not know: "order the laptop"."""
    things = [thing for thing in _THINGS if stem(thing) not in catalogue.rarity]
    found = []
    for example in made:
        words = (draw.choice(_DOING), draw.choice(("the", "a", "a new", "all the")), draw.choice(things or _THINGS))
        clause = Clause(STEP, tuple(" ".join(words).split()), verb=words[0])
        found.append(replace(example.query, clause=clause))
    return found


def _human(example: Example, draw: random.Random, catalogue: ActivityCatalogue) -> Query:
    verb = draw.choice(_HUMAN)
    words = (verb, draw.choice(("the", "their", "its", "all the")), *shown_object(catalogue.by_id[example.activity]))
    clause = Clause(STEP, words, verb=verb)
    query = example.query
    return Query(clause, query.carried, query.named, query.prior)
