"""How long texts are cut into passages, and how a case's or an intake's parts become one vector."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

REQUEST_WEIGHT = 0.6   # title and description: what was asked
CONTEXT_WEIGHT = 0.4   # the procedure it was carried out under
WORDS_PER_TOKEN = 0.7  # English prose under WordPiece, on the safe side


def passages(text: str, max_words: int) -> list[str]:
    """`text` in passages of at most `max_words` words: whole paragraphs where they fit, long ones cut at words."""
    made: list[list[str]] = []
    for words in _pieces(text, max_words):
        if made and len(made[-1]) + len(words) <= max_words:
            made[-1] += words
        else:
            made.append(words)
    return [" ".join(words) for words in made]


def words_of(max_tokens: int) -> int:
    """How many words of a passage an encoder of `max_tokens` tokens reads."""
    return max(1, int(max_tokens * WORDS_PER_TOKEN))


def mean_vector(vectors: "Sequence[np.ndarray]") -> "np.ndarray | None":
    """The direction of the mean of unit vectors; None of none, or where they cancel out."""
    import numpy as np

    return _unit(np.mean(np.stack(vectors), axis=0)) if len(vectors) else None


def case_vector(request: "np.ndarray | None", context: "np.ndarray | None") -> "np.ndarray | None":
    """One unit vector of what was asked (weight 0.6) and its procedure (0.4); of the one there is; None of neither."""
    if request is None or context is None:
        return context if request is None else request
    return _unit(REQUEST_WEIGHT * request + CONTEXT_WEIGHT * context)


def _unit(vector: "np.ndarray") -> "np.ndarray | None":
    import numpy as np

    length = float(np.linalg.norm(vector))
    return (vector / length).astype(np.float32) if length > 1e-9 else None


def _pieces(text: str, max_words: int) -> Iterator[list[str]]:
    for paragraph in re.split(r"\n\s*\n", text):
        words = paragraph.split()
        for start in range(0, len(words), max_words):
            yield words[start : start + max_words]
