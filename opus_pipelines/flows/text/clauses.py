"""Splits an utterance into clauses: steps, loop headers, conditions and "else", in the order in which they are read.

A step clause begins with an imperative, or with a noun phrase that shares the verb of the clause before it ("create a
ticket and a task"). The words of a clause keep their order and their case.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from opus_pipelines.core.errors import OpusError
from opus_pipelines.flows.text import clause_words as lexicon
from opus_pipelines.flows.text.operations import lemma_of_verb, operations_of_verb
from opus_pipelines.flows.text.rewriting import rephrased, rewritten
from opus_pipelines.language.grammar.modality import is_base, is_participle, may_be_third_person

MAX_UTTERANCE = 8_000  # characters
STEP, LOOP, CONDITION, ELSE, WHILE = "step", "loop", "condition", "else", "while"
START = "start"  # what has happened when the flow begins: no part of the flow, but told


_OCCASION, _HEADING = 9, 3  # words of the longest occasion and heading at the begin of a sentence
_FRAGMENT = 5  # words of the longest fragment without a verb that asks for something new
_DECIDED = frozenset(["fails", "failed", "rejected", "approved", "declined", "accepted"])


class UtteranceError(OpusError):
    """An utterance that cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class Clause:
    """A clause. `words` are its words without markers; `verb` the verb in the form that it has, or that it shares.

    `marker` is the phrase that made the kind ("if", "for each"), `adverbs` the connectives that stand before it,
    `postfix` whether a condition or loop header stands behind the step that it governs, `opens` whether the clause
    begins a sentence, and `together` whether its sentence asks that steps are done at the same time.
    """

    kind: str
    words: tuple[str, ...]
    verb: str = ""
    shares_verb: bool = False
    marker: str = ""
    adverbs: tuple[str, ...] = ()
    sentence: int = 0
    opens: bool = False
    postfix: bool = False
    alternative: bool = False
    together: bool = False

    @property
    def text(self) -> str:
        """The clause as text, with the verb that it shares."""
        words = " ".join(self.words)
        return f"{self.verb} {words}" if self.shares_verb else words


def words_of(utterance: str) -> list[str]:
    """Returns the words and punctuation marks of an utterance; a quoted text is one word, with its quotes.

    Raises UtteranceError where it is empty or longer than `MAX_UTTERANCE` characters.
    """
    if len(utterance) > MAX_UTTERANCE:
        raise UtteranceError(
            f"the utterance has {len(utterance):,} characters, and {MAX_UTTERANCE:,} are the most; shorten it"
        )
    text = utterance.translate(lexicon.QUOTES)
    words = []
    for word in lexicon.TOKEN.findall(text):
        cut = word[0] not in "\"'" and word.endswith("'")
        words.append(word[:-1] if cut else word)
    if not any(any(c.isalpha() for c in word) for word in words):
        raise UtteranceError("the utterance has no words; say what the flow should do")
    return words


def clauses_of(utterance: str, applications: Collection[str] = ()) -> list[Clause]:
    """Returns the clauses of an utterance in the order of their steps.

    `applications` are names in lower case, each written as one word. Raises UtteranceError where the utterance is empty
    or too long.
    """
    clauses: list[Clause] = []
    for number, sentence in enumerate(sentences_of(utterance, applications)):
        text = " ".join(sentence)
        found = lexicon.TOGETHER.search(text)
        before, after = (text[: found.start()], text[found.end() :].strip()) if found else (text, "")
        plain = lexicon.BREAK.sub("", before)
        about = number, last_verb(clauses), applications
        whole = " and ".join(filter(None, (plain, after)))
        read = _Reader(whole.split(), *about).clauses() if whole else []
        # "close it, then in parallel mail the caller and page the team": what stands before is done before,
        # and "create a tag and a release in parallel, then mail the team": what stands behind is done after
        apart = bool(plain and after) and plain != before.rstrip()
        tail = text[found.end() :] if found else ""
        behind = bool(plain and after) and not apart and lexicon.AFTERWARDS.match(tail) is not None
        size = len(_Reader(plain.split(), *about).clauses()) if apart or behind else 0
        first, last = (size, len(read)) if apart else (0, size if behind else len(read))
        clauses += [replace(clause, together=found is not None and first <= n < last) for n, clause in enumerate(read)]
    return clauses


def sentences_of(utterance: str, applications: Collection[str] = ()) -> list[list[str]]:
    """Returns the words of each sentence as imperatives in the order of their steps; see `clauses_of`."""
    words_of(utterance)
    return rewritten(_sentences(utterance), applications)


def last_verb(clauses: Sequence[Clause]) -> str:
    """Returns the verb of the last step clause; "" where there is none."""
    return next((clause.verb for clause in reversed(clauses) if clause.kind == STEP), "")


def _sentences(utterance: str) -> list[list[str]]:
    sentences: list[list[str]] = [[]]
    for word in words_of(rephrased(utterance.translate(lexicon.QUOTES))[:MAX_UTTERANCE]):
        if word in lexicon.ENDS:
            sentences.append([])
        else:
            sentences[-1].append(word)
    return [_without_politeness(words) for words in sentences if words]


def _without_politeness(words: list[str]) -> list[str]:
    text = " ".join(words)
    cut = lexicon.POLITE.match(text)
    return text[cut.end() :].split(" ") if cut and '"' not in cut.group() and cut.end() < len(text) else words


def is_event(words: Sequence[str]) -> bool:
    """Returns whether words in lower case say that something happens, and not what a record is like."""
    for place, word in enumerate(words[1:], 1):
        if word in ("is", "are", "gets", "get", "has", "have"):
            rest = [each for each in words[place + 1 :] if each not in ("been", "just", "newly", "being")]
            return bool(rest) and rest[0] in lexicon.HAPPENED
        if word in lexicon.AUXILIARIES or word in lexicon.COMPARING:
            return False
        if may_be_third_person(word) or (is_base(word) and words[place - 1] in ("we", "i", "you", "they", "people")):
            return True
    return False


@lru_cache(maxsize=8192)
def _lower(word: str) -> str:
    return word.lower()


class _Reader:
    """Reads one sentence from left to right."""

    def __init__(self, words: list[str], sentence: int, verb: str, applications: Collection[str]) -> None:
        self.words, self.sentence, self.verb, self.applications = words, sentence, verb, applications
        self.lower = [_lower(word) for word in words]
        self.found: list[Clause] = []
        self.at = 0
        self.fronted: tuple[str, ...] = ()

    def clauses(self) -> list[Clause]:
        while self.at < len(self.words):
            adverbs = self._skip_connectives()
            if self.at >= len(self.words):
                break
            before = self.at
            self._clause(adverbs)
            if self.at == before:
                self.at += 1
        if self.found:
            self.found[0] = replace(self.found[0], opens=True)
        for place, (step, following) in enumerate(pairwise(self.found)):
            alone = step.kind == following.kind == STEP and len(step.words) == 1 and not step.shares_verb
            if alone and "then" not in following.adverbs:
                self.found[place] = replace(
                    step, words=(*step.words, *following.words[1:])
                )  # "get and delete the folder"
        for place, (step, loop) in enumerate(pairwise(self.found)):
            if (
                step.kind == STEP
                and loop.postfix
                and loop.kind == LOOP
                and loop.marker.split()[0] in lexicon.PREPOSITIONS
            ):
                self.found[place] = replace(step, words=(*step.words, loop.marker.split()[0], *loop.words))
        return self.found

    def _skip_connectives(self) -> tuple[str, ...]:
        skipped = []
        while self.at < len(self.words):
            word = self.lower[self.at]
            if word in (",", ":", "&", "and", "or", "but", "(", ")", "plus") or word in lexicon.ADVERBS:
                if (word == "or" and (self._matches(lexicon.ELSES) or self._matches(lexicon.ELSE_IFS))) or (
                    word in ("after", "once") and not self._is_bare(self.at)
                ):
                    break
                skipped.append(word)
                self.at += 1
            elif word in ("try", "attempt") and (size := self._tried()):
                skipped.append("try")
                self.at += size
            elif self.lower[self.at : self.at + 3] == ["as", "well", "as"] or self.lower[self.at : self.at + 2] in (
                ["along", "with"],
                ["followed", "by"],
                ["together", "with"],
                ["after", "that"],
                ["before", "that"],
            ):
                skipped.append(word)
                self.at += 3 if word == "as" else 2
            else:
                break
        return tuple(skipped)

    def _tried(self) -> int:
        """The number of words of "try to" and "try" before a verb, whose base form then stands there; 0 for none."""
        following = self.lower[self.at + 1 : self.at + 2]
        if following == ["to"]:
            return 2
        if following and following[0].endswith("ing"):
            lemma = lemma_of_verb(following[0])
            self.words[self.at + 1] = self.lower[self.at + 1] = lemma.removesuffix("ing")
            return 1
        return 0

    def _is_bare(self, place: int) -> bool:
        """Whether "after" or "once" is an adverb: "that", a comma or nothing follows."""
        return self.lower[place + 1 : place + 2] in ([], [","], ["that"], ["this"])

    def _matches(self, pattern: re.Pattern[str], place: int | None = None) -> int:
        """The number of words from the place on that the pattern takes; 0 for none."""
        start = self.at if place is None else place
        rest = " ".join(self.lower[start : start + 8])
        match = pattern.match(rest)
        return len(match.group().split()) if match and match.group() else 0

    def _clause(self, adverbs: tuple[str, ...]) -> None:
        if size := self._scheduled() or self._occasion():
            self._add(Clause(START, tuple(self.words[self.at : self.at + size]), adverbs=adverbs))
            self.at += size
        elif size := self._matches(lexicon.ELSE_IFS):
            self._condition(size, adverbs, alternative=True)
        elif size := self._matches(lexicon.ELSES):
            self._add(Clause(ELSE, (), marker=" ".join(self.lower[self.at : self.at + size]), adverbs=adverbs))
            self.at += size
        elif self.lower[self.at] in lexicon.CONDITION_WORDS or self.lower[self.at : self.at + 2] == ["in", "case"]:
            self._condition(1 if self.lower[self.at] in lexicon.CONDITION_WORDS else 2, adverbs)
        elif self._matches(lexicon.WHILES) and (size := self._matches(lexicon.WHILES)):
            self._header(WHILE, size, adverbs)
        elif size := self._matches(lexicon.LOOPS) or self._fronted_plural():
            self._header(LOOP, size, adverbs)
        else:
            self._step(adverbs)

    def _scheduled(self) -> int:
        """The words of a time at which the flow begins, at the begin or at the end of the first sentence."""
        size = 0 if self.sentence else self._matches(lexicon.SCHEDULE)
        return size if not self.found or self.at + size == len(self.words) else 0

    def _occasion(self) -> int:
        """The words of what a flow is for at the begin of a sentence: "on a failed build:", "upon receipt, ", "new hire:"."""
        end = next((i for i, word in enumerate(self.lower[:_OCCASION]) if word in (":", ",")), 0)
        if self.at or not end or end + 1 >= len(self.lower):
            return 0
        first, colon = self.lower[0], self.lower[end] == ":"
        if first == "upon" or (first == "on" and colon):
            return end
        named = any(self._names_application(place) for place in range(end))
        heads = colon and end <= _HEADING and not named and not set(self.lower[:end]) & (lexicon.DETERMINERS - {"new"})
        return (
            end
            if heads and first not in lexicon.CONDITION_WORDS and not lexicon.LOOPS.match(" ".join(self.lower))
            else 0
        )

    def _fronted_plural(self) -> int:
        """1 where "for urgent tickets, …" begins."""
        if self.lower[self.at] != "for" or "," not in self.lower[self.at + 2 : self.at + 7]:
            return 0
        return int(self.lower[self.lower.index(",", self.at) - 1].endswith("s"))

    def _add(self, clause: Clause) -> None:
        self.found.append(replace(clause, sentence=self.sentence))

    def _condition(self, size: int, adverbs: tuple[str, ...], alternative: bool = False) -> None:
        marker = " ".join(self.lower[self.at : self.at + size])
        start = self.at + size
        end = self._end_of_condition(start)
        postfix = bool(self.found) and self.found[-1].kind == STEP and end >= len(self.words) and "," not in adverbs
        first = not self.sentence and not self.found and marker in ("when", "whenever")
        if first and end < len(self.words) and is_event(self.lower[start:end]):
            self._add(Clause(START, tuple(self.words[start:end]), marker=marker, adverbs=adverbs))
            self.at = end
            return
        last = end
        while last > start + 1 and self.lower[last - 1] in lexicon.COORDINATORS:
            last -= 1
        words = tuple(self.words[start:last])
        self._add(Clause(CONDITION, words, marker=marker, adverbs=adverbs, postfix=postfix, alternative=alternative))
        self.at = end

    def _end_of_condition(self, start: int) -> int:
        """Where a condition ends: before "then", a comma, or the first imperative after a noun."""
        for place in range(start, len(self.words)):
            word = self.lower[place]
            if word == "then" or (word in (",", ":") and place > start):
                return place
            counted = place > start + 2 and self.lower[place - 1][0].isdigit()
            if counted and word in ("the", "our", "my", "somebody", "someone"):  # "more than 100 the boss signs"
                return place
            following, before = self.lower[place + 1 : place + 2], self.lower[place - 1]
            if following in ([], [","], [":"], ["then"]):
                continue
            if place >= start + 2 and self._is_imperative(place) and not self._is_value(place):
                return place
            said = is_participle(before) or (may_be_third_person(before) and before not in lexicon.AUXILIARIES)
            said = said or self._is_value(place - 1)
            begins = following[0] in lexicon.DETERMINERS | lexicon.PREPOSITIONS | {"it", "them"} or before in _DECIDED
            if place > start and said and begins and is_base(word) and word not in lexicon.PREPOSITIONS:
                return place  # "if it fails wait for a day"
        return len(self.words)

    def _is_value(self, place: int) -> bool:
        """Whether a word is part of a name or follows what makes it no imperative: "is Closed Complete"."""
        named = self.words[place][:1].isupper() and place > 1 and self.words[place - 1][:1].isupper()
        return named or self.lower[place - 1] in lexicon.NOT_BEFORE

    def _header(self, kind: str, size: int, adverbs: tuple[str, ...]) -> None:
        marker = " ".join(self.lower[self.at : self.at + size])
        start = self.at + size
        end = start + (self.lower[start : start + 1] in (["them"], ["these"], ["those"]))
        follows = self.lower[end] if end < len(self.words) else ""
        whole = end > start or marker.endswith(" one")  # no noun follows: "for each of them page the engineer"
        whole = whole and follows not in ("with", "that", "which", "who", "whose", "in", "from", "of")
        colon = next((i for i in range(start, min(len(self.words), start + _HEADING + 2)) if self.lower[i] == ":"), 0)
        end = colon or end
        while end < len(self.words):
            word = self.lower[end]
            boundary = word in (",", ":", "then") or word in lexicon.CONDITION_WORDS
            if whole and not boundary and is_base(word):
                break
            following = self.lower[end + 1] if end + 1 < len(self.words) else ":"
            acts = is_base(word) and word not in lexicon.NOUNS and following in ("it", "them", "its", "their")
            begins = (acts or self._is_imperative(end)) and not self._is_value(end) and following != ":"
            if boundary or (end > start and begins):
                break
            more = word == "and" and end + 1 < len(self.words)
            if more and (self._is_imperative(end + 1) or self._matches(lexicon.LOOPS, end + 1)):
                break
            end += 1
        # "get the tickets and for each ticket create an issue": a header behind a connective governs what follows
        governs_next = "," in adverbs or self.lower[end : end + 1] == [":"]
        governs_next = governs_next or (bool(lexicon.COORDINATORS.intersection(adverbs)) and end < len(self.words))
        postfix = bool(self.found) and self.found[-1].kind == STEP and not governs_next
        self.at = end
        named = [word for word in self.lower[start:end] if word not in ("them", "these", "those")]
        if (
            named or kind == WHILE or not self.found or self.found[-1].kind != LOOP
        ):  # "go through the leads, for each …"
            self._add(Clause(kind, tuple(self.words[start:end]), marker=marker, adverbs=adverbs, postfix=postfix))

    def _step(self, adverbs: tuple[str, ...]) -> None:
        start = self.at
        shares = bool(self.verb) and not self._begins_with_verb(start) and self._follows_a_step(adverbs)
        end = start + 1
        while end < len(self.words) and not self._ends_step(start, end):
            end += 1
        words = tuple(self.words[start:end])
        if self.lower[start] in lexicon.PREPOSITIONS and self.lower[end : end + 1] == [","] and not shares:
            self.fronted, self.at = words, end  # "in slack, search for it" is "search for it in slack"
            return
        if shares and self.lower[start] in lexicon.PREPOSITIONS:
            before = self.found[-1].words[0 if self.found[-1].shares_verb else 1 :]
            cut = next((i for i, word in enumerate(before) if word.lower() in lexicon.PREPOSITIONS), len(before))
            words = (*before[:cut], *words)
        words, self.fronted = (*words, *self.fronted), ()
        if self.lower[start] == "not":  # "delete the card but not the board"
            words, shares = ("do", "not", self.verb, *words[1:]), False
            self._add(Clause(STEP, words, verb="do", adverbs=adverbs))
            self.at = end
            return
        follows = self.lower[start + 1 : start + 2]
        named = self._names_application(start) and follows and follows[0] not in lexicon.DETERMINERS
        fragment = named or not self._begins_with_verb(start)
        if not shares and fragment and len(words) <= _FRAGMENT and any(map(self._names_application, range(start, end))):
            words = ("create", *words)  # "new issue -> asana task -> slack message"
        if not shares:
            self.verb = words[0]
        self._add(Clause(STEP, words, verb=self.verb, shares_verb=shares, adverbs=adverbs))
        self.at = end

    def _follows_a_step(self, adverbs: tuple[str, ...]) -> bool:
        return bool(self.found) and bool(adverbs) and self.found[-1].kind == STEP

    def _begins_with_verb(self, place: int) -> bool:
        word = self.lower[place]
        return (is_base(word) or bool(operations_of_verb(word))) and self._is_imperative(place)

    def _ends_step(self, start: int, place: int) -> bool:
        word = self.lower[place]
        if word in (":", "("):
            return self.lower[place + 1 : place + 2] == [] or self.lower[place + 1][0] not in "\"'"
        if word in lexicon.CONDITION_WORDS or self.lower[place : place + 2] == ["in", "case"]:
            return word != "when" or place > start + 1
        if self._matches(lexicon.ELSES, place) or self._matches(lexicon.ELSE_IFS, place):
            return True
        if place > start + 1 and self._matches(lexicon.LOOPS, place):
            return True
        if word in ("while", "until") and place > start + 1:
            return True
        if word == "then" or (word == "followed" and self.lower[place + 1 : place + 2] == ["by"]):
            return True
        after = self._after_connectives(place)
        if after == place or after >= len(self.words):
            return False
        if self._is_imperative(after) or word == ",":
            return True
        marked = (
            self._matches(lexicon.LOOPS, after)
            or self._matches(lexicon.ELSES, after)
            or self._matches(lexicon.ELSE_IFS, after)
        )
        if marked or self.lower[after] in lexicon.CONDITION_WORDS:
            return True
        return self._is_coordination(start, place, after)

    def _after_connectives(self, place: int) -> int:
        if self.lower[place : place + 3] == ["as", "well", "as"]:
            return place + 3
        if self.lower[place : place + 2] in (["along", "with"], ["together", "with"]):
            return place + 2
        if self.lower[place] not in (",", "and", "&", "but", "plus"):
            return place
        while place < len(self.words) and (
            self.lower[place] in (",", "and", "&", "but", "plus") or self.lower[place] in lexicon.ADVERBS
        ):
            place += 1
        return place

    def _is_coordination(self, start: int, place: int, after: int) -> bool:
        """Whether a noun phrase after "and" is a second object of the verb."""
        inside = [word for word in self.lower[start + 1 : place] if word in lexicon.PREPOSITIONS]
        if (
            inside
            and inside[-1] in ("with", "of", "between", "about", "for", "by")
            and self.lower[after] not in lexicon.DETERMINERS - {"the", "its", "their"}
        ):
            return False
        if self.lower[after] in lexicon.PREPOSITIONS:
            return self._names_application(after + 1)
        return True

    def _names_application(self, place: int) -> bool:
        """Whether an application stands at the place: "post it in slack and on teams" is two steps."""
        return any("".join(self.lower[place : place + size]) in self.applications for size in (1, 2, 3))

    def _has_doer(self, place: int) -> bool:
        """Whether "have" asks that somebody does something: "have legal check it"."""
        connected = not place or self.lower[place - 1] in (",", "and", "then", ":")
        following = self.lower[place + 1 : place + 6]
        return connected and any(
            is_base(word) and before not in lexicon.DETERMINERS for before, word in pairwise(following)
        )

    def _is_imperative(self, place: int) -> bool:
        """Whether the word at the place may be an imperative: a verb's base form that no noun phrase explains."""
        word = self.lower[place]
        if word == "have" and self._has_doer(place):
            return True
        if not is_base(word) or word in lexicon.AUXILIARIES or word in lexicon.ADVERBS or word in lexicon.PREPOSITIONS:
            return False
        before = self.lower[place - 1] if place else ""
        if before in lexicon.NOT_BEFORE:
            return False
        following = self.lower[place + 1] if place + 1 < len(self.words) else ""
        connected = not place or before in ("", ",", "and", "then", "&", "but") or before in lexicon.ADVERBS
        if word == "comment" and connected and following == "on":
            return True
        if word in lexicon.NOUNS:
            return (
                following in lexicon.DETERMINERS
                or following in ("it", "them", "everyone", "if")
                or (place == 0 and following not in ("", "and", ",", "is", "are", "of"))
            )
        if word in lexicon.VERBS and not connected:
            return following in lexicon.DETERMINERS or following in ("it", "them")
        if word in lexicon.VERBS:
            return following not in ("", "and", ",", "of") and following not in lexicon.AUXILIARIES
        if not operations_of_verb(word) and not connected:
            return False
        return following not in lexicon.AUXILIARIES and following != "of"
