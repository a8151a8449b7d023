"""The controls beside any writer of flows: the flow of the nearest known requirement, and the most frequent flow."""

import math
from collections import Counter
from collections.abc import Sequence

from opus_pipelines.flows.enterprise.documents import FlowDocument
from opus_pipelines.flows.enterprise.world.flow_script import write
from opus_pipelines.language.word_stems import stems

Known = Sequence[tuple[str, FlowDocument]]


class NearestFlow:
    """The flow of the known requirement whose words are most alike (cosine of TF-IDF over stems)."""

    name = "nearest requirement"

    def __init__(self, known: Known) -> None:
        """Takes requirements with their flows; at least one."""
        self._known = known
        spread = Counter(s for text, _ in known for s in stems(text))
        self._rarity = {s: math.log((1 + len(known)) / (1 + n)) + 1 for s, n in spread.items()}
        self._vectors = [self._vector(text) for text, _ in known]

    def _vector(self, text: str) -> dict[str, float]:
        weights = {s: self._rarity.get(s, 0.0) for s in stems(text)}
        length = math.sqrt(sum(w * w for w in weights.values())) or 1.0
        return {s: w / length for s, w in weights.items()}

    def nearest(self, requirement: str, count: int = 1) -> list[int]:
        """Returns the places of the most similar requirements, the nearest first."""
        own = self._vector(requirement)
        scores = [sum(w * other.get(s, 0.0) for s, w in own.items()) for other in self._vectors]
        return sorted(range(len(scores)), key=lambda n: (-scores[n], n))[:count]

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the flow of the nearest requirement."""
        return self._known[self.nearest(requirement)[0]][1]


class MostFrequentFlow:
    """The same flow for every requirement: the most frequent outline of the known ones, the first of equal ones."""

    name = "most frequent flow"

    def __init__(self, known: Known) -> None:
        """Takes requirements with their flows; at least one."""
        shapes = [tuple(line.split()[0] for line in write(flow).splitlines()[1:]) for _, flow in known]
        count = Counter(shapes)
        best = max(count.values())
        self._flow = known[next(n for n, shape in enumerate(shapes) if count[shape] == best)][1]

    def flow(self, requirement: str) -> FlowDocument:
        """Returns the most frequent flow."""
        return self._flow
