"""Reads documents together with a request: what each sentence says, and which candidate tasks the request needs.

Sections that describe (purpose, scope, definitions) ask for nothing. Where the text marks names of tasks, only marked
names count. Sections that are alternatives (they repeat each other's sentences, begin with the same task, or are called
cases) are a menu: the request decides which of them apply, by what it asks for and by its vector. What is forbidden is
no step. A verb of a task's name in a request asks for that task. The rules are this project's own; what each of them
brings is told in `benchmarks/results/reading-texts.md`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.grammar.figures import NUMBER, TOKEN, figure_of, hours, with_tokens
from opus_pipelines.language.grammar.modality import is_imperative, is_participle
from opus_pipelines.language.reading.alignment import LEAST_NAME, LIKELY, Alignment, Candidate, Encode, texts_to_encode
from opus_pipelines.language.reading.languages import ENGLISH, Language, content_stems, language_of, tables_of
from opus_pipelines.language.reading.passages import (
    ASKING,
    Passage,
    SentenceKind,
    clauses_in,
    passages_of,
    sentences,
)
from opus_pipelines.language.reading.second_reader import (
    AGREED,
    ALONE,
    Said,
    SecondReader,
    SecondReading,
    combined,
    doubts,
)

Section = tuple[str, ...]

LEAST_DENYING = 4  # words of a clause that may deny; "since May" and "in that case" are shorter
LEAST_COMPARED = 3  # words of a clause that is compared with tasks
FIRST = 0.8  # share of a task's highest probability from which a sentence is the first that asks for it
LEAST_MARKED = 2  # tasks whose names a text marks, from which unmarked names do not count
REPEATED = 0.8  # cosine from which two sentences say the same
LEAST_REPEATED = 0.3  # share of such sentences among sections from which they are alternatives
LEAST_RECURRING, LEAST_SAME_START, LEAST_CASES = 0.4, 0.6, 3  # shares of tasks and beginnings, number of sections
LEAST_NAMED_CASES = 0.5  # share of headings that are called cases
HEADING_WEIGHT = 0.6  # of a section's heading in its similarity to the request
NEAREST = 3  # sentences of a section that are compared with the request
ALIKE = 0.03  # of the similarity of sections, within which both apply
BEHIND = 0.35  # score behind the best task, from which a request without documents does not ask for a task
SURE = 0.9  # probability from which a clause of such a request asks for a task, however far behind it is
LEAST_OF_REQUEST = 2  # tasks that such a request may ask for although it has one clause only
RARE_WEIGHT = 0.3  # of the words that few names have, where a clause chooses between tasks with the same verb


@dataclass(frozen=True)
class SentenceReading:
    """What one sentence says.

    Attributes:
        passage: its words and its place.
        kind: what it does; "none" where it asks for nothing.
        tasks: the candidates that it means, likeliest first.
        probability: of the likeliest task; 0 without one.
        is_background: whether it stands in a section that describes.
        applies: whether its section is for this request.
        condition: the words under which it holds; "" where it has none.
    """

    passage: Passage
    kind: SentenceKind
    tasks: tuple[int, ...]
    probability: float
    is_background: bool
    applies: bool
    condition: str = ""

    @property
    def asks(self) -> bool:
        """Whether it asks the people of this request for something."""
        return self.applies and self.kind in ASKING


@dataclass(frozen=True)
class AskedTask:
    """A candidate that the request needs: which sentence asks for it, and how likely it does."""

    candidate: int
    sentence: str
    probability: float
    is_of_request: bool = False


@dataclass(frozen=True)
class Reading:
    """The sentences of the documents in order, and the tasks in the order in which they are to be done.

    `doubts`: what a second reader did not read, or reads differently.
    """

    sentences: tuple[SentenceReading, ...]
    tasks: tuple[AskedTask, ...]
    doubts: tuple[str, ...] = ()

    @property
    def explained_share(self) -> float:
        """The share of the sentences that apply and ask for something that mean a task."""
        asking = [s for s in self.sentences if s.asks]
        return sum(bool(s.tasks) for s in asking) / max(1, len(asking))


def read(
    documents: Sequence[str],
    request: str,
    candidates: Sequence[Candidate],
    encode: Encode,
    second: SecondReader | None = None,
) -> Reading:
    """Returns the reading of documents and a request; there is at least one candidate.

    `encode` returns the unit vectors [n, d] of n texts; `texts_of` names them all. What `second` says of a sentence
    decides.
    """
    return _Reader(tuple(documents), request, candidates, encode, second).reading()


def texts_of(documents: Sequence[str], request: str, candidates: Sequence[Candidate]) -> list[str]:
    """Returns every text whose vector `read` may ask for, sorted."""
    code, passages = _language(documents, request), passages_of(tuple(documents))
    background = _background(passages, tables_of(code))
    texts = {text for passage, of in zip(passages, background, strict=True) if not of for text in _texts(passage)}
    texts |= {*sentences(request), *_clauses_of(request), request.strip()} - {""}
    return sorted(texts_to_encode(sorted(texts), candidates, code))


def by_data_flow(tasks: Sequence[int], candidates: Sequence[Candidate]) -> list[int]:
    """Returns the tasks so that what one gives comes before the task that takes it; else their order stays.

    Inputs and outputs are the same where they are the same words. Tasks that wait for each other keep their order.
    """
    takes = {n: frozenset(map(plain, candidates[n].inputs)) for n in tasks}
    gives = {n: frozenset(map(plain, candidates[n].outputs)) for n in tasks}
    waiting, ordered = list(tasks), []
    while waiting:
        free = (n for n in waiting if not any(gives[o] & takes[n] - gives[n] for o in waiting if o != n))
        ordered.append(next(free, waiting[0]))
        waiting.remove(ordered[-1])
    return ordered


def _clauses_of(text: str) -> list[str]:
    return [clause for sentence in sentences(text) for clause in (clauses_in(sentence) or (sentence,))]


def _language(documents: Sequence[str], request: str) -> str:
    return language_of("\n".join(documents) or request)


def _describes(section: Section, language: Language) -> bool:
    """Tells whether the heading of a section says that it describes; the text before the first heading does not."""
    return bool(section) and language.has("background", section[-1])


def _background(passages: Sequence[Passage], language: Language) -> np.ndarray:
    """Returns whether each passage stands in a section that describes; none does where all do."""
    found = np.array([_describes(passage.own_section, language) for passage in passages], bool)
    return np.zeros(len(found), bool) if found.all() else found


def _texts(passage: Passage) -> tuple[str, ...]:
    """Returns the texts of a passage that are compared: its clauses, but the shortest, and all of it."""
    return (*(clause for clause in passage.clauses if len(clause.split()) >= LEAST_COMPARED), passage.text)


class _Reader:
    def __init__(
        self,
        documents: tuple[str, ...],
        request: str,
        candidates: Sequence[Candidate],
        encode: Encode,
        second: SecondReader | None,
    ) -> None:
        self._request, self._candidates, self._encode = request.strip(), candidates, encode
        self._code = _language(documents, request)
        self._language: Language = tables_of(self._code)
        self._alignment = Alignment(candidates, self._code, encode)
        self._passages = passages_of(documents)
        self._background = _background(self._passages, self._language)
        self._texts = [text for passage in self._passages for text in _texts(passage)]
        self._owner = np.repeat(np.arange(len(self._passages)), [len(_texts(p)) for p in self._passages])
        self._second = second

    def reading(self) -> Reading:
        """Returns the reading."""
        asked = self._said_of_request or self._asked_by_request()
        asked = asked or {task.candidate: 1.0 for task in self._of_request_alone()}
        applies, is_policy = self._applying(asked)
        for sentence, said in self._said.items():
            passage = self._passages[sentence]
            # where this reader sees no condition, a sentence that is ruled out stays a doubt
            if said.applies or passage.when or self._language.has("condition", passage.text):
                applies[sentence] = said.applies
        means = self._means * applies[self._owner][:, None]
        if is_policy:
            means = means * (self._demands | np.isin(self._owner, list(self._said)))[:, None]
        if is_policy or (means >= LIKELY).any():
            tasks = self._tasks(means, asked if is_policy or self._said_of_request else self._named_by_request())
        elif self._said_of_request:
            tasks = [AskedTask(n, self._request, sure, True) for n, sure in asked.items()]
        else:
            tasks = self._of_request_alone()
        return Reading(tuple(self._sentences(applies)), tuple(tasks), self._doubts(tasks, applies))

    @cached_property
    def _heard(self) -> tuple[list[int], list[str], SecondReading]:
        """The sentences of the documents and of the request that the second reader was asked for, and its answer."""
        if self._second is None:
            return [], [], SecondReading({})
        places = [n for n, p in enumerate(self._passages) if p.shape != "heading" and not self._background[n]]
        asked = sentences(self._request)
        texts = [self._passages[n] for n in places] + [Passage(text, ("Request",), "prose") for text in asked]
        return places, asked, self._second(texts, self._candidates, self._request)

    @cached_property
    def _said(self) -> dict[int, Said]:
        """What the second reader says of sentences of the documents, by their places."""
        places, _, heard = self._heard
        return {places[n]: said for n, said in heard.said.items() if n < len(places)}

    @cached_property
    def _said_of_request(self) -> dict[int, float]:
        """The candidates for which the request asks by the second reader, by how surely it does."""
        places, asked, heard = self._heard
        said = [(asked[n - len(places)], one) for n, one in heard.said.items() if n >= len(places) and one.asks]
        if not said:
            return {}
        own = self._alignment.probabilities([text for text, _ in said])
        verbs = self._asked_by_request()
        return {
            task: AGREED if task in verbs or row[task] >= LIKELY else ALONE
            for row, (_, one) in zip(own, said, strict=True)
            for task in one.tasks
        }

    def _doubts(self, tasks: Sequence[AskedTask], applies: np.ndarray) -> tuple[str, ...]:
        """Returns what the second reader did not read, and the steps that only one of the two readers finds."""
        if self._second is None:
            return ()
        places, asked, heard = self._heard
        chosen = {task.candidate for task in tasks}
        unsure = [task.candidate for task in tasks if task.probability == ALONE]
        own = self._own_aligned[applies[self._owner] & ~self._forbids]
        denied = np.flatnonzero((own >= LIKELY).any(0)) if self._said else ()
        names = [candidate.name for candidate in self._candidates]
        return doubts(
            heard, len(places) + len(asked), [names[n] for n in unsure], [names[n] for n in denied if n not in chosen]
        )

    @cached_property
    def _aligned(self) -> np.ndarray:
        """The same as `_own_aligned`, after what the second reader says."""
        return combined(self._own_aligned, self._owner, self._said) if self._said else self._own_aligned

    @cached_property
    def _own_aligned(self) -> np.ndarray:
        """The probability [texts, candidates] that a text means a task, marks and background regarded."""
        counts = ~self._background[self._owner]
        if self._marks_names:
            return (self._marked & counts[:, None]).astype(float)
        found = np.zeros((len(self._texts), len(self._candidates)))
        found[counts] = self._alignment.probabilities(
            [text for text, of in zip(self._texts, counts, strict=True) if of]
        )
        return found

    @cached_property
    def _marked(self) -> np.ndarray:
        return self._alignment.marked(self._texts)

    @cached_property
    def _marks_names(self) -> bool:
        """Whether the documents mark the names of tasks, so that other words do not name them."""
        return int((self._marked & ~self._background[self._owner][:, None]).any(0).sum()) >= LEAST_MARKED

    @cached_property
    def _means(self) -> np.ndarray:
        """The same as `_aligned`, where what is forbidden is no step."""
        forbids = self._forbids.copy()
        for sentence, said in self._said.items():
            forbids[self._owner == sentence] = not said.asks
        return self._aligned * ~forbids[:, None]

    @cached_property
    def _forbids(self) -> np.ndarray:
        """Whether each text has words that forbid."""
        has = self._language.has
        return np.array([has("negation", text) or has("idle", text) for text in self._texts], bool)

    def _asked_by_request(self) -> dict[int, float]:
        """Returns the candidates whose verb a clause of the request has, by how surely it asks for them.

        Of several candidates with one verb, a clause asks for the one that fits it best. What is asked for under a
        condition counts where nothing else is asked for.
        """
        clauses = sentences(self._request)
        if not clauses:
            return {}
        scores, _ = self._alignment.scores(clauses)
        of_names = self._alignment.of_names
        names = [content_stems(c.plain, of_names) for c in self._candidates]
        counts = Counter(word for name in names for word in set(name))
        found: dict[int, float] = {}
        for row, clause in zip(scores, clauses, strict=True):
            present = set(content_stems(clause, of_names))
            of_verb: dict[str, list[int]] = defaultdict(list)
            for n, name in enumerate(names):
                if name and name[0] in present:
                    of_verb[name[0]].append(n)
            sure = 0.5 if self._language.has("condition", clause) else 1.0
            for verb, tasks in of_verb.items():
                rare = {n: sum(1 / counts[word] for word in present & set(names[n]) - {verb}) for n in tasks}
                best = max(tasks, key=lambda n: (round(float(row[n]) + RARE_WEIGHT * rare[n], 6), -n))
                found[best] = max(found.get(best, 0.0), sure)
        certain = {n: sure for n, sure in found.items() if sure == 1.0}
        return certain or found

    @cached_property
    def _demands(self) -> np.ndarray:
        """Whether each text demands something in all cases."""
        texts = [self._passages[n].text for n in self._owner]
        return np.array(
            [self._language.has("demand", text) and not self._language.has("condition", text) for text in texts], bool
        )

    def _named_by_request(self) -> dict[int, float]:
        """Returns the candidates that a clause of the request names: by a mark, or by the words of a longer name.

        Where the documents mark names, words do not name a task.
        """
        clauses = [clause for clause in sentences(self._request) if not self._language.has("negation", clause)]
        clauses = [clause for clause in clauses if not self._language.has("condition", clause)]
        marked = self._alignment.marked_by_any(clauses)
        of_names = self._alignment.of_names
        said = [] if self._marks_names else [f" {' '.join(content_stems(clause, of_names))} " for clause in clauses]
        names = [content_stems(c.plain, of_names) for c in self._candidates]
        return {
            n: 1.0
            for n, name in enumerate(names)
            if marked[n] or (len(name) >= LEAST_NAME and any(f" {' '.join(name)} " in words for words in said))
        }

    def _of_request_alone(self) -> list[AskedTask]:
        """Returns the tasks that a request asks for where no document does, in the order of its clauses.

        They are at most as many as it has clauses, of those whose score is not far behind the best. What one gives
        another comes before that one.
        """
        clauses = _clauses_of(self._request) or ([self._request] if self._request else [])
        if not clauses:
            return []
        each = self._alignment.scores(clauses)[0]
        total = (each.max(0) + self._alignment.scores([self._request])[0][0]).round(6)
        ranked = np.argsort(-total, kind="stable")[: max(len(clauses), LEAST_OF_REQUEST)]
        named = self._alignment.marked_by_any(clauses)
        chosen = [int(n) for n in ranked if total[n] > total[ranked[0]] - BEHIND and (named[n] or not any(named))]
        chosen = chosen or [int(n) for n in np.flatnonzero(named)]
        if not any(named):
            likely = self._alignment.probabilities(clauses)
            best = [int(row.argmax()) for row in likely if row.max() >= SURE]
            chosen = list(dict.fromkeys([*chosen, *best]))
        at = {n: int(each[:, n].round(6).argmax()) for n in chosen}
        chosen.sort(key=lambda n: (at[n], -total[n]))
        chances = {n: float(min(1.0, np.exp((total[n] - total[ranked[0]]) / BEHIND))) for n in chosen}
        return [AskedTask(n, clauses[at[n]], chances[n], True) for n in by_data_flow(chosen, self._candidates)]

    def _applying(self, asked: Mapping[int, float]) -> tuple[np.ndarray, bool]:
        """Returns which passages are for the request, and whether the documents are a policy.

        Of each menu those alternatives apply whose heading names what the request asks for: such a menu tells the rules
        of what may be asked for, and not the steps to it. Of another menu those apply that are most similar to the
        request.
        """
        applies, is_policy = np.array([not self._is_ruled_out(passage) for passage in self._passages], bool), False
        if not self._request:
            return applies, is_policy
        vector = self._encode([self._request])[0]
        of_section, children = self._sections
        for alternatives in self._menus(of_section, children):
            if not all(applies[of_section[section][0]] for section in alternatives):
                continue
            chosen = self._asked_sections(alternatives, asked)
            is_policy |= bool(chosen)
            if not chosen:
                similar = [self._similarity(section, of_section[section], vector) for section in alternatives]
                chosen = {s for s, value in zip(alternatives, similar, strict=True) if value >= max(similar) - ALIKE}
            for section in alternatives:
                if section not in chosen:
                    applies[of_section[section]] = False
        return applies, is_policy

    @cached_property
    def _figures(self) -> list[tuple[float, str, frozenset[str]]]:
        """The figures of the request: amount, unit, and the words of the sentence."""
        return [
            (amount, unit, frozenset(content_stems(sentence, self._code)))
            for sentence in sentences(self._request)
            for amount, unit in _figures_in(sentence, self._language)
        ]

    def _is_ruled_out(self, passage: Passage) -> bool:
        """Tells whether the figures of the request are outside a bound of the passage's condition or cells.

        Figures of the same unit count whose sentence shares a word with the condition, and for money those without a
        unit, too; where there are none, other amounts of that money. They rule out where all of them are outside.
        """
        if not self._figures or passage.shape == "heading":
            return False
        conditions = passage.when.split("; ") if passage.when else [_condition_of(passage.text, self._language)]
        for condition in conditions:
            if (bound := _bound_in(condition, self._language)) is None:
                continue
            low, high, unit = bound
            own = frozenset(content_stems(condition if passage.when else passage.text, self._code))
            of_money = unit.isupper()
            near = [x for x, of, words in self._figures if words & own and (of == unit or (of_money and not of))]
            found = near or [x for x, of, _ in self._figures if of_money and of == unit]
            if found and not any(low <= amount <= high for amount in found):
                return True
        return False

    def _asked_sections(self, alternatives: Sequence[Section], asked: Mapping[int, float]) -> set[Section]:
        """Returns the alternatives that tell the rules of a task which the request asks for.

        Its heading has the verb and a further word of the task's name, and most of its sentences that mean a task mean
        this one.
        """
        found = set()
        for task in asked:
            name = content_stems(self._candidates[task].plain, self._alignment.of_names)
            for section in alternatives:
                heading = content_stems(section[-1], self._code)
                if name[0] in heading and len(set(name) & set(heading)) >= min(2, len(name)):
                    means = self._aligned[np.isin(self._owner, self._sections[0][section][1:])]
                    likely = means[means.max(1) >= LIKELY] if len(means) else means
                    if len(likely) and 2 * (likely[:, task] >= likely.max(1)).sum() >= len(likely):
                        found.add(section)
        return found

    @cached_property
    def _sections(self) -> tuple[dict[Section, list[int]], dict[Section, list[Section]]]:
        """The passages of each section with its subsections, and the subsections of each section that has several."""
        of_section: dict[Section, list[int]] = {}
        for n, passage in enumerate(self._passages):
            own = passage.own_section
            for depth in range(1, len(own) + 1):
                of_section.setdefault(own[:depth], []).append(n)
        children: dict[Section, list[Section]] = {}
        for section in of_section:
            children.setdefault(section[:-1], []).append(section)
        return of_section, {parent: of for parent, of in children.items() if len(of) > 1}

    def _menus(
        self, of_section: Mapping[Section, Sequence[int]], children: Mapping[Section, Sequence[Section]]
    ) -> Iterator[list[Section]]:
        """Yields the sections that are alternatives of each other, the outermost first."""
        for group in children.values():
            sections = [section for section in group if not _describes(section, self._language)]
            if len(sections) < 2:
                continue
            called = [section for section in sections if self._language.has("cases", section[-1])]
            if len(called) >= max(2, LEAST_NAMED_CASES * len(sections)):
                yield called
            elif self._repeat_each_other([of_section[s] for s in sections]) or self._begin_alike(
                [of_section[s] for s in sections]
            ):
                yield sections

    def _repeat_each_other(self, sections: Sequence[Sequence[int]]) -> bool:
        """Tells whether many sentences of the sections stand in another one, too."""
        texts = [
            [self._passages[n].text for n in of if self._passages[n].shape != "heading" and not self._background[n]]
            for of in sections
        ]
        shares = []
        for n, own in enumerate(texts):
            others = [text for k, other in enumerate(texts) if k != n for text in other]
            if own and others:
                cosines = self._encode(own) @ self._encode(others).T
                shares.append(float((cosines.max(1) > REPEATED).mean()))
        return bool(shares) and float(np.mean(shares)) >= LEAST_REPEATED

    def _begin_alike(self, sections: Sequence[Sequence[int]]) -> bool:
        """Tells whether the sections have many tasks in common, and most begin with the same one."""
        if len(sections) < LEAST_CASES:
            return False
        tasks: list[list[int]] = []
        for places in sections:
            rows = self._aligned[np.isin(self._owner, places)]
            likely = np.flatnonzero(rows.max(0) >= LIKELY) if len(rows) else np.zeros(0, int)
            tasks.append(sorted(likely.tolist(), key=lambda n: (_first(rows[:, n]), n)))
        counts = Counter(task for own in tasks for task in own)
        starts = Counter(own[0] for own in tasks if own)
        recurring = sum(count > 1 for count in counts.values()) / max(1, len(counts))
        alike = max(starts.values(), default=0) / len(sections)
        return recurring >= LEAST_RECURRING and alike >= LEAST_SAME_START

    def _similarity(self, section: Section, places: Sequence[int], request: np.ndarray) -> float:
        heading = float(self._encode([section[-1]])[0] @ request)
        cosines = self._encode([self._passages[n].text for n in places if not self._background[n]]) @ request
        return HEADING_WEIGHT * heading + (1 - HEADING_WEIGHT) * float(np.sort(cosines)[-NEAREST:].mean())

    def _tasks(self, means: np.ndarray, asked: Mapping[int, float]) -> list[AskedTask]:
        """Returns the tasks that the sentences mean, in the order of the sentences that mean each first."""
        best = means.max(0) if len(means) else np.zeros(len(self._candidates))
        likely = [int(n) for n in np.flatnonzero(best >= LIKELY)]
        first = {n: _first(means[:, n]) for n in likely}
        ordered = sorted(likely, key=lambda n: (self._owner[first[n]], first[n], self._place(n, first[n]), -best[n], n))
        found = [AskedTask(n, self._passages[self._owner[first[n]]].text, float(best[n])) for n in ordered]
        return found + [AskedTask(n, self._request, sure, True) for n, sure in asked.items() if n not in first]

    def _place(self, task: int, text: int) -> float:
        """Returns the mean place of the words of a task's name in a text; behind its end where it has none of them."""
        words = content_stems(self._texts[text], self._alignment.of_names)
        name = set(content_stems(self._candidates[task].plain, self._alignment.of_names))
        places = [n for n, word in enumerate(words) if word in name]
        return sum(places) / len(places) if places else float(len(words))

    def _sentences(self, applies: np.ndarray) -> Iterator[SentenceReading]:
        """Yields the record of each passage."""
        for n, passage in enumerate(self._passages):
            best = self._aligned[self._owner == n].max(0)
            tasks = sorted(np.flatnonzero(best >= LIKELY).tolist(), key=lambda k: (-best[k], k))
            background = bool(self._background[n])
            if said := self._said.get(n):
                own = (passage.when or _condition_of(passage.text, self._language)) if said.kind == "condition" else ""
                kind, condition = said.kind, said.condition or own
            else:
                kind, condition = _kind(passage, self._language, bool(tasks), background)
            probability = float(best[tasks[0]]) if tasks else 0.0
            holds = bool(applies[n]) and (said is None or said.applies)
            yield SentenceReading(passage, kind, tuple(tasks), probability, background, holds, condition)


def sentences_of(documents: Sequence[str]) -> tuple[SentenceReading, ...]:
    """Returns the records of the sentences of documents without any candidate."""
    language = tables_of(_language(documents, ""))
    found = []
    for passage in passages_of(tuple(documents)):
        background = _describes(passage.own_section, language)
        kind, condition = _kind(passage, language, has_task=False, is_background=background)
        found.append(SentenceReading(passage, kind, (), 0.0, background, True, condition))
    return tuple(found)


_FIGURE = re.compile(rf"(?P<n>{TOKEN}|{NUMBER})\s*(?P<unit>°\s*\w+|[^\W\d_]+)?")
_OF_HEAD = re.compile(r"\((?P<unit>[A-Z]{3})\)")  # the currency of a column


def _figures_in(text: str, language: Language) -> list[tuple[float, str]]:
    """Returns the figures of a text: amount and unit; times are in hours, money has a code."""
    found = []
    for match in _FIGURE.finditer(text := with_tokens(text)):
        figure = figure_of(match["n"])
        word = (match["unit"] or "").replace(" ", "").casefold()
        if figure.calendar:
            found.append((hours(figure), "hours"))
        elif figure.unit != "count":
            found.append((figure.amount, figure.unit))
        else:
            found.append((figure.amount, "" if word in language.empty else word))
    return found


def _bound_in(text: str, language: Language) -> tuple[float, float, str] | None:
    """Returns the least and the greatest amount that a condition or a cell allows, and their unit; None without any."""
    figures = _figures_in(text, language)
    if not figures:
        return None
    marked, (amount, unit) = with_tokens(text), figures[0]
    head = _OF_HEAD.search(text)
    unit = unit or (head["unit"] if head else "")
    if len(figures) == 2:
        first, second = list(_FIGURE.finditer(marked))
        is_range = language.cues["range"].fullmatch(marked[first.end("n") : second.start()].strip())
        return (amount, figures[1][0], figures[1][1] or unit) if is_range else None
    less = any(language.has(cue, marked) for cue in ("less", "most", "or_less"))
    more = any(language.has(cue, marked) for cue in ("more", "least", "or_more"))
    if len(figures) > 1 or less == more:
        return None
    is_open = language.has("less", marked) or language.has("more", marked)
    step = 1e-6 * max(1.0, abs(amount)) if is_open else 0.0
    return (float("-inf"), amount - step, unit) if less else (amount + step, float("inf"), unit)


_CONDITION_ENDS = re.compile(r"[,;:.](?:\s|$)")
_PASSIVE = re.compile(r"\b(?:is|are|be|being|been)\s+(?:\w+ly\s+)?(?P<participle>\w+)", re.IGNORECASE)
_STATES = frozenset({"based", "called", "defined", "described", "known", "located", "made", "named", "used"})


def _kind(passage: Passage, language: Language, has_task: bool, is_background: bool) -> tuple[SentenceKind, str]:
    """Returns the kind of a sentence by its cue words, and its condition in its own words.

    A sentence without cue words asks for something where it means a task, demands, or stands in a list or a table, and
    in English where it is an imperative or a passive.
    """
    text, has = passage.text, language.has
    if is_background or passage.shape == "heading" or has("idle", text):
        return "none", ""
    if passage.when:
        return ("forbid" if has("negation", text) else "condition"), passage.when
    condition = _condition_of(text, language)
    rest = text.replace(condition, "") if condition else text
    clauses = clauses_in(rest) or (rest,)
    first = next((n for n, clause in enumerate(clauses) if len(clause.split()) >= LEAST_DENYING), 0)
    denied = [has("negation", clause) for clause in clauses[first:]]
    if condition and denied[0] and not all(denied):  # "if it is late, do not pay: ask the client"
        return "condition", condition
    if denied[0] or (has("negation", rest) and not has_task and not condition):
        return "forbid", condition
    if condition:
        return "condition", condition
    if has("order", rest):
        return "order", ""
    if has("guard", rest):
        return "guard", ""
    if has("demand", text):
        return "ask", ""
    if has("told", text):
        return "none", ""
    if has_task or passage.shape != "prose":
        return "ask", ""
    return ("ask", "") if language.code == ENGLISH and _is_instruction(text) else ("none", "")


def _condition_of(text: str, language: Language) -> str:
    """Returns the words of a sentence from its first condition's cue to the end of that clause; "" without one."""
    match = language.cues["condition"].search(text)
    if match is None:
        return ""
    if match[0].endswith((",", ":")):  # the cue is the whole condition: "For damage cases:"
        return match[0].rstrip(",:")
    end = _CONDITION_ENDS.search(text, match.end())
    return text[match.start() : end.start() if end else None]


def _is_instruction(text: str) -> bool:
    participles = {match["participle"].casefold() for match in _PASSIVE.finditer(text)} - _STATES
    return is_imperative(text.casefold()) or any(map(is_participle, participles))


def _first(column: np.ndarray) -> int:
    """Returns the first place where a column of probabilities is near its highest value."""
    return int(np.flatnonzero(column >= FIRST * column.max())[0])
