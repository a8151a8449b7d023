"""Reads an intake with its contract's catalogue, for an industry without history.

A sentence that names a tool asks for it. Any other sentence of a procedure asks for the tool that fits it best by the
cosines of its name and its description and by shared words, where the fit is good enough. A request is one wish in
several sentences: each tool is compared with the whole and with its best clause. The weights are this project's own.

What decides, in this order: a procedure that lists steps, a procedure in prose, conditions that the catalogue itself
lists under its tools, and the request alone.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opus_pipelines.core.ids import make_id
from opus_pipelines.intakes.catalogues.entries import Catalogue, DeclaredTask
from opus_pipelines.intakes.catalogues.statements import Statement, prose_sentences, statements_of
from opus_pipelines.intakes.procedures.list_reading import read_listed_steps, read_steps_of_list
from opus_pipelines.intakes.procedures.listed_steps import Encode
from opus_pipelines.intakes.procedures.models import StepKnowledge
from opus_pipelines.intakes.procedures.names import NameCoverage, words
from opus_pipelines.intakes.procedures.reading import LIKELY, ParsedProcedure, ProcedureStep, clauses, texts_to_embed
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.texts import Part, plain
from opus_pipelines.language.word_stems import stems, within

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


DESCRIPTION_WEIGHT = 0.5  # of the cosine with a description, relative to that with a name
SHARED_WEIGHT = 0.3  # of the share of the name's words that a text has
COVERED_WEIGHT = 0.3  # of the share of a text's words that name and description have
CLAUSE_WEIGHT = 0.5  # of the best clause of a request, relative to the whole request
FIT, SOFTNESS = 0.75, 0.1  # score at which a tool fits a sentence with probability 1/2, and how fast that changes
BEHIND = 0.4  # score behind the best tool, from which a request does not ask for a tool
LEAST_OF_REQUEST = 2  # tools that a request may ask for although it has one clause only
_WORD = re.compile(r"[^\W_]+")
_NEGATIVE = re.compile(r"\b(not|never|no longer|cannot|instead of|rather than)\b|n't\b", re.IGNORECASE)
_MARKED = re.compile(r"[`'\"«“]([^`'\"»”]+)[`'\"»”]|(\w+)\(")


def request_clauses(text: str) -> list[str]:
    """Returns the clauses of all sentences of prose; a sentence of one clause is one."""
    return [clause for sentence in prose_sentences(text) for clause in (clauses(sentence) or [sentence])]


def tool_texts(tools: Sequence[DeclaredTask]) -> list[str]:
    """Returns every text of tools whose vector reading with them may need."""
    texts = {t for tool in tools for t in (tool.plain, tool.summary)}
    return sorted({*texts, *texts_to_embed([tool.part for tool in tools])} - {""})


def named_tools(sentence: str, tools: Mapping[str, DeclaredTask]) -> list[DeclaredTask]:
    """Returns the tools that a sentence names, in its order; `tools` are by name in plain words.

    Of names that overlap, the longest counts. A name of one word counts only where the sentence marks it as a name, by
    quotes or by a bracket behind it: "file" is a word of any procedure.
    """
    words = plain(sentence).split()
    longest = max((len(name.split()) for name in tools), default=0)
    marked = {plain(match[1] or match[2]) for match in _MARKED.finditer(sentence)}
    found: dict[str, DeclaredTask] = {}
    at = 0
    while at < len(words):
        for size in range(min(longest, len(words) - at), 0, -1):
            name = " ".join(words[at : at + size])
            if name in tools and (size > 1 or name in marked):
                found.setdefault(name, tools[name])
                at += size
                break
        else:
            at += 1
    return list(found.values())


@dataclass(frozen=True)
class Tools:
    """Tools with the vectors [tools, d] of their names and of what they do; without a description, of the name."""

    tools: Sequence[DeclaredTask]
    names: np.ndarray
    summaries: np.ndarray
    coverage: NameCoverage

    @classmethod
    def of(cls, tools: Sequence[DeclaredTask], encode: Encode) -> "Tools":
        """Returns the tools with their vectors; there is at least one."""
        names = [tool.plain for tool in tools]
        texts = [f"{tool.plain} {tool.summary}" for tool in tools]  # the rarity of words is that of the catalogue
        coverage = NameCoverage(texts, np.zeros((0, 0)))
        return cls(tools, encode(names), encode([tool.summary or tool.plain for tool in tools]), coverage)

    def scores(self, texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        """Returns how well each tool fits each text [texts, tools]; `vectors` [texts, d] have unit length."""
        shared = self.coverage.shares(texts, [tool.plain for tool in self.tools])
        covered = self.coverage.covered(texts, [f"{tool.plain} {tool.summary}" for tool in self.tools])
        return np.asarray(self.cosines(vectors) + SHARED_WEIGHT * shared + COVERED_WEIGHT * covered)

    def cosines(self, vectors: np.ndarray) -> np.ndarray:
        """Returns the weighted cosines of name and description with each text [texts, tools]."""
        return np.asarray(vectors @ self.names.T + DESCRIPTION_WEIGHT * (vectors @ self.summaries.T))


def read_prose(text: str, tools: Sequence[DeclaredTask], encode: Encode) -> ParsedProcedure | None:
    """Returns the steps that the sentences of a procedure in prose ask for, in their order; None where there are none.

    `explained_share` of the result is the share of the sentences that ask for a tool.
    """
    sentences = prose_sentences(text)
    if not sentences or not tools:
        return None
    candidates, by_name = Tools.of(tools, encode), {tool.plain: tool for tool in tools}
    steps: dict[str, ProcedureStep] = {}
    explained = 0
    not_meant = _not_meant(sentences, candidates.tools)
    for sentence in sentences:
        asked = _asked(sentence, candidates, by_name, not_meant, encode)
        explained += bool(asked)
        of_sentence = [_step(tool, text, chance) for tool, text, chance in asked]
        for step in by_data_flow(of_sentence, by_name):
            if step.task_id in steps and step.probability == 1 > steps[step.task_id].probability:
                del steps[step.task_id]  # the clause before only fitted it: its place is where it is named
            steps.setdefault(step.task_id, step)
    if not steps:
        return None
    return ParsedProcedure("", tuple(steps.values()), explained / len(sentences), 0.0)


def prose_texts(text: str) -> set[str]:
    """Returns every text of a procedure in prose whose vector `read_prose` may ask for."""
    sentences = prose_sentences(text)
    return {*sentences, *(s.full for sentence in sentences for s in _compared(sentence) if s.asks)}


def _compared(sentence: str) -> list[Statement]:
    """Returns the clauses of a sentence that may ask for a step or name one."""
    return [statement for statement in statements_of(sentence) if statement.asks or statement.may_name]


def _asked(
    sentence: str, candidates: Tools, by_name: Mapping[str, DeclaredTask], not_meant: Collection[str], encode: Encode
) -> list[tuple[DeclaredTask, str, float]]:
    """Returns the tools that one sentence asks for, each with its clause and its probability, in the order of these.

    No clause asks for a tool of `not_meant`, by its name in plain words, because it fits it.
    """
    compared = _compared(sentence)
    texts = [statement.full for statement in compared]
    if not texts:
        return []
    found: dict[str, tuple[DeclaredTask, str, float]] = {}
    named = [named_tools(text, by_name) for text in texts]
    # What else a sentence says that names a tool is seldom a step: "call `send_mail` to tell him, and say why".
    asking = [] if any(named) else [statement.full for statement in compared if statement.asks]
    fits_of = dict(zip(asking, _fitting(asking, candidates, not_meant, encode), strict=True)) if asking else {}
    fitting = [fits_of.get(text, []) for text in texts]
    for statement, tools, fits in zip(compared, named, fitting, strict=True):
        text, sure = statement.full, LIKELY if statement.is_fact else 1.0
        meant = tools or _with_all_words(text, candidates.tools)
        for tool, chance in [(tool, sure) for tool in meant] or fits:
            found.setdefault(tool.plain, (tool, text, chance))
    return list(found.values())


def _not_meant(sentences: Sequence[str], tools: Sequence[DeclaredTask]) -> frozenset[str]:
    """Returns the tools that clauses name which forbid something, or hold only otherwise."""
    told = [s.full for sentence in sentences for s in statements_of(sentence) if s.is_negative or s.is_alternative]
    return frozenset(tool.plain for text in told for tool in _with_all_words(text, tools))


def _fitting(
    texts: Sequence[str], candidates: Tools, not_meant: Collection[str], encode: Encode
) -> list[list[tuple[DeclaredTask, float]]]:
    """Returns for each text the tool that fits it best, with its probability, where that is likely."""
    chances = (1 / (1 + np.exp(-(candidates.scores(texts, encode(texts)) - FIT) / SOFTNESS))).round(6)
    chances[:, [tool.plain in not_meant for tool in candidates.tools]] = 0.0
    best = chances.argmax(1)
    return [
        [(candidates.tools[int(n)], float(row[n]))] if row[n] >= LIKELY else []
        for n, row in zip(best, chances, strict=True)
    ]


def _with_all_words(text: str, tools: Sequence[DeclaredTask]) -> list[DeclaredTask]:
    """Returns the tool of whose name a clause has all words, in any form; none where several names are the longest.

    "The animal is weighed" has those of "weigh animal". A name of one word is too common to say that the tool is meant.
    """
    present = stems(text)
    names = {tool.plain: stems(tool.plain) for tool in tools}
    fitting = [tool for tool in tools if len(names[tool.plain]) > 1 and within(names[tool.plain], present)]
    most = max((len(names[tool.plain]) for tool in fitting), default=0)
    longest = [tool for tool in fitting if len(names[tool.plain]) == most]
    return longest if len(longest) == 1 else []


def read_request(text: str, tools: Sequence[DeclaredTask], encode: Encode) -> ParsedProcedure | None:
    """Returns the tools that a request without a procedure asks for; None where there are no tools.

    They are in the order of the clauses that fit them best, and what one gives another comes before that one. A request
    asks for at most as many tools as it has clauses (and for two where it has one), of those whose score is not far
    behind the best.
    """
    asked = request_clauses(text) or [text.strip()]
    if not asked[0] or not tools:
        return None
    by_name = {tool.plain: tool for tool in tools}
    named = [tool for clause in asked if not _NEGATIVE.search(clause) for tool in named_tools(clause, by_name)]
    candidates = Tools.of(tools, encode)
    of_clauses = candidates.scores(asked, encode(asked))
    scores = (candidates.cosines(encode([text]))[0] + CLAUSE_WEIGHT * of_clauses.max(0)).round(6)
    order = [int(n) for n in np.argsort(-scores, kind="stable")]
    place = {tool.plain: n for n, tool in enumerate(tools)}
    chosen = list(dict.fromkeys(place[tool.plain] for tool in named))
    most = max(len(asked), LEAST_OF_REQUEST)
    if not chosen:
        chosen = [n for n in order[:most] if scores[n] > scores[order[0]] - BEHIND]
        chosen.sort(key=lambda n: (int(of_clauses[:, n].round(6).argmax()), -float(scores[n])))
    each = of_clauses[:, chosen].argmax(0)
    chance = np.exp((scores[chosen] - scores[order[0]]) / BEHIND)
    steps = [_step(tools[n], asked[int(at)], float(min(1.0, p))) for n, at, p in zip(chosen, each, chance, strict=True)]
    return ParsedProcedure("", tuple(by_data_flow(steps, by_name)), 1.0, 0.0, is_of_request=True)


def by_data_flow(steps: Sequence[ProcedureStep], tools: Mapping[str, DeclaredTask]) -> list[ProcedureStep]:
    """Returns the steps so that what one gives comes before the step that takes it; else their order stays.

    Inputs and outputs are the same where they are the same words. Steps that wait for each other keep their order.
    """
    takes, gives = ({}, {})  # type: tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]
    for step in steps:
        tool = tools.get(plain(step.name))
        takes[step.task_id] = frozenset(map(plain, tool.inputs)) if tool else frozenset()
        gives[step.task_id] = frozenset(map(plain, tool.outputs)) if tool else frozenset()
    waiting, ordered = list(steps), []
    while waiting:
        first = next(
            (
                step
                for step in waiting
                if not any(
                    gives[o.task_id] & takes[step.task_id] - gives[step.task_id] for o in waiting if o is not step
                )
            ),
            waiting[0],
        )
        ordered.append(first)
        waiting.remove(first)
    return ordered


def _step(tool: DeclaredTask, sentence: str, probability: float) -> ProcedureStep:
    """Returns a step under a passing id, which `ResolvedCatalogue.named` replaces."""
    instructions = tuple(s.text for s in tool.part.sentences)
    return ProcedureStep(make_id("t", "tool", tool.plain), tool.name, sentence, probability, True, instructions)


EXPLAINED_SHARE = 0.3  # least share of the sentences of prose that ask for a tool where the prose decides


@dataclass(frozen=True)
class IntakeTexts:
    """What an intake says: the request, and its procedures as parts and as text."""

    request: RequestText
    parts: Sequence[Part]
    procedure: str


def texts_to_read(request: str, parts: Sequence[Part], procedure: str, tools: Sequence[DeclaredTask]) -> list[str]:
    """Returns every text whose vector `read_with_catalogue` may ask for, sorted."""
    texts = {*texts_to_embed(parts), *tool_texts(tools), *prose_texts(procedure)}
    return sorted({*texts, *request_clauses(request), request, request.strip()} - {""})


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
    whole = with_declared(texts.parts, tools)
    listed = read_listed_steps(texts.request, whole, industry, knowledge, encode)
    if listed is not None:
        return listed
    prose = read_prose(texts.procedure, tools, encode)
    if prose is not None and (
        prose.explained_share >= EXPLAINED_SHARE or any(step.probability == 1 for step in prose.steps)
    ):
        return prose  # sentences enough mean a tool, or one of them names it
    conditions = [replace(tool.part, is_declared=False) for tool in tools]
    if any(part.sentences for part in conditions):
        return read_steps_of_list(texts.request, conditions, industry, knowledge, encode)
    return read_request(texts.request.text, tools, encode)
