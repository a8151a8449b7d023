"""What a language model is shown for an utterance: the activities that it may need, and similar flows as examples.

Each clause is a query, and an activity counts with its best clause. In an edit, each operation that the utterance
names is also asked of each step of the flow, because "retrieve instead of create" leaves the objects to the flow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import DISTINCT
from opus_pipelines.flows.from_text.activity_choice import ActivityRanker, shown_object
from opus_pipelines.flows.from_text.activity_features import Query
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.text.clauses import STEP, Clause, clauses_of, words_of
from opus_pipelines.flows.text.operations import operations_of_verb
from opus_pipelines.workflow.blocks.model import Flow, activities

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder


_MAX_CLAUSES = 40  # of an utterance; further ones are not asked for
_MAX_STEPS = 30  # of the flow that is edited
_MAX_OPERATIONS = 3


@dataclass(frozen=True)
class Retrieved:
    """An activity with its score, and the text of the clause that it answers best."""

    activity: str
    score: float
    clause: str


class ActivityRetriever:
    """Retrieves with the trained ranker."""

    def __init__(self, ranker: ActivityRanker) -> None:
        self.ranker = ranker

    def retrieve(self, utterance: str, prior: Flow | None = None, count: int = 50) -> list[Retrieved]:
        """Returns the best activities; those of the prior flow are not added. Raises UtteranceError."""
        queries = self.queries(utterance, prior)
        self.ranker.table.encode(queries)
        best: dict[str, Retrieved] = {}
        ranks: dict[str, int] = {}
        for query in queries:
            for rank, ranked in enumerate(self.ranker.ranked(query, len(self.ranker.table.catalogue.activities))):
                before = best.get(ranked.activity)
                if before is None or ranked.score > before.score:
                    best[ranked.activity] = Retrieved(ranked.activity, ranked.score, query.clause.text)
                ranks[ranked.activity] = min(rank, ranks.get(ranked.activity, rank))
        return sorted(best.values(), key=lambda r: (ranks[r.activity], -r.score, r.activity))[:count]

    def queries(self, utterance: str, prior: Flow | None) -> list[Query]:
        """Returns the queries of an utterance."""
        table = self.ranker.table
        by_id = table.catalogue.by_id
        used = list(dict.fromkeys(activities(prior)))[:_MAX_STEPS] if prior else []
        applications = frozenset(by_id[a].application for a in used if a in by_id) - {""}
        named = table.names.named(utterance)
        clauses = [clause for clause in table.names.clauses(utterance) if clause.words][:_MAX_CLAUSES]
        queries = [Query(clause, "", named, applications, frozenset(used)) for clause in clauses]
        verbs = [word.lower() for word in words_of(utterance) if operations_of_verb(word)]
        for verb in list(dict.fromkeys(verbs))[:_MAX_OPERATIONS] if len(clauses) <= 2 else ():
            for step in used:
                if step in by_id and by_id[step].operation != operations_of_verb(verb)[0]:
                    words = (verb, "the", *shown_object(by_id[step]))
                    clause = Clause(STEP, words, verb)
                    queries.append(Query(clause, by_id[step].application, named, applications, frozenset(used)))
        others = [name for name, weight in named.items() if weight >= DISTINCT and name not in applications]
        for application in others[:_MAX_OPERATIONS] if len(clauses) <= 2 else ():
            for step in used:  # "use another application": its activities that do the same
                if step in by_id:
                    activity = by_id[step]
                    words = (
                        activity.operation,
                        "the",
                        *shown_object(activity),
                        "in",
                        *table.names.shown(application).split(),
                    )
                    queries.append(Query(Clause(STEP, words, activity.operation), application, {application: 1.0}))
        return queries


def recall(retrieved: Sequence[str], expected: Flow, prior: Flow | None = None) -> float | None:
    """Returns which share of the flow's set of activities was retrieved, those of the prior flow counted where it is
    given (specification 2.5); None for a flow without activities.
    """
    wanted = set(activities(expected))
    if not wanted:
        return None
    offered = set(retrieved) | (set(activities(prior)) if prior else set())
    return len(wanted & offered) / len(wanted)


SHORTLIST = 20  # tasks that are ranked again
_FORM = 0.3  # what the same form counts beside the cosine


class Demonstrations:
    """The tasks with known flows, by their utterances."""

    def __init__(self, tasks: Sequence[FlowTask], encoder: "TextEncoder") -> None:
        self.tasks = [task for task in tasks if task.expected is not None]
        self.encoder = encoder
        self._vectors = encoder.encode([task.utterance for task in self.tasks]) if self.tasks else None

    def top(self, utterance: str, prior: Flow | None, count: int) -> list[FlowTask]:
        """Returns the best tasks, without the one of the same utterance and prior.

        The best `SHORTLIST` by the cosine of the utterances are ordered by the cosine and by the form, which is the
        kinds of clauses.
        """
        if self._vectors is None:
            return []
        scores = self._vectors @ self.encoder.encode([utterance])[0]
        fitting = [
            (float(score), task)
            for task, score in zip(self.tasks, scores, strict=True)
            if task.is_update == (prior is not None) and (task.utterance, task.prior) != (utterance, prior)
        ]
        form = _form(utterance)
        shortlist = sorted(fitting, key=lambda scored: -scored[0])[:SHORTLIST]
        ranked = [(score + _FORM * _likeness(form, _form(task.utterance)), task) for score, task in shortlist]
        return [task for _, task in sorted(ranked, key=lambda scored: -scored[0])][:count]


def _form(utterance: str) -> list[str]:
    return [clause.kind if clause.kind != STEP else f"{STEP} {clause.verb.lower()}" for clause in clauses_of(utterance)]


def _likeness(one: list[str], other: list[str]) -> float:
    left = list(other)
    common = 0
    for kind in one:
        if kind in left:
            left.remove(kind)
            common += 1
    return 2 * common / max(1, len(one) + len(other))
