"""What is said of tasks, as evidence that two names are one task: a statement that both have and no other task of their sources.

Nearness of texts proves little. Measured with the shipped encoder, eight sentences and their paraphrases are at .44 to .71, six sentences
and their opposites ("release the goods to the carrier", "take the goods over from the carrier") at .67 to .92.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from opus_pipelines.wkg.resolution.nodes import normalise

TELLING = 5  # words from which a statement tells tasks apart; what a program fills in, {{ ... }}, is none
INSTRUCTIONS = 4  # most frequent ones that are looked at
Counts = Mapping[tuple[int, str], Counter[str]]  # (name, field) → how often each value is said


class Said:
    """Of every name, by its number: description, instructions, and the statements that no other name of its sources has."""

    def __init__(self, counts: Counts, sources: Sequence[set[str]]) -> None:
        none: Counter[str] = Counter()
        self._sources = sources
        self._description = [next(iter(_most(counts.get((i, "description"), none), 1)), "") for i in range(len(sources))]
        told = [_most(counts.get((i, "instruction"), none), INSTRUCTIONS) for i in range(len(sources))]
        said = [[text for text in (one, *more) if text] for one, more in zip(self._description, told, strict=True)]
        telling = [{normalise(text) for text in texts if _letters(text) >= TELLING} for texts in said]
        holders = Counter((source, text) for i, texts in enumerate(telling) for text in texts for source in sources[i])
        self.statements = [{t for t in texts if all(holders[s, t] == 1 for s in sources[i])} for i, texts in enumerate(telling)]
        self.texts = ["\n".join(texts) if own else "" for texts, own in zip(said, self.statements, strict=True)]

    def comparable(self, one: int, other: int) -> bool:
        """Is there something told of both, by different sources? Within one source, texts are copied from task to task."""
        return bool(self.texts[one] and self.texts[other]) and not self._sources[one] & self._sources[other]

    def same(self, one: int, other: int) -> bool:
        """Do they share a telling statement, and no description speaks against it?"""
        described = normalise(self._description[one]), normalise(self._description[other])
        return bool(self.statements[one] & self.statements[other]) and (not all(described) or described[0] == described[1])


def said_of(rows: Iterable[tuple[str, dict]], number: Mapping[tuple[str, str | None, str], int], sources: Sequence[set[str]]) -> Said:
    """From the sources' `said` tables; `number` is each raw key's name."""
    counts: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    for source, row in rows:
        counts[number[source, row["industry"], row["task_key"]], row["field"]][row["value"].strip()] += row["count"]
    return Said(counts, sources)


def rows_of(evidence: Mapping[str, Mapping[str, pa.Table]], table: str) -> Iterable[tuple[str, dict]]:
    """(source, row) of one kind of evidence of all sources, in order."""
    for source, tables in sorted(evidence.items()):
        for row in tables[table].to_pylist():
            yield source, row


def _most(counts: Counter[str], limit: int) -> list[str]:
    return sorted(counts, key=lambda value: (-counts[value], value))[:limit]


def _letters(text: str) -> int:
    """How many words of letters a text has, without its templates' expressions."""
    words = normalise(re.sub(r"\{\{.*?\}\}", " ", text)).split()
    return sum(word.isalpha() and len(word) > 1 for word in words)
