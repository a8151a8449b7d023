"""A second reader of the same sentences, such as a language model, and what follows where it disagrees.

What it says of a sentence decides, and how likely a step is tells whether both readers agree. A sentence of which it
says nothing is read by this package alone. The doubts say which steps only one reader finds, and what was not read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from opus_pipelines.language.reading.alignment import LIKELY, Candidate
from opus_pipelines.language.reading.passages import ASKING, Passage, SentenceKind

AGREED = 0.95  # least probability of a task that both readers find in a sentence
ALONE = 0.65  # of one that the second reader alone finds: a step, and an unsure one
DENIED = 0.5  # factor of one that the second reader does not find; it is below LIKELY then
_NAMED = 3  # steps that a doubt names


@dataclass(frozen=True)
class Said:
    """What the second reader says of one sentence: its kind, the candidates that it means, and its condition.

    `applies`: whether it is for the request, whose facts choose a case of a menu, a row of a table, and what holds.
    """

    kind: SentenceKind
    tasks: tuple[int, ...]
    condition: str = ""
    applies: bool = True

    @property
    def asks(self) -> bool:
        """Whether the sentence asks for its tasks here; a limit on a task demands the task, too."""
        return self.applies and self.kind in (*ASKING, "guard")


@dataclass(frozen=True)
class SecondReading:
    """What was said of the sentences, by their places in what was asked, and why nothing was said of the others."""

    said: Mapping[int, Said]
    reason: str = ""


class SecondReader(Protocol):
    """Reads sentences, each with its section, beside a request and the tasks that they may mean."""

    def __call__(self, sentences: Sequence[Passage], candidates: Sequence[Candidate], request: str) -> SecondReading:
        """Returns what it says of the sentences. It raises nothing where it cannot: it gives the reason."""
        ...


def combined(own: np.ndarray, owner: np.ndarray, said: Mapping[int, Said]) -> np.ndarray:
    """Returns the probabilities [texts, candidates] of this package's reader after those of the second one.

    `owner` [texts] is the sentence of each text; the last text of a sentence is the whole sentence.
    """
    found = own.copy()
    for sentence, record in said.items():
        rows = np.flatnonzero(owner == sentence)
        best = found[rows].max(0)
        meant = np.isin(np.arange(own.shape[1]), record.tasks)
        found[np.ix_(rows, ~meant)] *= DENIED
        for task in record.tasks:
            is_found = best[task] >= LIKELY
            row = rows[found[rows, task].argmax()] if is_found else rows[-1]
            found[row, task] = max(AGREED, best[task]) if is_found else ALONE
    return found


def doubts(reading: SecondReading, asked: int, only_second: Sequence[str], only_own: Sequence[str]) -> tuple[str, ...]:
    """Returns what takes certainty away: sentences that the second reader did not read, and steps that one finds.

    `asked`: how many sentences it was asked for.
    """
    lost = asked - len(reading.said)
    return tuple(
        line
        for line, holds in (
            (
                f"{lost} of {asked} sentences were read without the language model, because {reading.reason}",
                lost > 0,
            ),
            (f"only the language model reads {_names(only_second)} in the texts", bool(only_second)),
            (f"the language model does not read {_names(only_own)} in the texts, left out", bool(only_own)),
        )
        if holds
    )


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
