"""Rules of a procedure that name their steps, held against one request: what it must have, must not have, and in which
order.

A sentence names a step by its title, as it is written or by all its words. A step that the procedure asks for only
under a condition is demanded where the request states the condition. Where the request states the contrary, or says
nothing of it and most similar cases did without the step, it is left out (`conditions` tells which of these holds). A
sentence in the same paragraph that goes on with "it" or "then" holds under the condition of the sentence before. The
rules are this project's own, for the languages that `language.reading` has tables of.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from opus_pipelines.intakes.elements import PROCEDURAL, Element
from opus_pipelines.intakes.requirements.rules import Sentence, addresses_program, sentences_of, split_sentences
from opus_pipelines.language.reading.languages import (
    ENGLISH,
    forms_within,
    has_form,
    language_of,
    word_forms,
)
from opus_pipelines.lwm.precedence import Pair
from opus_pipelines.lwm.retrieval.conditions import (
    PARENTHESES,
    ConditionGrammar,
    RequestText,
    grammar_of,
    is_telling,
)

FAR_MORE_USUAL = 5  # times as often as the next one that a task was done, from which a short form means it
LEAST_LISTED = 3  # steps that a request or a list of a procedure names, from which it has them in their order
REQUESTED = "the request asks for it"
REPLACED = "another step takes its place"
LISTED = "the procedure lists them in this order"
_HEAD_WORDS = 3  # most words of a cell with the name of a column
_LEAST_CLAUSE = 5  # words of a clause in front of a comma, from which it is no item of a list
_ARTICLE = 6  # characters in front of a name that are an article
_LEAST_WORDS = 2  # content words of a title that a sentence may name without its exact words
_NOT_SO = re.compile(r"^(?P<when>[^,;:]{4,60}?) (?:is|are|do|does) not\s", re.I)  # "Requests of members are not called"
_PRONOUN = re.compile(
    r"^(?:(?:if|when|where|wenn|falls|si|als|indien) (?:they|it|he|she|sie|er|es|ils?|elles?|c['’]est|zij|hij|het|"
    r"this|that|dies\w*|deze|dat)|(?:ist|liegt|wird|is|wordt) (?:dies\w*|deze|die|dat))\b",
    re.I,
)
_WORD = re.compile(r"[^\W\d_]+")
_BEHIND_COLON = re.compile(r"(?<=: )[^\W\d_]")
_NUMBERED = re.compile(
    r"^(?:[A-Z]\w+\s)?\d{1,2}(?:\.\d{1,2})+\.?\s|^\([a-z]\)\s"
)  # a paragraph that is an item of a list
_BY_SEVERAL = re.compile(
    r"\b(?:by|von|par|door|por) (?:two|zwei|deux|twee|dos|another|a second|a different|einer zweiten|un second|"
    r"een tweede)\b",
    re.I,
)
_LISTS = re.compile(r"[;,]\s")
_ONLY = re.compile(r"qu['’]$|\bonly $", re.I)  # "n'est donné qu'après" says an order as "only after" does
_LABEL = re.compile(r"^[A-Z]: ")  # of a question or an answer
_WHO = re.compile(r"\b(?:who|whoever) [^,;.]*", re.I)  # it says who does a step, and asks for none
_CODE = re.compile(r"(?=\w*\d)\w+(?=\s)")  # of a title such as "T06 Determine necessity of stop advice"


@dataclass(frozen=True)
class NamedRule:
    """What a sentence demands of the workflow for a request.

    `kind`: must_contain, must_not_contain or before. `tasks`: one, or two in their order. `held`: why it holds for
    the request, in words. `is_usual_only`: the request says nothing of the condition, or the order is only that of two
    sentences, so that similar cases decide.
    `is_exception`: it says that a step is not done again, which decides against what demands it.
    """

    kind: str
    tasks: tuple[str, ...]
    sentence: Sentence
    document: str
    held: str = ""
    is_usual_only: bool = False
    is_exception: bool = False

    @property
    def place(self) -> str:
        """Where a person finds the sentence."""
        return f"{self.document}, {self.sentence.place}"


@dataclass(frozen=True)
class _Read:
    """One sentence: the tasks that it names in order, its condition, and which of them it denies.

    `replaced`: tasks of the sentence before, in whose place its own are. `is_permission`: it says what somebody may do,
    and what follows in its paragraph is done where he does. `is_contrary`: it holds where the condition does not.
    `is_exception`: a step of the condition is not done again. `is_loose`: its steps are told by their verbs alone.
    `is_event`: the condition may be the usual course, so that nothing follows where the request does not state it.
    """

    sentence: Sentence
    tasks: tuple[str, ...]
    condition: str
    denied: frozenset[str] = frozenset()
    replaced: tuple[str, ...] = ()
    is_permission: bool = False
    is_contrary: bool = False
    is_exception: bool = False
    is_loose: bool = False
    is_event: bool = False


class NamedTasks:
    """The tasks that sentences of one language may name, by their titles."""

    def __init__(self, titles: Mapping[str, str], times: Mapping[str, int] | None = None, code: str = ENGLISH) -> None:
        """Take the title of each task, how often history did it, and the language of the sentences."""
        self._times, self.code, self.grammar = times or {}, code, grammar_of(code)
        self._titles = dict(sorted(titles.items(), key=lambda item: (-len(item[1]), item[0])))
        self._folded = frozenset(title.casefold() for title in titles.values())
        own = language_of(" ".join(titles.values()), code)
        codes = {task: match[0] for task, title in titles.items() if (match := _CODE.match(title))}
        self._names = {task: word_forms(title.removeprefix(codes.get(task, "")), own) for task, title in titles.items()}
        counts = Counter(codes.values())
        self._codes = {task: name for task, name in codes.items() if counts[name] == 1}

    def forms(self, text: str) -> tuple[frozenset[str], ...]:
        """Returns the forms of the words of a sentence."""
        return word_forms(text, self.code)

    def named(self, text: str, exactly: bool = False) -> list[str]:
        """Returns the tasks that a sentence names, in the order in which it does; `exactly`: by their titles alone."""
        left, found = text, dict[str, int]()
        for names in (self._titles, self._codes):
            for task, name in names.items():
                for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", left, re.I):
                    if names is self._codes or self._is_name(name, left, match.start(), match.end()):
                        found.setdefault(task, match.start())
                        left = left[: match.start()] + " " * len(match[0]) + left[match.end() :]
                        break
        if exactly:
            return sorted(found, key=lambda task: found[task])
        least = 3 if found else _LEAST_WORDS
        clauses = [self.forms(clause) for clause in (self.grammar.clauses.split(left) if found else (left,))]
        for task, words in self._names.items():
            is_part = any(
                set(words) < set(self._names[other]) or words[:1] == self._names[other][:1] for other in found
            )
            if (
                task not in found
                and len(words) >= least
                and any(forms_within(words, c) for c in clauses)
                and not is_part
            ):
                found[task] = len(text) + _end(words, self.forms(left))
        return sorted(found, key=lambda task: found[task])

    def is_title(self, text: str) -> bool:
        """Tells whether a text is the title of a task."""
        return text.strip().casefold() in self._folded

    def by_verb(self, text: str, context: str = "") -> list[str]:
        """Returns the tasks whose first word a text has and whose other words the text or its context has."""
        words = self.forms(text)
        around = (*words, *self.forms(context))
        found = [
            (min(n for n, word in enumerate(words) if has_form(name[0], (word,))), task)
            for task, name in self._names.items()
            if name and has_form(name[0], words) and forms_within(name, around)
        ]
        return [task for _, task in sorted(found)]

    def by_object(self, clause: str) -> str | None:
        """Returns the task of which a clause has all words but the first, at least two; of several the usual one."""
        words = self.forms(clause)
        found = [t for t, name in self._names.items() if len(name) > _LEAST_WORDS and forms_within(name[1:], words)]
        return self._usual(found)

    def behind(self, phrase: str) -> list[str]:
        """Returns the tasks that a phrase names behind its first one, or by their titles behind other words."""
        titles = ((task, self._titles[task].casefold()) for task in self.named(phrase, exactly=True))
        late = [task for task, title in titles if phrase.casefold().find(title) > _ARTICLE]
        return list(dict.fromkeys((*self.named(phrase)[1:], *late)))

    def meant(self, clause: str, context: str = "") -> str | None:
        """Returns the one task that a short clause means ("the ticket was resolved"), by its title or its verb.

        It means the task that shares most words with it, at least two, or the only one whose other words the context
        has, else the usual one of those with its verb.
        """
        named = self.named(clause)
        if named:
            return named[0]
        words = self.forms(clause)
        shared = {task: sum(has_form(word, name) for word in words) for task, name in self._names.items()}
        most = max(shared.values(), default=0)
        near = self._usual(task for task, n in shared.items() if n == most) if most >= _LEAST_WORDS else None
        of_context = self.by_verb(clause, context) if context else []
        if near is None and len(of_context) == 1:
            return of_context[0]
        return near or self._usual(t for t, name in self._names.items() if name and has_form(name[0], words))

    def _usual(self, tasks: Iterable[str]) -> str | None:
        """Returns the task that history did far more often than the others."""
        found = sorted(tasks, key=lambda task: -self._times.get(task, 0))
        is_usual = len(found) == 1 or (
            found and self._times.get(found[0], 0) >= FAR_MORE_USUAL * self._times.get(found[1], 1)
        )
        return found[0] if is_usual else None

    @staticmethod
    def _is_name(title: str, text: str, start: int, end: int) -> bool:
        """Tells whether the words of a title are a name here; a title of one word must be marked or written as one."""
        if len(_WORD.findall(title)) > 1:
            return True
        is_marked = text[start - 1 : start] == "(" and text[end : end + 1] in (")", ",", ";")
        is_written = start > 0 and text[start:end] == title and title[:1].isupper()
        return is_marked or is_written or text.strip() == title


def _end(name: Sequence[frozenset[str]], words: Sequence[frozenset[str]]) -> int:
    """Returns the number of words after which all words of a name have come."""
    return max(next((n for n, word in enumerate(words) if has_form(own, (word,))), len(words)) for own in name)


def named_rules(
    elements: Iterable[Element], titles: Mapping[str, str], request: str, times: Mapping[str, int] | None = None
) -> list[NamedRule]:
    """Returns the rules of an intake's procedures that name tasks and concern the request.

    `titles`: of each task that a workflow for the intake may have; `times`: how often history did it. A task that is
    also asked for without a condition is left out by no condition that the request does not state. The order of lists
    comes last.
    """
    asked, rules, listed = RequestText(request), list[NamedRule](), list[NamedRule]()
    always: set[str] = set()
    for element in elements:
        if element.role not in PROCEDURAL or not element.text:
            continue
        sentences = [s for s in sentences_of(element) if s.shape != "heading" and not addresses_program(s.text)]
        tasks = NamedTasks(titles, times, language_of(element.text) or ENGLISH)
        rarity = _rarity(sentences, tasks)
        document, before = f"{element.role}/{element.name}", None
        anchor: _Read | None = None  # the last one of the paragraph that names a task
        reads = list[_Read]()
        for sentence, of_cases in _with_rows(sentences, tasks):
            if anchor is not None and anchor.sentence.block != sentence.block:
                anchor = None
            read = _read_case(sentence, tasks) if of_cases else _read(sentence, tasks, before, anchor)
            anchor = read if read.tasks else anchor
            rules += _rules_of(read, asked, rarity, document, tasks)
            if _is_usual(read) and sentence.shape != "row":
                always |= set(read.tasks) - read.denied
            reads.append(read)
            before = read
        listed += _listed_order(reads, document, tasks)
    excepted = {rule.tasks for rule in rules if rule.is_exception}
    demanded = {rule.tasks for rule in rules if rule.kind == "must_contain"} - excepted
    return [
        rule
        for rule in dict.fromkeys((*rules, *listed))
        if not (rule.kind == "must_contain" and rule.tasks in excepted)
        and (
            rule.kind != "must_not_contain"
            or (rule.tasks not in demanded and not (rule.is_usual_only and rule.tasks[0] in always))
        )
    ]


def _listed_order(reads: Iterable[_Read], document: str, tasks: NamedTasks) -> list[NamedRule]:
    """Returns the order of the steps that a list or a paragraph names by their titles, one after the other.

    At least `LEAST_LISTED` of them must be asked for without a condition, since a list of cases has no order. A step
    comes behind the last one before it that has no condition, and behind those between the two. That a step is listed
    demands nothing: where its condition was not understood, it would be planned for everybody.
    """
    found, texts = list[NamedRule](), [read for read in reads if read.sentence.shape != "row"]
    items = {s.block for s in (r.sentence for r in texts) if s.shape == "item" or _NUMBERED.match(s.text)}
    for _, run in groupby(texts, lambda r: (r.sentence.heading, r.sentence.block not in items and r.sentence.block)):
        steps = dict[str, _Read]()
        for read in run:
            text = read.sentence.text
            orders = (order for order in tasks.grammar.order.finditer(text) if tasks.meant(order["what"]))
            if (order := next(orders, None)) is not None:
                text = text[: order.start()]
            for task in tasks.named(text, exactly=True) or (read.tasks if order is None else ()):
                if task not in read.denied:
                    steps.setdefault(task, read)
        named = list(steps.items())
        usual = [n for n, (_, read) in enumerate(named) if _is_usual(read)]
        if sum(not read.condition for _, read in named) < LEAST_LISTED:
            continue
        named = named[: usual[-1] + 1]  # of cases behind the usual way a list says no order
        for place, (task, read) in enumerate(named):
            for other, earlier in reversed(named[:place]):
                is_usual_only = earlier.sentence is not read.sentence
                found.append(NamedRule("before", (other, task), read.sentence, document, LISTED, is_usual_only))
                if _is_usual(earlier):
                    break
    return found


def _is_usual(read: _Read) -> bool:
    """Tells whether what a sentence asks for is done unless an earlier step ends the work ("if they say yes")."""
    return not read.condition or read.is_event or bool(_PRONOUN.match(read.condition))


def without_condition(sentence: Sentence, request: str) -> str:
    """Returns what an English sentence asks of a request, without its condition.

    Where the request does not state the condition, that is nothing; of a condition behind a clause, it is the sentence
    without that clause.
    """
    grammar, text = grammar_of(ENGLISH), sentence.text
    condition = grammar.condition(text, sentence.shape)
    if not condition or RequestText(request).holds(condition, _rarity([sentence], NamedTasks({})), ENGLISH):
        return _main(text, condition).strip(" ,")
    end = grammar.trailing.search(text)
    if end is None or end["when"].strip() != condition:
        return ""
    before = [match.start() for match in grammar.clauses.finditer(text[: end.start()])]
    _, comma, behind = end["when"].partition(", ")
    return ", ".join(filter(None, (text[: before[-1]] if before else "", behind if comma else "")))


def requested_steps_of(elements: Iterable[Element], titles: Mapping[str, str]) -> list[NamedRule]:
    """Returns the steps that a request names by their titles, and the order of those that it lists.

    A sentence, or the items of a list, with at least `LEAST_LISTED` of them is a list.
    """
    rules = list[NamedRule]()
    for element in elements:
        if element.role != "input" or not element.text:
            continue
        tasks = NamedTasks(titles, code=language_of(element.text) or ENGLISH)
        listed: list[tuple[str, Sentence]] = []
        for sentence in sentences_of(element):
            is_denied = tasks.grammar.is_negative(sentence.text)
            wish = tasks.grammar.language.cues["wish"].search(sentence.text)
            named = [] if is_denied else tasks.named(sentence.text, exactly=True)
            named += tasks.named(sentence.text[wish.end() :]) if wish and not named and not is_denied else []
            rules += [NamedRule("must_contain", (t,), sentence, f"input/{element.name}", REQUESTED) for t in named]
            listed += [(task, sentence) for task in named]
        if len(listed) >= LEAST_LISTED and len({task for task, _ in listed}) == len(listed):
            rules += [
                NamedRule("before", (first, then), sentence, f"input/{element.name}", REQUESTED)
                for (first, _), (then, sentence) in pairwise(listed)
            ]
    return rules


def _rarity(sentences: Sequence[Sentence], tasks: NamedTasks) -> dict[str, float]:
    counts = Counter(form for s in sentences for form in frozenset[str]().union(*tasks.forms(s.text)))
    return {form: math.log(1 + len(sentences) / n) for form, n in counts.items()}


def _read(sentence: Sentence, tasks: NamedTasks, before: "_Read | None", anchor: "_Read | None" = None) -> _Read:
    text, grammar = _plain(sentence), tasks.grammar
    if text.endswith("?"):  # a question asks for nothing
        return _Read(sentence, (), "")
    condition = grammar.condition(text, sentence.shape)
    main = _main(text, condition)
    if sentence.text.startswith("Q: ") and not condition:  # "The letter is not there."
        return _Read(sentence, (), text, is_permission=True)
    end = grammar.trailing.search(text) if condition and sentence.shape != "row" else None
    is_behind = end is not None and end["when"].strip() == condition
    # a condition behind a clause is of this clause alone
    scope = grammar.clauses.split(text[: end.start()])[-1] if end is not None and is_behind else main
    scope = _WHO.sub(lambda match: match[0] if tasks.named(match[0], exactly=True) else " ", scope)
    named = tasks.named(grammar.order.sub(" ", scope))
    # a noun phrase behind "after" may be followed by the step itself, without a mark between them
    named += [t for order in grammar.order.finditer(scope) for t in tasks.behind(order["what"]) if t not in named]
    follows = before if before is not None and before.sentence.block == sentence.block else None
    if follows and follows.condition and not condition and grammar.otherwise.match(text):
        denied = _denied(text, named, tasks)
        both = _joined(follows.sentence, sentence)
        return _Read(both, tuple(named), follows.condition, denied, is_contrary=not follows.is_contrary)
    if follows and follows.tasks and (excepted := grammar.not_for.match(text)):
        all_denied, when = frozenset(follows.tasks), text[excepted.end() :].strip(" .")
        return _Read(_joined(follows.sentence, sentence), follows.tasks, when, all_denied, is_exception=True)
    goes_on = follows and (
        follows.is_permission
        or grammar.goes_on.match(text)
        or (grammar.then.match(text) and grammar.bound(follows.condition))
    )
    if follows and follows.condition and not condition and goes_on:
        is_loose = not named
        named = named or tasks.by_verb(text, follows.sentence.text)
        denied = _denied(text, named, tasks, follows.sentence.text)
        both = _joined(follows.sentence, sentence)
        return replace(follows, sentence=both, tasks=tuple(named), denied=denied, replaced=(), is_loose=is_loose)
    if follows and condition and not named and grammar.language.has("this_step", main):
        named = list(follows.tasks)
    if condition and not named and (inside := tasks.named(" ".join(PARENTHESES.findall(condition)), exactly=True)):
        named, condition = inside, PARENTHESES.sub(" ", condition)
    if condition and not named and not grammar.is_negative(main):  # "If a paper is missing, it is collected"
        named = tasks.by_verb(grammar.order.sub(" ", main), condition)
    if condition and not named and _is_exception(main, grammar):
        named = tasks.named(condition)
        return _Read(sentence, tuple(named), condition, frozenset(named), is_exception=True)
    if condition and not named and (ruled_out := tasks.by_object(main) if grammar.is_negative(main) else None):
        return _Read(sentence, (ruled_out,), condition, frozenset({ruled_out}), is_exception=True)
    if not condition and not named and anchor and (match := _NOT_SO.search(text)):
        named = [t for t in tasks.by_verb(text[match.start() :], anchor.sentence.text) if t in anchor.tasks]
        return _Read(sentence, tuple(named), match["when"] if named else "", frozenset(named))
    if not condition and not named and not grammar.is_negative(text) and (may := grammar.permission.search(text)):
        return _Read(sentence, (), may["when"], is_permission=True)
    replaced = follows.tasks if follows and grammar.language.has("instead", text) else ()
    is_event = bool(grammar.event.match(condition))
    return _Read(sentence, tuple(named), condition, _denied(main, named, tasks), replaced, is_event=is_event)


def _joined(first: Sentence, then: Sentence) -> Sentence:
    """Returns a sentence behind the one that has its condition."""
    return replace(then, text=f"{first.text} {then.text}")


def _cells(row: Sentence) -> list[str]:
    return [cell.strip() for cell in row.text.split("|")]


def _with_rows(sentences: Iterable[Sentence], tasks: NamedTasks) -> Iterator[tuple[Sentence, bool]]:
    """Yields the sentences, and those of rows, each with whether the first column of its table has conditions."""
    of_cases = False
    for sentence in sentences:
        is_row = sentence.shape == "row"
        if not is_row or _is_head(sentence):
            of_cases = is_row and tasks.grammar.language.has("case_column", _cells(sentence)[0])
        for part in [sentence] if of_cases else _of_row(sentence, tasks):
            yield part, of_cases


def _of_row(sentence: Sentence, tasks: NamedTasks) -> list[Sentence]:
    """Returns the sentences of a row of a table that has its steps in a cell of their own; else the row as it is.

    Each sentence has the names of the steps behind it, in parentheses.
    """
    if sentence.shape != "row":
        return [sentence]
    cells = [cell for cell in _cells(sentence) if len(cell) > 1]
    steps = [cell for cell in cells if _LISTS.split(cell) and all(tasks.is_title(t) for t in _LISTS.split(cell))]
    told = [cell for cell in cells if cell not in steps and len(cell.split()) > _HEAD_WORDS]
    if len(steps) != 1 or len(told) != 1:
        return [sentence]
    parts = [text.rstrip(".") for _, text in split_sentences(told[0])]
    return [replace(sentence, text=f"{text} ({steps[0]}).", shape="prose") for text in parts]


def _is_head(row: Sentence) -> bool:
    """Tells whether a row of a table may have the names of its columns: all of its cells are short."""
    return all(len(cell.split()) <= _HEAD_WORDS for cell in _cells(row))


def _read_case(row: Sentence, tasks: NamedTasks) -> _Read:
    """Reads a row of a table whose first column has a condition and the second what is done."""
    condition, *others = _cells(row)
    named = tasks.named(tasks.grammar.order.sub(" ", others[0])) if others else []
    return _Read(
        row, tuple(named), condition, _denied(others[0], named, tasks) if named else frozenset(), is_event=True
    )


def _is_exception(main: str, grammar: ConditionGrammar) -> bool:
    """Tells whether a clause says that what its condition names is not done, or not again."""
    is_such = grammar.language.has("such", main) and grammar.language.has("again", main)
    return grammar.is_negative(main) and is_such


def _main(text: str, condition: str) -> str:
    return text.replace(condition, " ", 1) if condition else text


def _plain(sentence: Sentence) -> str:
    """Returns a sentence without its number, and with a capital behind a colon, where another sentence begins."""
    text = _LABEL.sub("", _NUMBERED.sub("", sentence.text, count=1))
    return _BEHIND_COLON.sub(lambda match: match[0].upper(), text)


def _denied(text: str, named: Sequence[str], tasks: "NamedTasks", context: str = "") -> frozenset[str]:
    """Returns the tasks that a clause with a negation names; "never before" and "nothing without" say an order.

    `context`: the sentence before it, where the clause may name a step by its verb alone.
    """
    grammar = tasks.grammar
    if grammar.language.has("no_order", text) or not grammar.is_negative(text):
        return frozenset()
    parts = re.split("[;:]", text)
    if len(parts) == 1:  # what stands in front of the clause with the negation is asked for
        clauses = re.split(r",\s", text)
        begin = next((n for n, clause in enumerate(clauses) if grammar.is_negative(clause)), len(clauses))
        parts = [clause for clause in clauses[:begin] if len(clause.split()) >= _LEAST_CLAUSE] + clauses[begin:][:1]
    others = [part for part in parts if not grammar.is_negative(part)]
    sure = {t for part in others for t in (*tasks.named(part), *(tasks.by_verb(part, context) if context else ()))}
    return frozenset(named) - sure


def _rules_of(
    read: _Read, request: RequestText, rarity: Mapping[str, float], document: str, tasks: NamedTasks
) -> Iterator[NamedRule]:
    """Yields what a sentence demands for the request."""
    make = lambda kind, *of, held="", **more: NamedRule(kind, of, read.sentence, document, held, **more)
    if not read.condition:
        yield from _orders(read, make, tasks)
        return
    if tasks.grammar.lack.match(read.condition):  # "Without approval, nothing is paid" says an order
        yield from _orders(read, make, tasks)
    is_told = not read.is_event or is_telling(read.condition, tasks.code)
    holds = request.holds(read.condition, rarity, tasks.code) if is_told else None
    if read.is_contrary and holds is not None:
        holds = not holds
    if holds:
        for task in read.tasks:
            kind = "must_not_contain" if task in read.denied else "must_contain"
            yield make(kind, task, held="the request states the condition", is_exception=read.is_exception)
        others = [task for task in read.replaced if task not in read.tasks]
        yield from (make("must_not_contain", task, held=REPLACED) for task in others)
        yield from _orders(read, make, tasks)
        return
    if read.is_event and holds is None:
        yield from _orders(read, make, tasks)
        return
    if read.is_permission and read.is_loose:  # a payment that is not made at once is made later
        return
    if _BY_SEVERAL.search(read.sentence.text):  # below the limit one person does the same step
        return
    # what is not done is seldom stated, and what comes of an earlier step never: it may well hold
    if holds is None and (
        tasks.grammar.is_negative(PARENTHESES.sub(" ", read.condition)) or _PRONOUN.match(read.condition)
    ):
        return
    held = "the request states the contrary" if holds is False else "the request does not state the condition"
    for task in read.tasks:
        if task not in read.denied:
            yield make("must_not_contain", task, held=held, is_usual_only=holds is None)


def _orders(read: _Read, make: object, tasks: NamedTasks) -> Iterator[NamedRule]:
    """Yields the order that a sentence says of the first task that it names.

    "Never A before B" puts B first, and so does "no A without B".
    """
    plain, grammar = _plain(read.sentence), tasks.grammar
    text = _main(plain, "" if read.is_event else read.condition)
    for match in grammar.order.finditer(text):
        is_before, other = not match["after"], tasks.meant(match["what"], plain)
        clause = re.split("[:;]", text[: match.start()])[-1]
        is_denied = grammar.is_negative(clause) and not _ONLY.search(clause)
        for task in read.tasks[:1] or filter(
            None, [tasks.meant(grammar.clauses.split(text[: match.start()])[-1], plain)]
        ):
            if other is not None and other != task and (is_before or not is_denied):
                pair: Pair = (task, other) if is_before != is_denied else (other, task)
                yield make("before", *pair)  # type: ignore[operator]
    if (lack := grammar.lack.search(plain)) and grammar.is_negative(plain[: lack.start()] + plain[lack.end() :]):
        first = tasks.meant(lack["what"])
        for task in tasks.named(plain[: lack.start()] + plain[lack.end() :])[:1]:
            if first is not None and first != task:
                yield make("before", first, task)  # type: ignore[operator]
