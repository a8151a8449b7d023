"""How a flow writer reads the structure of an utterance: by the rules, by a trained tagger, or by a blend of both.

The blend takes the tagger's reading where its tags score above those of the rules by more than a margin, for each word.
The margin is learnt from flows that the tagger did not see: the one at which the blend gives the structure of most of
them, and none at all where the rules alone are as good.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opus_pipelines.core.errors import InputError, OpusError
from opus_pipelines.flows.from_text.flow_folder import FlowTask
from opus_pipelines.flows.from_text.generator import FlowWriter
from opus_pipelines.flows.learning.structure_examples import generated, known_sentences, structure_of
from opus_pipelines.flows.learning.structure_tagger import StructureTagger, fit_tagger
from opus_pipelines.flows.learning.structure_tags import clauses_from, tags_of
from opus_pipelines.flows.text.clauses import Clause, sentences_of

RULES, TAGGER, BLEND = "rules", "tagger", "blend"
STRUCTURES = (RULES, TAGGER, BLEND)
GENERATED = 1_500  # sentences
SEED = 31
REPEATED = 3  # times that a sentence of a known flow counts; a generated one counts once
FOLDS = 3  # of the flows from which the margin is learnt
Reader = Callable[[str], list[Clause]]


def with_structure(
    writer: FlowWriter, tasks: Sequence[FlowTask], structure: str, sentences: int = GENERATED
) -> FlowWriter:
    """Returns the writer with the reader of structure that is named. `tasks` are flows to learn from, or none;
    `sentences` are generated beside them.

    Raises InputError for a name that is not in `STRUCTURES`.
    """
    if structure not in STRUCTURES:
        raise InputError(f"there is no structure {structure!r}; there are: {', '.join(STRUCTURES)}")
    if structure == RULES:
        return writer
    known = [task for task in tasks if task.expected is not None and not task.is_update]
    tagger = trained(writer, known, sentences)
    if structure == TAGGER:
        return writer.with_reader(reader_of(writer, tagger))
    return writer.with_reader(blended(writer, tagger, learnt_margin(writer, known, sentences)))


def trained(writer: FlowWriter, tasks: Sequence[FlowTask], sentences: int = GENERATED) -> StructureTagger:
    """Returns a tagger that learnt from the catalogue and the tasks, whose unread flows it tries to read itself."""
    names = writer.ranker.table.names
    made = [(one, 1) for one in generated(writer.catalogue, sentences, SEED)]
    rules = known_sentences(tasks, writer, [names.clauses])
    first = fit_tagger([*made, *((one, REPEATED) for one in rules)], names.spoken)
    read = known_sentences(tasks, writer, [names.clauses, reader_of(writer, first)])
    if len(read) == len(rules):
        return first
    return fit_tagger([*made, *((one, REPEATED) for one in read)], names.spoken)


def reader_of(writer: FlowWriter, tagger: StructureTagger) -> Reader:
    """Returns the reader of clauses by a tagger."""
    spoken = writer.ranker.table.names.spoken
    return lambda text: clauses_from([tagger.tagged(words) for words in sentences_of(text, spoken)])


def blended(writer: FlowWriter, tagger: StructureTagger, margin: float) -> Reader:
    """Returns the reader that takes the tagger's clauses above the margin, and those of the rules otherwise."""
    tags, names = reader_of(writer, tagger), writer.ranker.table.names

    def read(text: str) -> list[Clause]:
        clauses = names.clauses(text)
        return tags(text) if doubt(writer, tagger, text, clauses) > margin else clauses

    return read


def doubt(writer: FlowWriter, tagger: StructureTagger, text: str, clauses: Sequence[Clause]) -> float:
    """Returns by how much the tagger scores its own tags above those of clauses, at most over the sentences.

    Clauses that no tags can say, because their words stand in another order, are not doubted: 0.
    """
    found = 0.0
    for number, words in enumerate(sentences_of(text, writer.ranker.table.names.spoken)):
        tagged = tags_of(words, [clause for clause in clauses if clause.sentence == number])
        if tagged is not None:
            found = max(found, tagger.margin(words, tagged.tags))
    return found


@dataclass(frozen=True)
class _Compared:
    """Whether each reading of a flow gives its structure, and the doubt of the rules' reading."""

    doubt: float
    by_rules: bool
    by_tagger: bool


def learnt_margin(writer: FlowWriter, tasks: Sequence[FlowTask], sentences: int = GENERATED) -> float:
    """Returns the margin of the blend, learnt with taggers that did not see the flows; infinite for the rules alone."""
    found: list[_Compared] = []
    for fold in range(FOLDS):
        asked = [task for n, task in enumerate(tasks) if n % FOLDS == fold]
        tagger = trained(writer, [task for n, task in enumerate(tasks) if n % FOLDS != fold], sentences)
        found += [_compared(writer, tagger, task) for task in asked]
    return best_margin([(one.doubt, int(one.by_tagger) - int(one.by_rules)) for one in found])


def best_margin(gains: Sequence[tuple[float, int]]) -> float:
    """Returns the margin with the highest sum of gains above it; infinite where no sum is above 0.

    A gain is 1 for a flow that the tagger alone reads right, -1 for one that the rules alone do, at its doubt. Of equal
    sums the largest margin is taken, which changes least.
    """
    best, margin, total = 0, math.inf, 0
    ordered = sorted(gains, reverse=True)
    for place, (own, gain) in enumerate(ordered):
        total += gain
        below = ordered[place + 1][0] if place + 1 < len(ordered) else 0.0
        if total > best and below < own:
            best, margin = total, (own + below) / 2
    return margin


def _compared(writer: FlowWriter, tagger: StructureTagger, task: FlowTask) -> _Compared:
    rules = writer.ranker.table.names.clauses
    own = doubt(writer, tagger, task.utterance, rules(task.utterance))
    return _Compared(own, fits(task, writer, rules), fits(task, writer, reader_of(writer, tagger)))


def fits(task: FlowTask, writer: FlowWriter, reader: Reader) -> bool:
    """Tells whether the flow of a reading has the structure of the known flow."""
    try:
        flow = writer.written(task.utterance, reader(task.utterance)).flow
    except OpusError:
        return False
    return task.expected is not None and structure_of(flow) == structure_of(task.expected)
