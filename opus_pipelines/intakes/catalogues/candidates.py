"""Which tools of a large catalogue come into question for a text: those that share rare words with it."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from opus_pipelines.intakes.catalogues.declared import Catalogue, DeclaredTask
from opus_pipelines.intakes.procedures.name_coverage import words

MOST_COMPARED = 400  # tools that are compared by vector; a catalogue of up to so many is taken whole
OF_A_TEXT = 40  # tools that come into question for one text
NAME_WEIGHT = 2.0  # of a word of the name, relative to one of the description


class Candidates:
    """An inverted index from words to tools, weighted by the rarity of the words among the tools."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._tasks = catalogue.tasks
        self._tools_of: dict[str, list[tuple[int, float]]] = defaultdict(list)
        if len(self._tasks) > MOST_COMPARED:
            self._index()

    def of(self, texts: Iterable[str]) -> Sequence[DeclaredTask]:
        """Returns the tools that come into question for the texts, at most MOST, in the order of the catalogue."""
        if len(self._tasks) <= MOST_COMPARED:
            return self._tasks
        best: dict[int, float] = defaultdict(float)
        for text in dict.fromkeys(texts):
            scores: dict[int, float] = defaultdict(float)
            for word in sorted(words(text)):
                for tool, weight in self._tools_of.get(word, ()):
                    scores[tool] += weight
            for tool, score in sorted(scores.items(), key=lambda s: (-s[1], s[0]))[:OF_A_TEXT]:
                best[tool] = max(best[tool], score)
        kept = sorted(sorted(best, key=lambda tool: (-best[tool], tool))[:MOST_COMPARED])
        return [self._tasks[tool] for tool in kept]

    def _index(self) -> None:
        each = [(words(task.name), words(task.description or "")) for task in self._tasks]
        times = Counter(word for name, text in each for word in name | text)
        for tool, (name, text) in enumerate(each):
            length = math.sqrt(len(name | text) or 1)
            for word in sorted(name | text):
                rarity = math.log((len(each) + 1) / (times[word] + 0.5))
                weight = (NAME_WEIGHT * (word in name) + (word in text)) * rarity / length
                self._tools_of[word].append((tool, weight))
