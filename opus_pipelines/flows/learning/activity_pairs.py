"""Pairs of a clause and the activity that it asks for, with hard negatives, and the encoder that is fine-tuned on them.

The pairs come from tasks whose flows are known, and from clauses that a seeded grammar makes of the catalogue. The hard
negatives are the nearest wrong activities: by the cosine of the untuned encoder with the clause, and by the edit
distance from the right activity.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.activities import ActivityCatalogue, split_words
from opus_pipelines.flows.from_text.activity_features import FeatureTable
from opus_pipelines.flows.from_text.activity_ranker import ActivityRanker
from opus_pipelines.flows.from_text.alignment import learning_examples
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.synthesis import Example, examples
from opus_pipelines.lwm.fine_tuning.text_pairs import TextPairs

if TYPE_CHECKING:
    import numpy as np

MADE = 800  # clauses made from the catalogue
SEED = 29
NEAR = 8  # hard negatives by cosine
ALIKE = 4  # hard negatives by edit distance
REAL = 4.0  # importance of a clause of a known flow; a made clause counts 1


def activity_pairs(
    table: FeatureTable, tasks: Sequence[FlowTask], made: int = MADE, ranker: ActivityRanker | None = None
) -> TextPairs:
    """Returns the pairs of the tasks whose flow is known, and of `made` clauses of the catalogue.

    `table` has the untuned encoder. `ranker` aligns clauses with activities; None for the untrained one.
    """
    import numpy as np

    catalogue = table.catalogue
    known = learning_examples([task for task in tasks if task.expected is not None], ranker or ActivityRanker(table))
    place = {activity.id: i for i, activity in enumerate(catalogue.activities)}
    questions: dict[tuple[str, int], float] = {}
    for found, importance in ((known, REAL), (examples(catalogue, made, SEED), 1.0)):
        for example in found:
            for text in texts_of(example, table):
                if example.activity in place:
                    questions.setdefault((text, place[example.activity]), importance)
    asked = [text for text, _ in questions]
    right = np.array([at for _, at in questions], np.int64)
    wrong = hard_negatives(table, asked, right)
    answers = [activity.text for activity in catalogue.activities]
    return TextPairs(asked, answers, right, wrong, np.array(list(questions.values())))


def texts_of(example: Example, table: FeatureTable) -> list[str]:
    """Returns the clause of an example, and the clause with the application that is carried over, if it names none."""
    query = example.query
    own = query.clause.text
    if query.carried and not table.names.named(own):
        return [own, f"{own} in {table.names.shown(query.carried)}"]
    return [own]


def hard_negatives(table: FeatureTable, questions: Sequence[str], right: "np.ndarray") -> "np.ndarray":
    """Returns the places of the nearest wrong activities of each question [questions, NEAR + ALIKE, or all others]."""
    import numpy as np

    texts = [activity.text for activity in table.catalogue.activities]
    same = np.array([[one == other for other in texts] for one in texts])
    near = min(NEAR, len(texts) - 1)
    alike = alike_activities(table.catalogue, sorted(set(right.tolist())))
    cosines = table.vectors(questions) @ table.texts.T if len(questions) else np.zeros((0, len(texts)))
    cosines[same[right]] = -np.inf
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :near]
    beside = np.array([alike[place] for place in right.tolist()], np.int64).reshape(len(questions), -1)
    return np.concatenate([nearest, beside], axis=1)


def alike_activities(catalogue: ActivityCatalogue, places: Sequence[int]) -> dict[int, list[int]]:
    """Returns for each place the `ALIKE` other activities with the most similar sorted words, the nearest first."""
    shown = [" ".join(sorted(split_words(activity.text))) for activity in catalogue.activities]
    found = {}
    for place in places:
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(shown[place])
        rough = []
        for other, text in enumerate(shown):
            if catalogue.activities[other].text != catalogue.activities[place].text:
                matcher.set_seq1(text)
                rough.append((matcher.quick_ratio(), other))
        best = sorted(rough, key=lambda pair: (-pair[0], pair[1]))[: 4 * ALIKE]
        exact = []
        for _, other in best:
            matcher.set_seq1(shown[other])
            exact.append((matcher.ratio(), other))
        found[place] = [other for _, other in sorted(exact, key=lambda pair: (-pair[0], pair[1]))[:ALIKE]]
    return found
