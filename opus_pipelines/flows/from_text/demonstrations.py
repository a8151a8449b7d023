"""Flows of the learning set that stand as examples in a prompt: the most similar ones, only updates for an update."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.text.clauses import STEP, clauses_of
from opus_pipelines.workflow.blocks.model import Flow

if TYPE_CHECKING:
    from opus_pipelines.language.embedding.encoder import TextEncoder

SHORTLIST = 20  # tasks that are ranked again
_FORM = 0.3  # what the same form counts beside the cosine


@dataclass(frozen=True)
class Demonstration:
    """A task that is shown, with its score."""

    task: FlowTask
    score: float


class Demonstrations:
    """The tasks with known flows, by their utterances."""

    def __init__(self, tasks: Sequence[FlowTask], encoder: "TextEncoder") -> None:
        self.tasks = [task for task in tasks if task.expected is not None]
        self.encoder = encoder
        self._vectors = encoder.encode([task.utterance for task in self.tasks]) if self.tasks else None

    def top(self, utterance: str, prior: Flow | None, count: int, ranked_again: bool = True) -> list[Demonstration]:
        """Returns the best demonstrations by the cosine of the utterances; the same utterance and prior is left out.

        `ranked_again`: the best `SHORTLIST` are ordered by the cosine and by the form, which is the kinds of clauses.
        """
        if self._vectors is None:
            return []
        scores = self._vectors @ self.encoder.encode([utterance])[0]
        found = [
            Demonstration(task, float(score))
            for task, score in zip(self.tasks, scores, strict=True)
            if task.is_update == (prior is not None) and (task.utterance, task.prior) != (utterance, prior)
        ]
        found.sort(key=lambda shown: -shown.score)
        if ranked_again:
            form = _form(utterance)
            again = [
                Demonstration(d.task, d.score + _FORM * _likeness(form, _form(d.task.utterance)))
                for d in found[:SHORTLIST]
            ]
            found = sorted(again, key=lambda shown: -shown.score)
        return found[:count]


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
