"""Texts of names as vectors: which are near each other, by FAISS, and how near."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from opus_pipelines.embedding.encoder import TextEncoder
from opus_pipelines.embedding.index import VectorIndex

if TYPE_CHECKING:
    import numpy as np

NEIGHBOURS = 32  # of a text that are looked at
DECIMALS = 4  # vectors agree to 1e-6 whatever else was in their batch; decisions must not hang on the rest


class Space:
    """Texts by the number of their name, and their vectors; an empty text has none. Encodes when first asked."""

    def __init__(self, texts: Sequence[str], encoder: Callable[[], TextEncoder]) -> None:
        self.texts = texts
        self._encoder = encoder

    def near(self, names: Iterable[int], threshold: float) -> Iterator[tuple[int, int]]:
        """Pairs of these names whose texts are equal or near, the lesser first; of a text its nearest alone are looked at."""
        import numpy as np

        holders: dict[str, list[int]] = defaultdict(list)
        for i in names:
            if self.texts[i]:
                holders[self.texts[i]].append(i)
        texts = sorted(holders)
        if sum(map(len, holders.values())) < 2:
            return
        vectors = np.stack([self._vectors[text] for text in texts])
        for text, hits in zip(texts, VectorIndex.build(texts, vectors).search(vectors, NEIGHBOURS), strict=True):
            near = [i for hit, similarity in hits if round(similarity, DECIMALS) >= threshold for i in holders[hit]]
            yield from ((min(i, j), max(i, j)) for i in holders[text] for j in near if i != j)

    def cosine(self, one: int, other: int) -> float:
        """Of two names' texts, at most 1."""
        return min(1.0, round(float(self._vectors[self.texts[one]] @ self._vectors[self.texts[other]]), DECIMALS))

    @cached_property
    def _vectors(self) -> "dict[str, np.ndarray]":
        texts = sorted({text for text in self.texts if text})
        return dict(zip(texts, self._encoder().encode(texts), strict=True))
