"""Reads an intake with its contract's catalogue, for an industry without history.

What decides, in this order: a procedure that lists the tools with their conditions, any other procedure together with
the request (`language.reading.reader`), conditions that the catalogue itself lists under its tools, and the request
alone.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.intakes.procedures.list_reading import read_listed_steps, read_steps_of_list
from opus_pipelines.intakes.procedures.listed_steps import lists_steps
from opus_pipelines.intakes.procedures.models import StepKnowledge
from opus_pipelines.intakes.procedures.names import words
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep, texts_to_embed
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.texts import Part
from opus_pipelines.language.reading.alignment import Candidate, Encode
from opus_pipelines.language.reading.reader import Reading, read, texts_of
from opus_pipelines.language.reading.second_reader import SecondReader

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


@dataclass(frozen=True)
class IntakeTexts:
    """What an intake says: the request, and its procedures as parts and as texts; `second` reads the texts, too."""

    request: RequestText
    parts: Sequence[Part]
    procedures: Sequence[str]
    second: SecondReader | None = None


def texts_to_read(texts: IntakeTexts, tools: Sequence[DeclaredTask], knowledge: StepKnowledge) -> list[str]:
    """Returns every text whose vector `read_with_catalogue` may ask for, sorted.

    A procedure that lists tools is read as a list alone, and any other one by its sentences.
    """
    conditions = [tool.part for tool in tools]
    if lists_steps(with_declared(texts.parts, tools), knowledge.verbs):
        return texts_to_embed([*texts.parts, *conditions])
    listed = texts_to_embed(conditions) if any(part.sentences for part in conditions) else ()
    return sorted({*listed, *texts_of(texts.procedures, texts.request.text, _candidates(tools))})


def with_declared(parts: Sequence[Part], tools: Sequence[DeclaredTask]) -> list[Part]:
    """Returns the parts, and a part for each tool that is no heading of theirs."""
    headings = {part.name for part in parts}
    return [*parts, *(tool.part for tool in tools if tool.plain not in headings)]


def read_with_catalogue(
    texts: IntakeTexts, tools: Sequence[DeclaredTask], industry: str | None, knowledge: StepKnowledge, encode: Encode
) -> ParsedProcedure | None:
    """Returns the steps that an intake asks for; None where it asks for no tool.

    Their ids are those of new steps of the industry, until the catalogue names them (`ResolvedCatalogue.named`).
    """
    listed = read_listed_steps(texts.request, with_declared(texts.parts, tools), industry, knowledge, encode)
    if listed is not None:
        return listed
    reading = read(texts.procedures, texts.request.text, _candidates(tools), encode, texts.second)
    if any(not task.is_of_request for task in reading.tasks):
        return _parsed(reading, tools)
    conditions = [replace(tool.part, is_declared=False) for tool in tools]
    if any(part.sentences for part in conditions):
        return read_steps_of_list(texts.request, conditions, industry, knowledge, encode)
    return _parsed(reading, tools)


def _candidates(tools: Sequence[DeclaredTask]) -> list[Candidate]:
    return [Candidate(tool.name, tool.summary, tool.inputs, tool.outputs) for tool in tools]


def _parsed(reading: Reading, tools: Sequence[DeclaredTask]) -> ParsedProcedure | None:
    """Returns a reading as steps under passing ids, which `ResolvedCatalogue.named` replaces."""
    if not reading.tasks:
        return None
    steps = [
        ProcedureStep(
            make_id("t", "tool", tool.plain),
            tool.name,
            asked.sentence,
            asked.probability,
            True,
            tuple(s.text for s in tool.part.sentences),
        )
        for asked in reading.tasks
        if (tool := tools[asked.candidate])
    ]
    is_of_request = all(asked.is_of_request for asked in reading.tasks)
    share = 1.0 if is_of_request else reading.explained_share
    return ParsedProcedure("", tuple(steps), share, 0.0, is_of_request, reading.sentences, reading.doubts)
