"""A procedure read for one request: the part that speaks of it, and the steps that its sentences ask for.

A sentence like one of history's asks for what cases did because of that one; a new one for the task whose name fits it;
and a step that has a part of its own in the procedure brings what that part asks for. The rules and their figures are
this project's own.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.embedding.text_parts import Part, Sentence, plain, spoken_of
from opus_pipelines.lwm.name_coverage import fit_probability
from opus_pipelines.lwm.sentence_task_model import SentenceTaskModel

ALIKE = 0.9  # cosine from which two sentences ask for the same
LIKELY = 0.5  # chance from which a task is a step
SAME_REQUEST = 0.85  # cosine from which an old request shows which part a new one asks for
SAME_WEIGHT = 4.0  # of such a request, beside what the part says
FAINT = 0.15  # chances below it are noise, and do not add up
DEPTH = 3  # parts read of steps of steps
# share of a procedure's headings that name known tasks, from which an unknown heading is a step's name too
STEP_HEADINGS = 0.25
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True)
class ProcedureStep:
    """One step: a task of the catalogue or, `is_new`, one that the procedure names and nobody in history did; why, and
    how surely.

    `sentence` asks for it; None for what the whole part is for. `instructions`: what its own part says.
    """

    task_id: str
    name: str
    sentence: str | None
    probability: float
    is_new: bool = False
    instructions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParsedProcedure:
    """The steps of the part `head` in order. Of its sentences, `known` is the share that history or a task's name
    explains, `alike` the share that is like a sentence of history.
    """

    head: str
    steps: tuple[ProcedureStep, ...]
    explained_share: float
    similar_share: float = 1.0

    @property
    def has_goal(self) -> bool:
        """The part is a step's own: the last step is what it is for."""
        return self.steps[-1].sentence is None

    @property
    def tasks(self) -> tuple[str, ...]:
        """Their task ids."""
        return tuple(step.task_id for step in self.steps)


def texts_to_embed(parts: Sequence[Part]) -> list[str]:
    """Every text whose vector a reading may ask for."""
    texts = {s.text for part in parts for s in part.sentences}
    texts |= {t for part in parts if part.name for t in (part.name, part.text)}
    return sorted(texts - {""})


def parse_procedure(
    request: np.ndarray, parts: Sequence[Part], industry: str | None, lessons: SentenceTaskModel, encode: Encode
) -> ParsedProcedure | None:
    """The steps that the parts ask for of a request [d, unit length]; None where they ask for nothing that can be
    told.
    """
    if not parts:
        return None
    reader = _Reader(parts, industry, lessons, encode)
    part = reader.about(request)
    steps, known, alike = reader.steps(part)
    return ParsedProcedure(part.head or "", tuple(steps), known, alike) if steps else None


class _Reader:
    def __init__(self, parts: Sequence[Part], industry: str | None, lessons: SentenceTaskModel, encode: Encode) -> None:
        self.parts, self.industry, self.lessons, self.encode = parts, industry, lessons, encode
        self.of_name: dict[str, Part] = {}
        for part in parts:
            if part.name:
                self.of_name.setdefault(part.name, part)
        self.bare = [p for p in self.of_name.values() if not p.sentences and not p.is_title]

    def about(self, request: np.ndarray) -> Part:
        """The part that speaks most of the request, first among equals; a text without headings is one part."""
        headed = [p for p in self.of_name.values() if not (p.is_title and not p.sentences)]
        if not headed:
            return Part(None, tuple(s for part in self.parts for s in part.sentences))
        score = spoken_of(request, self.encode([p.name for p in headed]), self.encode([p.text for p in headed]))
        for n, part in enumerate(headed):
            if part.name in self.lessons.requests:
                score[n] += SAME_WEIGHT * max(
                    0.0, float((self.lessons.requests[part.name] @ request).max()) - SAME_REQUEST
                )
        return headed[int(score.round(6).argmax())]

    def steps(self, part: Part) -> tuple[list[ProcedureStep], float, float]:
        """The part's steps in order, what it is for last; and the shares of its sentences that were understood, and
        that were alike.
        """
        goal = self._goal(part)
        found: dict[str, ProcedureStep] = {}
        shares, queue, depth = [], [part], {part.name: 0}
        while queue:
            current = queue.pop(0)
            asked, *share = self._asked(current, {goal.task_id} if goal else set())
            shares.append(share)
            for step in asked:
                if step.task_id not in found and (goal is None or step.task_id != goal.task_id):
                    found[step.task_id] = step
                    own = self.of_name.get(plain(step.name))
                    if own and own.sentences and own.name not in depth and depth[current.name] < DEPTH:
                        depth[own.name] = depth[current.name] + 1
                        queue.append(own)
        return self._ordered(list(found.values())) + ([goal] if goal else []), shares[0][0], shares[0][1]

    def _goal(self, part: Part) -> ProcedureStep | None:
        """The task that the part's heading names, known or new; a section's heading names none, nor does one among
        such that name none.
        """
        if not part.head:
            return None
        heads = [p.head or "" for p in self.of_name.values() if not p.is_title]
        unknown = self.lessons.task_named(part.head) is None
        if unknown and (
            part.is_title or sum(self.lessons.task_named(h) is not None for h in heads) < STEP_HEADINGS * len(heads)
        ):
            return None
        return self._step(part.head, None, 1.0)

    def _step(self, name: str, sentence: str | None, chance: float) -> ProcedureStep:
        known = self.lessons.task_named(name)
        own = self.of_name.get(plain(name))
        said = tuple(s.text for s in own.sentences) if own else ()
        if known is not None:
            return ProcedureStep(known, name, sentence, chance, instructions=said)
        return ProcedureStep(make_id("t", "new", self.industry or "", plain(name)), name, sentence, chance, True, said)

    def _asked(self, part: Part, without: Collection[str]) -> tuple[list[ProcedureStep], float, float]:
        """The likely steps of the part's sentences in their order; of an either-group those of the sentence that adds
        least. And shares.
        """
        causes = [*part.sentences]
        own = self.lessons.task_named(part.head or "")
        if part.head and own is None:
            causes.insert(0, Sentence(part.name))
        found = [self._by(cause, {*without, own}) for cause in causes]
        taken: dict[str, ProcedureStep] = {}
        chance: dict[str, float] = {}
        for n in _branches(causes, [[s.task_id for s in steps if s.probability >= LIKELY] for steps, *_ in found]):
            for step in found[n][0]:
                taken.setdefault(step.task_id, step)
                chance[step.task_id] = 1 - (1 - chance.get(step.task_id, 0.0)) * (1 - step.probability)
        steps = [s for s in taken.values() if chance[s.task_id] >= LIKELY]
        said = [(known, alike) for _, known, alike in found[len(causes) - len(part.sentences) :]] or [(True, True)]
        return steps, sum(known for known, _ in said) / len(said), sum(alike for _, alike in said) / len(said)

    def _by(self, cause: Sentence, without: Collection[str | None]) -> tuple[list[ProcedureStep], bool, bool]:
        """The steps that one sentence asks for, whether it was understood, and whether it is like one of history's."""
        lessons = self.lessons
        vector = self.encode([cause.text])[0]
        if len(lessons.causes):
            alike = (lessons.cause_vectors @ vector).round(6)
            nearest = int(alike.argmax())
            if alike[nearest] >= ALIKE:
                asked = lessons.cause_weights[nearest]
                likely = [
                    (float(asked[n]), task)
                    for n, task in enumerate(lessons.tasks)
                    if asked[n] >= FAINT and task not in without
                ]
                return (
                    [
                        ProcedureStep(task, lessons.title_of[task], cause.text, chance)
                        for chance, task in sorted(likely, reverse=True)
                    ],
                    True,
                    True,
                )
        if cause.text in self.of_name:  # a new heading is no sentence: its name is its own
            return [], False, False
        name, chance = self._named_by(cause.text, vector, without)
        return (
            ([self._step(name, cause.text, chance)], True, False) if name and chance >= LIKELY else ([], False, False)
        )

    def _named_by(self, sentence: str, vector: np.ndarray, without: Collection[str | None]) -> tuple[str | None, float]:
        """The name that fits the sentence best, and how well: one of history's means or the procedure's bare headings;
        where none is likely, one of the ends that may be a step (`Lessons.usable`).
        """
        lessons = self.lessons
        bare = [p.head or "" for p in self.bare if lessons.task_named(p.head or "") not in {*lessons.tasks, *without}]
        open_to = [n for n, task in enumerate(lessons.tasks) if task not in without]
        first = self._fitting(sentence, vector, [n for n in open_to if lessons.is_intermediate[n]], bare)
        return (
            first
            if first[1] >= LIKELY
            else self._fitting(sentence, vector, [n for n in open_to if lessons.may_be_step[n]], bare)
        )

    def _fitting(
        self, sentence: str, vector: np.ndarray, known: Sequence[int], bare: Sequence[str]
    ) -> tuple[str | None, float]:
        lessons = self.lessons
        names = [*(lessons.title_of[lessons.tasks[n]] for n in known), *bare]
        if not names:
            return None, 0.0
        vectors = [*lessons.task_vectors[known], *(self.encode([plain(b) for b in bare]) if bare else ())]
        scores = lessons.name_coverage.scores([sentence], vector[None, :], names, np.stack(vectors))[0]
        best = int(scores.round(6).argmax())
        return names[best], float(fit_probability(scores)[best])

    def _ordered(self, steps: list[ProcedureStep]) -> list[ProcedureStep]:
        """In the order in which history did them, where it agrees; else as the procedure names them."""
        before: Mapping[tuple[str, str], float] = self.lessons.order_weights
        lead = lambda a, b: before.get((a.task_id, b.task_id), 0.0) - before.get((b.task_id, a.task_id), 0.0)
        left, done = [*steps], []
        while left:
            first = next((a for a in left if all(lead(a, b) >= 0 for b in left if b is not a)), None)
            first = first or max(left, key=lambda a: sum(lead(a, b) for b in left if b is not a))
            done.append(first)
            left.remove(first)
        return done


def _branches(causes: Sequence[Sentence], likely: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of the causes that count: all that stand alone, and of each either-group the one with fewest further
    steps.
    """
    alone = {task for cause, tasks in zip(causes, likely, strict=True) if cause.either is None for task in tasks}
    chosen: dict[int, tuple[bool, int, int]] = {}
    for n, cause in enumerate(causes):
        if cause.either is not None:
            rank = (not likely[n], len(set(likely[n]) - set(alone)), n)
            chosen[cause.either] = min(chosen.get(cause.either, rank), rank)
    return sorted([n for n, cause in enumerate(causes) if cause.either is None] + [rank[2] for rank in chosen.values()])
