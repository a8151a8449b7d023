"""Reads a procedure that lists steps, for an industry whose procedures history does not know.

Every heading of the list is a candidate, known or not. A sentence that is the same as one of history, in any industry,
asks for the steps that it asked for there, where the list has steps of these names; for another sentence the model of
`models.StepScorer` decides. A step that has a part of its own in the procedure brings the steps of that part before it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.procedures.listed_steps import ListedSteps, lists_steps
from opus_pipelines.intakes.procedures.models import StepKnowledge
from opus_pipelines.intakes.procedures.reading import DEPTH, LIKELY, SAME_MEANING, ParsedProcedure, ProcedureStep
from opus_pipelines.intakes.procedures.relevant_parts import (
    RequestText,
    branch_relevance,
    counting_sentences,
    relevant_part,
)
from opus_pipelines.language.embedding.texts import Part, plain
from opus_pipelines.language.reading.alignment import Encode

FIRST_SENTENCE = 0.5  # share of a step's highest probability with which a sentence is the first that asks for it


def read_listed_steps(
    request: RequestText, parts: Sequence[Part], industry: str | None, knowledge: StepKnowledge, encode: Encode
) -> ParsedProcedure | None:
    """Return the steps that the part for the request asks for, the goal last; None where the parts list no steps.

    All of them are new steps of the industry: what history knows of another industry's step of that name stays with
    that one. `encode` returns the unit vectors [n, d] of n texts.
    """
    if not lists_steps(parts, knowledge.verbs):
        return None
    return read_steps_of_list(request, parts, industry, knowledge, encode)


def read_steps_of_list(
    request: RequestText, parts: Sequence[Part], industry: str | None, knowledge: StepKnowledge, encode: Encode
) -> ParsedProcedure:
    """Return the same of parts that are known to list steps: at least one of them has a name and is no title."""
    listed = [part for part in parts if part.name and not part.is_title]
    return _ListReader(request, industry, knowledge, ListedSteps(parts, encode), encode).read(
        relevant_part(request, listed, knowledge.sentences.requests if knowledge.sentences else {}, encode)
    )


class _ListReader:
    def __init__(
        self,
        request: RequestText,
        industry: str | None,
        knowledge: StepKnowledge,
        steps: ListedSteps,
        encode: Encode,
    ) -> None:
        self._request, self._industry, self._knowledge = request, industry, knowledge
        self._steps, self._encode = steps, encode

    def read(self, goal: Part) -> ParsedProcedure:
        """Return the steps of the part `goal`, with those of the parts of these steps."""
        asked = self._of_part(goal)
        found: dict[str, ProcedureStep] = {}
        self._add(goal.name, None, asked, found, (goal.name,))
        explained = len({step.sentence for step in asked.values()}) / max(1, len(goal.sentences))
        known = [s for s in goal.sentences if self._known_weights(s.text) is not None]
        similar = len(known) / len(goal.sentences) if goal.sentences else 1.0
        return ParsedProcedure(goal.head or "", tuple(found.values()), min(1.0, explained), similar)

    def _add(
        self,
        name: str,
        step: ProcedureStep | None,
        asked: Mapping[str, ProcedureStep],
        found: dict[str, ProcedureStep],
        path: tuple[str, ...],
    ) -> None:
        """Add what the part `name` asks for, in its order, and then the step itself."""
        for other, asked_step in asked.items():
            if other in path or other in found:
                continue
            part = self._steps.parts[other]
            deeper = self._of_part(part) if part.sentences and len(path) <= DEPTH else {}
            self._add(other, asked_step, deeper, found, (*path, other))
        found.setdefault(name, step or self._step(name, None, 1.0))

    def _of_part(self, part: Part) -> dict[str, ProcedureStep]:
        """Return the steps that the part's sentences ask for, by name, in the order of the sentences."""
        if not part.sentences:
            return {}
        each = self._probabilities(part)
        likely = [[self._steps.names[n] for n in np.flatnonzero(row >= LIKELY)] for row in each]
        texts = [s.text for s in part.sentences]
        counting = counting_sentences(
            part.sentences,
            likely,
            lambda branch: branch_relevance(self._request, [texts[n] for n in branch], self._encode),
        )
        together = 1 - np.prod(1 - each[counting], axis=0)
        chosen = []
        for n in np.flatnonzero(together.round(9) >= LIKELY):
            of_sentences = each[counting, n]
            first = counting[int(np.flatnonzero(of_sentences >= FIRST_SENTENCE * of_sentences.max())[0])]
            chosen.append((first, -float(each[first, n]), int(n)))
        return {
            self._steps.names[n]: self._step(self._steps.names[n], texts[first], float(together[n]))
            for first, _, n in sorted(chosen)
        }

    def _probabilities(self, part: Part) -> np.ndarray:
        """Return [sentences, steps] how likely each sentence asks for each step."""
        found = self._knowledge.scorer.probabilities(self._steps, part.name, [s.text for s in part.sentences])
        own = self._steps.position(part.name)
        for row, sentence in enumerate(part.sentences):
            weights = self._known_weights(sentence.text)
            if weights is not None:
                found[row] = weights
                if own is not None:
                    found[row, own] = 0.0
        return found

    def _known_weights(self, sentence: str) -> np.ndarray | None:
        """Return [steps] what the same sentence of history asked for; None where there is none.

        It is None too where the list lacks one of the tasks that it probably asked for.
        """
        model = self._knowledge.sentences
        if model is None:
            return None
        cause, cosine = model.nearest_cause(self._encode([sentence])[0])
        if cosine < SAME_MEANING:
            return None
        weights = np.zeros(len(self._steps.names))
        asked = 0
        for task, weight in zip(model.tasks, model.cause_weights[cause], strict=True):
            place = self._steps.position(plain(model.title_of[task]))
            if place is not None:
                weights[place] = max(weights[place], float(weight))
            elif weight >= LIKELY:
                return None
            asked += weight >= LIKELY
        return weights if asked else None

    def _step(self, name: str, sentence: str | None, probability: float) -> ProcedureStep:
        part = self._steps.parts[name]
        return ProcedureStep(
            make_id("t", "new", self._industry or "", name),
            part.head or name,
            sentence,
            probability,
            True,
            tuple(s.text for s in part.sentences),
        )
