"""Cuts long texts into passages and makes one vector of them, for cases of history and for Intentions.

The request weights the passages of the process context: what a procedure says about this request counts more than what
it says to everyone (measured on the held-out keys of SOPBench, fold 0: clean .41 against .36 for the plain mean).
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

REQUEST_WEIGHT = 0.5  # of title and description, or of the client input
CONTEXT_WEIGHT = 0.5  # of the procedure
OUTPUT_WEIGHT = 0.25  # of the requested output
TEMPERATURE = 0.02  # of the attention: cosines with this difference have weights of e to 1
WORDS_PER_TOKEN = 0.7  # of English prose under WordPiece; a text with more tokens is read in windows by the encoder
LONG_WORD = 32  # a longer word counts one word per character: text without spaces, base64


def words_of(max_tokens: int) -> int:
    """Returns how many words of a passage an encoder of `max_tokens` tokens reads."""
    return max(1, int(max_tokens * WORDS_PER_TOKEN))


def passages(text: str | None, max_words: int) -> list[str]:
    """Returns the paragraphs of a text, which blank lines separate, each cut to `max_words`; no word is dropped."""
    return [part for paragraph in re.split(r"\n\s*\n", text or "") for part in stretches(paragraph, max_words)]


def stretches(text: str | None, max_words: int) -> list[str]:
    """Cuts a text into stretches of `max_words` words, regardless of paragraphs.

    It is used for requests, which are read as a whole. A word of more than LONG_WORD characters counts one word per
    character, and is cut when it alone is too long.
    """
    cut: list[list[str]] = []
    words_left = 0
    for word in (text or "").split():
        pieces = [word] if len(word) <= LONG_WORD else [word[i : i + max_words] for i in range(0, len(word), max_words)]
        for piece in pieces:
            weight = 1 if len(word) <= LONG_WORD else len(piece)
            if weight > words_left:
                cut.append([])
                words_left = max_words
            cut[-1].append(piece)
            words_left -= weight
    return [" ".join(words) for words in cut]


def attention(query: "np.ndarray", keys: "np.ndarray", temperature: float = TEMPERATURE) -> "np.ndarray":
    """Returns weights for the rows of `keys` [n, d] and a unit `query` [d]; they sum to 1.

    They are the softmax of the cosines over `temperature`.
    """
    import numpy as np

    scores = keys @ query / temperature
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def unit(vector: "np.ndarray") -> "np.ndarray":
    """Returns the vector at length 1; a zero vector is returned as it is."""
    import numpy as np

    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)


def compose(
    request: "np.ndarray", context: "np.ndarray | None" = None, output: "np.ndarray | None" = None
) -> "np.ndarray":
    """Returns the unit vector of a request [d], the passages [n, d] of its context and those [m, d] of its output.

    Missing parts are left out.
    """
    total = REQUEST_WEIGHT * unit(request)
    if context is not None and len(context):
        total = total + CONTEXT_WEIGHT * unit(attention(unit(request), context) @ context)
    if output is not None and len(output):
        total = total + OUTPUT_WEIGHT * unit(output.mean(0))
    return unit(total)
