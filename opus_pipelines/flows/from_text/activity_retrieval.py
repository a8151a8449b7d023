"""The activities that an utterance may need, best first, by the trained ranker.

Each clause is a query, and an activity counts with its best clause. In an edit, each operation that the utterance
names is also asked of each step of the flow, because "retrieve instead of create" leaves the objects to the flow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opus_pipelines.flows.from_text.activity_features import Query
from opus_pipelines.flows.from_text.activity_ranker import ActivityRanker
from opus_pipelines.flows.from_text.applications import DISTINCT
from opus_pipelines.flows.from_text.synthesis import shown_object
from opus_pipelines.flows.text.clauses import STEP, Clause, words_of
from opus_pipelines.flows.text.operations import operations_of_verb
from opus_pipelines.workflow.blocks.model import Flow, activities

MAX_CLAUSES = 40  # of an utterance; further ones are not asked for
MAX_STEPS = 30  # of the flow that is edited
MAX_OPERATIONS = 3


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
            for rank, found in enumerate(self.ranker.ranked(query, len(self.ranker.table.catalogue.activities))):
                known = best.get(found.activity)
                if known is None or found.score > known.score:
                    best[found.activity] = Retrieved(found.activity, found.score, query.clause.text)
                ranks[found.activity] = min(rank, ranks.get(found.activity, rank))
        return sorted(best.values(), key=lambda r: (ranks[r.activity], -r.score, r.activity))[:count]

    def queries(self, utterance: str, prior: Flow | None) -> list[Query]:
        """Returns the queries of an utterance."""
        table = self.ranker.table
        by_id = table.catalogue.by_id
        used = list(dict.fromkeys(activities(prior)))[:MAX_STEPS] if prior else []
        applications = frozenset(by_id[a].application for a in used if a in by_id) - {""}
        named = table.names.named(utterance)
        clauses = [clause for clause in table.names.clauses(utterance) if clause.words][:MAX_CLAUSES]
        queries = [Query(clause, "", named, applications, frozenset(used)) for clause in clauses]
        verbs = [word.lower() for word in words_of(utterance) if operations_of_verb(word)]
        for verb in list(dict.fromkeys(verbs))[:MAX_OPERATIONS] if len(clauses) <= 2 else ():
            for step in used:
                if step in by_id and by_id[step].operation != operations_of_verb(verb)[0]:
                    words = (verb, "the", *shown_object(by_id[step]))
                    clause = Clause(STEP, words, verb)
                    queries.append(Query(clause, by_id[step].application, named, applications, frozenset(used)))
        others = [name for name, weight in named.items() if weight >= DISTINCT and name not in applications]
        for application in others[:MAX_OPERATIONS] if len(clauses) <= 2 else ():
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
    found = set(retrieved) | (set(activities(prior)) if prior else set())
    return len(wanted & found) / len(wanted)
