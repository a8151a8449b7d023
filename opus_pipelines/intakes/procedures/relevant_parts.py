"""What of a procedure a request is about: its part, and one branch of each group of alternatives."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opus_pipelines.intakes.procedures.names import named_share, text_words, words
from opus_pipelines.language.embedding.texts import Part, Sentence, part_similarity
from opus_pipelines.language.reading.alignment import Encode

SAME_REQUEST = 0.85  # cosine from which an old request shows which part a new one asks for
NAMED_WEIGHT = 0.05  # weight of the words that heading and request share: it decides between headings that are alike
SAME_WEIGHT = 4.0  # weight of such a request in the score of a part
BRANCH_STEP = 0.2  # of the cosines of two branches with the request, from which it decides between them
_QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")  # a value; "double quotes" hold names of parameters
_NEGATIVE = re.compile(r"\b(not|never|different|other than|except|neither|nor)\b", re.IGNORECASE)


@dataclass(frozen=True)
class RequestText:
    """What is asked for: its words, and its vector [d] of unit length."""

    text: str
    vector: np.ndarray


def relevant_part(
    request: RequestText, parts: Sequence[Part], earlier_requests: Mapping[str, np.ndarray], encode: Encode
) -> Part:
    """Return the part that is most similar to the request, the first among equals.

    `earlier_requests` has the vectors [n, d] of requests of history by heading, in plain words. A text without
    headings is one part.
    """
    of_name: dict[str, Part] = {}
    for part in parts:
        if part.name and (part.sentences or not part.is_title):
            of_name.setdefault(part.name, part)
    headed = list(of_name.values())
    if not headed:
        return Part(None, tuple(s for part in parts for s in part.sentences))
    names = [part.name for part in headed]
    score = part_similarity(request.vector, encode(names), encode([part.text for part in headed]))
    score = score + NAMED_WEIGHT * named_share(request.text, names)
    for n, name in enumerate(names):
        if name in earlier_requests:
            score[n] += SAME_WEIGHT * max(0.0, float((earlier_requests[name] @ request.vector).max()) - SAME_REQUEST)
    return headed[int(score.round(6).argmax())]


def branch_relevance(request: RequestText, branch: Sequence[str], encode: Encode) -> float:
    """Return how relevant the sentences of a branch are to the request, in steps that leave small differences out.

    Each quoted value that the request has counts 1, and -1 where its sentence is negative; the cosine of the text
    with the request decides between branches alike in this where it differs by more than `BRANCH_STEP`.
    """
    quoted = 0
    for sentence in branch:
        stated = {word for value in _QUOTED.findall(sentence) for word in words(value)}
        if stated and stated <= text_words(request.text):
            quoted += -1 if _NEGATIVE.search(sentence) else 1
    return quoted + round(float((encode(branch) @ request.vector).mean()) / BRANCH_STEP) * BRANCH_STEP


def counting_sentences(
    causes: Sequence[Sentence], likely: Sequence[Sequence[str]], relevance: Callable[[Sequence[int]], float]
) -> list[int]:
    """Return the indices of the sentences that count.

    These are all sentences without an alternative, and of each group of alternatives the branch that asks for steps,
    is most relevant to the request, and has the fewest further steps, in this order. `relevance` returns how relevant
    the sentences of a branch are.
    """
    alone = {task for cause, tasks in zip(causes, likely, strict=True) if cause.either is None for task in tasks}
    branches: dict[int, dict[int, list[int]]] = {}
    for n, cause in enumerate(causes):
        if cause.either is not None:
            branches.setdefault(cause.either, {}).setdefault(cause.branch, []).append(n)
    counting = [n for n, cause in enumerate(causes) if cause.either is None]
    for group in branches.values():
        steps = [{task for n in branch for task in likely[n]} for branch in group.values()]
        ranks = [
            (not asked, -relevance(branch), len(asked - alone), branch[0])
            for branch, asked in zip(group.values(), steps, strict=True)
        ]
        counting += list(group.values())[ranks.index(min(ranks))]
    return sorted(counting)
