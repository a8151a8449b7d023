"""Rules of a procedure that name their steps, held against one request: what it must have, must not have, and in which
order.

A sentence names a step by its title, as it is written or by all its words. A step that the procedure asks for only
under a condition is demanded where the request states the condition. Where the request states the contrary, or says
nothing of it and most similar cases did without the step, it is left out. A condition is an amount ("from EUR 400 on"),
or words: they are stated where a sentence of the request has most of them, by their rarity in the procedure, and denied
where it has the rarest of them with a negation. A sentence in the same paragraph that goes on with "it" or "then" holds
under the condition of the sentence before. The rules are this project's own, for English.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from opus_pipelines.intakes.elements import PROCEDURAL, Element
from opus_pipelines.intakes.requirements.rules import Sentence, sentences_of, split_sentences
from opus_pipelines.language.grammar.figures import money_in
from opus_pipelines.language.word_stems import same, stems, within
from opus_pipelines.lwm.precedence import Pair
from opus_pipelines.lwm.retrieval.similar_cases import amounts_in

LEAST_STATED = 0.55  # share of a condition's words, by rarity, from which a sentence with the rarest of them states it
SURELY_STATED = 0.6  # the same without the rarest
STATED_IN_ALL, LEAST_SPREAD = 0.65, 3  # the same of the request as a whole, and the least words of such a condition
FAR_MORE_USUAL = 5  # times as often as the next one that a task was done, from which a short form means it
LEAST_LISTED = 3  # steps that a request names, from which it lists them in their order
REQUESTED = "the request asks for it"
REPLACED = "another step takes its place"
DENIED = 0.4  # share from which a sentence with a negation denies it
NEARLY = 0.95  # share of the highest rarity from which a word counts as one of the rarest
_LEAST_WORDS = 2  # content words of a title that a sentence may name without its exact words
# "when" tells a moment that comes in every case: it is no condition
_CUE = r"only for|only where|only if|if|where|in case"
_TEXT = r"(?:[^,(]|,(?=\d))*"
_BEGINS = re.compile(  # a capital begins a sentence, behind a heading or a number, too
    rf"(?:^|\s)(?P<when>(?:If|Where|While|In case|For|From|Above|Below|Over|Under)\b{_TEXT}"
    rf"(?:\([^)]*\)(?:{_TEXT}(?=,\s)|(?=\s))|(?=,\s)))"
)
_MAY = re.compile(r"\bmay (?P<when>(?!be\b)[^,.;(]*?)(?=\s(?:within|until|at|in)\b|[,.;(]|$)", re.I)
_ENDS = re.compile(rf"(?:\s|^)(?P<when>(?:{_CUE})\b[^.;|]*)", re.I)
_WHOSE = re.compile(
    r"^(?P<when>(?:an?|the|any|all)?\s*[\w' -]+?(?<!\bon)(?<!\bin)(?<!\bat)(?<!\bto) (?:that|which|who) .+?) "
    r"(?:is|are|must be|goes?)\s",
    re.I,
)
_ABOVE = re.compile(r"^(?P<when>[\w' -]+? (?:above|below|over|under|from|up to) .+?) (?:is|are|must be|needs?)\s", re.I)
_NEGATION = re.compile(r"\b(?:not|no|never|nobody|nothing|none|neither|nor|without|cannot)\b|n't\b", re.I)
_ORDER = re.compile(r"\b(?P<how>before|after)\b(?P<what>[^,.;|()]*?)(?=\b(?:and|before|after)\b|[,.;|()]|$)", re.I)
_GOES_ON = re.compile(r"^(?:it|they|this|these|the \w+ (?:is|are) then)\b", re.I)
_BOUNDS = (
    ("<", re.compile(r"\b(?:below|under|less than|up to)\s+(?P<n>\S+\s?[\d.,]+)", re.I)),
    (">", re.compile(r"\b(?:above|over|more than|exceeding)\s+(?P<n>\S+\s?[\d.,]+)", re.I)),
    (">=", re.compile(r"\b(?:from|at least)\s+(?P<n>\S+\s?[\d.,]+)", re.I)),
)
_COMPARE = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
_OPPOSITES = {"miss": ("complet", "enclos", "attach"), "complet": ("miss", "lack"), "incomplet": ("complet",)}
_PARENTHESES = re.compile(r"\(([^)]*)\)")
_WORD = re.compile(r"[^\W\d_]+")
_LIGHT = frozenset(
    ("only", "case", "ani", "while", "pend", "sign", "did", "do", "one", "under")
)  # stems that say little
_CLAUSES = re.compile(r"[,;]\s|\band\b|\bthen\b", re.I)


@dataclass(frozen=True)
class NamedRule:
    """What a sentence demands of the workflow for a request.

    `kind`: must_contain, must_not_contain or before. `tasks`: one, or two in their order. `held`: why it holds for
    the request, in words. `is_usual_only`: the request says nothing of the condition, so that similar cases decide.
    """

    kind: str
    tasks: tuple[str, ...]
    sentence: Sentence
    document: str
    held: str = ""
    is_usual_only: bool = False

    @property
    def place(self) -> str:
        """Where a person finds the sentence."""
        return f"{self.document}, {self.sentence.place}"


@dataclass(frozen=True)
class RequestText:
    """The title and the client input of an intake, as far as conditions need them."""

    text: str

    @cached_property
    def amounts(self) -> list[float]:
        """The distinct amounts of money."""
        return amounts_in(self.text)

    @cached_property
    def sentences(self) -> list[tuple[tuple[str, ...], bool]]:
        """The stems of each sentence, and whether it has a negation."""
        texts = [text for line in self.text.splitlines() for _, text in split_sentences(line)]
        return [(stems(text), bool(_NEGATION.search(text))) for text in texts]

    def holds(self, condition: str, rarity: Mapping[str, float]) -> bool | None:
        """Returns whether a condition holds for the request; None where the request does not tell."""
        if (bound := _bound(condition)) is not None:
            compare, limit = bound
            sides = {_COMPARE[compare](amount, limit) for amount in self.amounts}
            return sides.pop() if len(sides) == 1 else None
        return self._states(condition, rarity)

    def _states(self, condition: str, rarity: Mapping[str, float]) -> bool | None:
        inside = _PARENTHESES.findall(condition)
        parts = [
            _PARENTHESES.sub(" ", condition),
            *(part for text in inside for part in re.split(r"[,;]|\bor\b", text)),
        ]
        answers = [self._states_part(part, rarity) for part in parts if stems(part)]
        return True if True in answers else False if False in answers[:1] else None

    def _states_part(self, part: str, rarity: Mapping[str, float]) -> bool | None:
        wanted = {word: rarity.get(word, max(rarity.values(), default=1.0)) for word in _content(part)}
        total = sum(wanted.values())
        if not total:
            return None
        rare = [word for word, weight in wanted.items() if weight >= NEARLY * max(wanted.values())]
        denied = bool(_NEGATION.search(part))
        of_negation = total / len(wanted) if denied else 0.0  # a "not" counts as a word
        total += of_negation
        best = None
        following = [words for words, _ in self.sentences[1:]]
        for (words, negative), after in zip(self.sentences, [*following, ()], strict=False):
            near = (*words, *after)
            found = sum(w for word, w in wanted.items() if any(same(word, other) for other in near))
            share = (found + of_negation * (negative and denied)) / total
            has_rarest = any(same(word, other) for word in rare for other in words)
            if has_rarest and negative != denied and share >= DENIED:
                return False
            opposites = [opposite for word in rare for opposite in _OPPOSITES.get(word, ())]
            if any(opposite in other for opposite in opposites for other in words) and not negative:
                best = False
            elif best is None and share >= (LEAST_STATED if has_rarest else SURELY_STATED):
                best = True
        return self._states_in_all(wanted, denied) if best is None else best

    def _states_in_all(self, wanted: Mapping[str, float], denied: bool) -> bool | None:
        """Returns True where the sentences without a negation together have nearly all words, else None."""
        words = [word for stemmed, negative in self.sentences if negative == denied for word in stemmed]
        found = sum(w for word, w in wanted.items() if any(same(word, other) for other in words))
        return True if len(wanted) >= LEAST_SPREAD and found >= STATED_IN_ALL * sum(wanted.values()) else None


def _content(text: str) -> tuple[str, ...]:
    return tuple(word for word in stems(text) if word not in _LIGHT and not word.isdigit())


def _bound(condition: str) -> tuple[str, float] | None:
    for compare, pattern in _BOUNDS:
        if (match := pattern.search(condition)) and (money := money_in(match["n"].rstrip(".,"))):
            return compare, money[0].amount
    return None


@dataclass(frozen=True)
class _Read:
    """One sentence: the tasks that it names in order, its condition, and which of them it denies.

    `replaced`: tasks of the sentence before, in whose place its own are. `is_permission`: it says what somebody may do,
    and what follows in its paragraph is done where he does.
    """

    sentence: Sentence
    tasks: tuple[str, ...]
    condition: str
    denied: frozenset[str] = frozenset()
    replaced: tuple[str, ...] = ()
    is_permission: bool = False


class NamedTasks:
    """The tasks that sentences may name, by their titles."""

    def __init__(self, titles: Mapping[str, str], times: Mapping[str, int] | None = None) -> None:
        """Take the title of each task, and how often history did it."""
        self._times = times or {}
        self._titles = dict(sorted(titles.items(), key=lambda item: (-len(item[1]), item[0])))
        self._stems = {task: stems(title) for task, title in self._titles.items()}

    def named(self, text: str, exactly: bool = False) -> list[str]:
        """Returns the tasks that a sentence names, in the order in which it does; `exactly`: by their titles alone."""
        left, found = text, dict[str, int]()
        for task, title in self._titles.items():
            for match in re.finditer(rf"(?<!\w){re.escape(title)}(?!\w)", left, re.I):
                if self._is_name(title, left, match.start(), match.end()):
                    found[task] = match.start()
                    left = left[: match.start()] + " " * len(match[0]) + left[match.end() :]
                    break
        if exactly:
            return sorted(found, key=lambda task: found[task])
        least = 3 if found else _LEAST_WORDS
        clauses = [stems(clause) for clause in (_CLAUSES.split(left) if found else (left,))]
        for task, name in self._stems.items():
            is_part = any(set(name) < set(self._stems[other]) or name[:1] == self._stems[other][:1] for other in found)
            if task not in found and len(name) >= least and any(within(name, c) for c in clauses) and not is_part:
                found[task] = len(text) + len(found)
        return sorted(found, key=lambda task: found[task])

    def by_verb(self, text: str, context: str = "") -> list[str]:
        """Returns the tasks whose first word a text has and whose other words the text or its context has."""
        words, around = stems(text), (*stems(text), *stems(context))
        found = [
            (min(n for n, word in enumerate(words) if same(name[0], word)), task)
            for task, name in self._stems.items()
            if name and any(same(name[0], word) for word in words) and within(name, around)
        ]
        return [task for _, task in sorted(found)]

    def meant(self, clause: str) -> str | None:
        """Returns the one task that a short clause means ("the ticket was resolved"), by its title or its verb.

        Of several tasks with that verb it means the usual one.
        """
        named = self.named(clause)
        if named:
            return named[0] if len(named) == 1 else None
        words = stems(clause)
        found = [task for task, name in self._stems.items() if name and any(same(name[0], word) for word in words)]
        found.sort(key=lambda task: -self._times.get(task, 0))
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


def named_rules(
    elements: Iterable[Element], titles: Mapping[str, str], request: str, times: Mapping[str, int] | None = None
) -> list[NamedRule]:
    """Returns the rules of an intake's procedures that name tasks and concern the request.

    `titles`: of each task that a workflow for the intake may have; `times`: how often history did it. A task that is
    also asked for without a condition is left out by no condition that the request does not state.
    """
    tasks, asked, rules = NamedTasks(titles, times), RequestText(request), list[NamedRule]()
    always: set[str] = set()
    for element in elements:
        if element.role not in PROCEDURAL or not element.text:
            continue
        sentences = [s for s in sentences_of(element) if s.shape != "heading"]
        rarity = _rarity(sentences)
        document, before = f"{element.role}/{element.name}", None
        for sentence in sentences:
            read = _read(sentence, tasks, before)
            rules += _rules_of(read, asked, rarity, document, tasks)
            if not read.condition and sentence.shape != "row":
                always |= set(read.tasks) - read.denied
            before = read
    demanded = {rule.tasks for rule in rules if rule.kind == "must_contain"}
    return [
        rule
        for rule in dict.fromkeys(rules)
        if rule.kind != "must_not_contain"
        or (rule.tasks not in demanded and not (rule.is_usual_only and rule.tasks[0] in always))
    ]


def requested_steps_of(elements: Iterable[Element], titles: Mapping[str, str]) -> list[NamedRule]:
    """Returns the steps that a request names by their titles, and the order of those that it lists.

    A sentence, or the items of a list, with at least `LEAST_LISTED` of them is a list.
    """
    tasks, rules = NamedTasks(titles), list[NamedRule]()
    for element in elements:
        if element.role != "input" or not element.text:
            continue
        listed: list[tuple[str, Sentence]] = []
        for sentence in sentences_of(element):
            named = [] if _NEGATION.search(sentence.text) else tasks.named(sentence.text, exactly=True)
            rules += [NamedRule("must_contain", (t,), sentence, f"input/{element.name}", REQUESTED) for t in named]
            listed += [(task, sentence) for task in named]
        if len(listed) >= LEAST_LISTED and len({task for task, _ in listed}) == len(listed):
            rules += [
                NamedRule("before", (first, then), sentence, f"input/{element.name}", REQUESTED)
                for (first, _), (then, sentence) in pairwise(listed)
            ]
    return rules


def _rarity(sentences: Sequence[Sentence]) -> dict[str, float]:
    counts = Counter(word for sentence in sentences for word in set(stems(sentence.text)))
    return {word: math.log(1 + len(sentences) / n) for word, n in counts.items()}


def _read(sentence: Sentence, tasks: NamedTasks, before: "_Read | None") -> _Read:
    text = sentence.text
    condition = _condition(text, sentence.shape)
    main = _main(text, condition)
    scope = main
    if condition and sentence.shape != "row" and (end := _ENDS.search(text)) and end["when"].strip() == condition:
        scope = _CLAUSES.split(text[: end.start()])[-1]  # a condition behind a clause is of this clause alone
    named = tasks.named(_ORDER.sub(" ", scope))
    follows = before if before is not None and before.sentence.block == sentence.block else None
    if follows and follows.condition and not condition and (follows.is_permission or _GOES_ON.match(text)):
        named = named or tasks.by_verb(text, follows.sentence.text)
        denied = _denied(text, named, tasks)
        return _Read(sentence, tuple(named), follows.condition, denied, is_permission=follows.is_permission)
    if not condition and not named and not _NEGATION.search(text) and (may := _MAY.search(text)):
        return _Read(sentence, (), may["when"], is_permission=True)
    replaced = follows.tasks if follows and re.search(r"\binstead\b", text, re.I) else ()
    return _Read(sentence, tuple(named), condition, _denied(main, named, tasks), replaced)


def _condition(text: str, shape: str) -> str:
    if shape == "row":
        return next((cell for cell in text.split("|") if (m := _ENDS.match(cell.strip())) and m), "").strip()
    for pattern in (_BEGINS, _ABOVE, _WHOSE, _ENDS):
        if (match := pattern.search(text)) and (pattern is not _ABOVE or _bound(match["when"])):
            is_bound = not match["when"].lower().startswith(("from ", "above ", "below ", "over ", "under "))
            if is_bound or _bound(match["when"]):
                return match["when"].strip()
    return ""


def _main(text: str, condition: str) -> str:
    return text.replace(condition, " ", 1) if condition else text


def _denied(text: str, named: Sequence[str], tasks: "NamedTasks") -> frozenset[str]:
    """Returns the tasks that a clause with a negation names; "never before" and "nothing without" say an order."""
    if re.search(r"\b(?:before|without|until)\b", text, re.I) or not _NEGATION.search(text):
        return frozenset()
    parts = text.split(";")
    sure = {task for part in parts if not _NEGATION.search(part) for task in tasks.named(part)}
    return frozenset(named) - sure


def _rules_of(
    read: _Read, request: RequestText, rarity: Mapping[str, float], document: str, tasks: NamedTasks
) -> Iterator[NamedRule]:
    """Yields what a sentence demands for the request."""
    make = lambda kind, *of, held="", **more: NamedRule(kind, of, read.sentence, document, held, **more)
    if not read.condition:
        yield from _orders(read, make, tasks)
        return
    holds = request.holds(read.condition, rarity)
    if holds:
        for task in read.tasks:
            kind = "must_not_contain" if task in read.denied else "must_contain"
            yield make(kind, task, held="the request states the condition")
        others = [task for task in read.replaced if task not in read.tasks]
        yield from (make("must_not_contain", task, held=REPLACED) for task in others)
        yield from _orders(read, make, tasks)
        return
    if holds is None and _NEGATION.search(
        _PARENTHESES.sub(" ", read.condition)
    ):  # what is not done is seldom stated: it may well hold
        return
    held = "the request states the contrary" if holds is False else "the request does not state the condition"
    for task in read.tasks:
        if task not in read.denied:
            yield make("must_not_contain", task, held=held, is_usual_only=holds is None)


def _orders(read: _Read, make: object, tasks: NamedTasks) -> Iterator[NamedRule]:
    """Yields the order that a sentence says of the first task that it names; "never A before B" puts B first."""
    text = _main(read.sentence.text, read.condition)
    for match in _ORDER.finditer(text):
        is_before, other = match["how"].lower() == "before", tasks.meant(match["what"])
        is_denied = bool(_NEGATION.search(text[: match.start()]))
        for task in read.tasks[:1]:
            if other is not None and other != task and (is_before or not is_denied):
                pair: Pair = (task, other) if is_before != is_denied else (other, task)
                yield make("before", *pair)  # type: ignore[operator]
