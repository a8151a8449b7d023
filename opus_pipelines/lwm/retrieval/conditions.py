"""Conditions of a procedure's sentences, and whether a request states them.

A condition is an amount ("from EUR 400 on"), a measure ("40 metres or longer"), or words. Words are stated where a
sentence of the request has most of them, by their rarity in the procedure, and denied where it has the rarest of them
with a negation. That papers are missing, or all there, is one condition in many words. Words of two languages are
compared by their English translations. The rules are this project's own, for the languages that `language.reading` has
tables of.
"""

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from opus_pipelines.intakes.requirements.rules import split_sentences
from opus_pipelines.language.grammar.figures import MONTHS, TIME, with_tokens
from opus_pipelines.language.reading.languages import (
    ENGLISH,
    NO_TEXT,
    forms_within,
    has_form,
    language_of,
    tables_of,
    word_forms,
)
from opus_pipelines.language.word_stems import stem
from opus_pipelines.lwm.retrieval.similar_cases import amounts_in

LEAST_STATED = 0.55  # share of a condition's words, by rarity, from which a sentence with the rarest of them states it
SURELY_STATED = 0.6  # the same without the rarest
LEAST_EXAMPLE = 0.5  # the same of an example of something amiss, in a sentence that tells of something amiss
STATED_IN_ALL, LEAST_SPREAD = 0.65, 3  # the same of the request as a whole, and the least words of such a condition
LEAST_TELLING = 2  # content words of a condition that is told as a moment
DENIED = 0.4  # share from which a sentence with a negation denies it
NEARLY = 0.95  # share of the highest rarity from which a word counts as one of the rarest
_COMPARE = {"less": operator.lt, "most": operator.le, "more": operator.gt, "least": operator.ge}
_BOUND_REACH = 30  # characters behind the cue of a bound in which its amount begins
_OPPOSITES = {"fill": ("empti", "blank")}
_WHOSE = re.compile(
    r"^(?P<when>(?:an?|the|any|all)?\s*[\w' -]+?(?<!\bon)(?<!\bin)(?<!\bat)(?<!\bto)(?<!after)(?<!before)"
    r" (?:that|which|who) .+?) "
    r"(?:is|are|must be|goes?|bears?|needs?|requires?|receives?)\s",
    re.I,
)
_ABOVE = re.compile(r"^(?P<when>[\w' -]+? (?:above|below|over|under|from|up to) .+?) (?:is|are|must be|needs?)\s", re.I)
_ABOUT = re.compile(
    r"^(?:[^,]{3,40}, )?(?P<when>(?:every|each|any|all) [\w' -]+? (?:about|for|from|with|on|of|by|concerning) .+?) "
    r"(?:gets?|receives?|needs?|requires?|must|has to|have to|is|are)\s",
    re.I,
)
_WITH = re.compile(  # "A file with a gap gets a call"
    r"^(?P<when>an? [\w' -]+? (?:with|without|about) .+?) (?:gets?|receives?|needs?|requires?|goes)\s", re.I
)
_MORE = re.compile(  # "New from May on: leases of vehicles get one more step"
    r"^(?:[^:]{3,60}: )?(?P<when>[\w' -]+? (?:of|for|with|from|about|by) [\w' -]+?) "
    r"(?:gets?|receives?|needs?|requires?|has|have) (?:one more|an? (?:more|extra|additional|further|new))\s",
    re.I,
)
_WHAT = re.compile(
    r"^(?P<when>what(?:ever)? .+?(?: (?:while|when|that|which|who) .+? (?:is|are|has|have|can) .+?)?) "
    r"(?:is|are|ends?|goes|go|must|has to)\s",
    re.I,
)
_FOR = re.compile(  # "For royalties the manager is not asked"
    r"^(?P<when>For (?!(?:an?|all|each|every|the|this|that) )[\w' -]{3,40}?) (?:the|an?|no|we|nobody|neither|only)\s"
    r"[^,]*?\b(?:is|are|must|has|have|needs?|can|may|will|do|does)\b"
)
_VERB = r"\b(?:is|are|was|were|has|have|looks?|turns? up)\b"
_ANY_OF = re.compile(  # "If a pay slip, a deed or the quotation is wanting, ..."
    rf"(?:^|\s)(?P<when>(?:If|Where|When) (?:(?!{_VERB})[^,.;])+, (?:(?!{_VERB})[^.;])+? or (?:(?!{_VERB})[^,.;])+"
    rf"{_VERB}[^,.;]*)(?=,)"
)
_ENGLISH_SUBJECTS = (
    _ABOVE,
    _WHOSE,
    _ABOUT,
    _WITH,
    _MORE,
    _WHAT,
)  # conditions that the subject of an English sentence states
_WHOLE = re.compile(
    r"^\s*(?:[A-Z]{1,3}\s?)?(\d{3,})(?![\d.,]*\d|\s*(?:%|per ?cent|days?|hours?|months?|years?|minutes?|weeks?))"
)
_CURRENCY = r"(?:[A-Z]{3}\b|[€£$]|(?i:euros?|dollars?|pounds?)\b)"
PARENTHESES = re.compile(r"\(([^)]*)\)")
_LIGHT = frozenset(  # stems that say little
    "only case ani everi each while pend sign did do one under about cannot could nobodi noth none".split()  # noqa: SIM905
)
_WRAPPED = re.compile(r"(?<=\S)\n(?=[a-z])")  # a sentence that goes on in the next line
_PREDICATE = re.compile(  # what a condition says of its subject, in English
    r"\b(?:is|are|was|were|be|been|has|have)\s(?:(?:been|not|never|already|always|also|still|to be)\s)*([a-z]+)\W*$"
)
_HOW = (
    r"(?:(?P<more>\w+er than|more than|above|over)|(?P<less>(?:young|small|short|less|low|light|few)(?:er)? than|below"
    r"|under)"
    r"|(?P<least>at least|from)|(?P<most>at most|up to))"
)
_MEASURED = re.compile(rf"(?:(?P<noun>\w+) )?{_HOW} (?P<n>\d+(?:\.\d+)?)(?: (?P<unit>[a-z]+))?", re.I)
_MEASURED_BEHIND = re.compile(
    r"(?P<n>\d+(?:\.\d+)?) (?P<unit>[a-z]+)"
    r" (?:(?P<most>or (?:less|shorter|smaller|fewer|lighter|younger))|(?P<least>or (?:more|\w+er)))",
    re.I,
)
_FIGURES = re.compile(r"(?:([a-z]+)\W{1,2})?(?<![\w.])(\d+(?:\.\d+)?)(?![\w,]*\d)\s?([a-z]*)")
_UNITS = {"m": "metre", "km": "kilometre", "kg": "kilogram", "t": "ton", "cm": "centimetre", "h": "hour"}
_CUE_OF_CONDITION = re.compile(r"^\w+\s")  # "If", "Wenn", "Falls"
_TIMED = re.compile(TIME)


class ConditionGrammar:
    """The patterns of one language for conditions, orders and negations."""

    def __init__(self, code: str) -> None:
        self.language = tables_of(code)
        cue = lambda name: self.language.cues[name].pattern
        text, phrase, bound = r"(?:[^,(]|,(?=\d))*", cue("fronted_phrase"), cue("fronted_bound")
        behind = rf"(?:\([^)]*\)(?:{text}(?=,\s)|(?=\s))|(?=,\s))"
        # a capital begins a sentence, behind a heading or a number, too
        starts = f"{cue('fronted_clause')}|{phrase}|{bound}|{cue('fronted_event')}"
        fronted = [re.compile(rf"(?:^|\s)(?P<when>(?:{starts}){text}{behind})")]
        of_amount = rf"(?:{phrase}\s[^\d,.;]{{,40}}?\s(?i:{bound})|{bound})" if phrase != NO_TEXT else bound
        fronted.append(re.compile(rf"(?:^|\s)(?P<when>{of_amount}\s[^\d,.;]*\d[\d.,]*(?:\s?{_CURRENCY})?)(?=\s)"))
        if (finite := cue("finite")) != NO_TEXT:
            fronted.insert(
                0, re.compile(rf"(?:^|\s)(?P<when>(?:{phrase}|{bound})(?:[^.;]|\.(?=\d))*?)(?=,?\s(?i:{finite}))")
            )
        self.trailing = re.compile(rf"(?:\s|^)(?P<when>{cue('trailing')}[^.;|]*)", re.I)
        bounds = "|".join(cue(compare) for compare in _COMPARE)
        limited = re.compile(
            rf"^(?P<when>[^,.;:|]{{3,60}}?(?:{bounds})\s[^,.;|\d]{{,12}}\d[\d.,]*\d(?:\s?{_CURRENCY})?)(?=\s)", re.I
        )
        self.limited = limited
        if code == ENGLISH:
            self.conditions = (_FOR, _ANY_OF, *fronted, limited, *_ENGLISH_SUBJECTS, self.trailing)
        else:
            self.conditions = (limited, *fronted, self.trailing)
        self.needs_bound = re.compile(cue("fronted_bound"), re.I)
        self.permission = re.compile(
            rf"{cue('permits')}\s(?P<when>(?!be\b)[^,.;(]*?)(?=\s(?:within|until|at|in)\b|[,.;(]|$)", re.I
        )
        self.order = re.compile(
            rf"(?P<how>{cue('before')}|(?P<after>{cue('after')}))(?P<what>[^,.;|()]*?)"
            rf"(?={cue('joins')}|{cue('before')}|{cue('after')}|{cue('finite')}|[,.;|()]|$)",
            re.I,
        )
        self.clauses = re.compile(rf"[,;]\s|{cue('joins')}", re.I)
        self.lack = re.compile(rf"{cue('lack_of')}\s(?P<what>[^,.;|()]*?)(?=\s(?:{cue('finite')})|[,.;|()]|$)", re.I)
        self.event = re.compile(rf"(?:{cue('fronted_event')})\s", re.I)
        self.not_for = re.compile(rf"^{cue('not_for')}", re.I)
        self.otherwise = re.compile(rf"^{cue('otherwise')}", re.I)
        self.then = re.compile(rf"^{cue('then')}", re.I)
        self.goes_on = re.compile(rf"^{cue('goes_on')}", re.I)

    def bound(self, condition: str) -> tuple[str, float] | None:
        """Returns how a condition compares an amount of money, and that amount."""
        for compare in _COMPARE:
            match = self.language.cues[compare].search(condition)
            behind = condition[match.end() : match.end() + _BOUND_REACH] if match else ""
            amounts = amounts_in(behind) or [float(re.sub(r"[.,]", "", n)) for n in _WHOLE.findall(behind)[:1]]
            if amounts:
                return compare, amounts[0]
        return None

    def condition(self, text: str, shape: str) -> str:
        """Returns the condition of a sentence in its words; "" without one."""
        if shape == "row":
            return next((cell.strip() for cell in text.split("|") if self.trailing.match(cell.strip())), "")
        for pattern in self.conditions:
            for match in pattern.finditer(text):
                when = match["when"].strip()
                if not (pattern in (_ABOVE, self.limited) or self.needs_bound.match(when)) or self.bound(when):
                    return when
        return ""

    def is_negative(self, text: str) -> bool:
        """Tells whether a text has a negation."""
        return bool(self.language.has("negation", text) or self.language.has("omitted", text))


@cache
def grammar_of(code: str) -> ConditionGrammar:
    """Returns the patterns of a language; those of English for a language without tables."""
    return ConditionGrammar(code)


@dataclass(frozen=True)
class RequestText:
    """The title and the client input of an intake, as far as conditions need them."""

    text: str

    @cached_property
    def amounts(self) -> list[float]:
        """The distinct amounts of money."""
        return amounts_in(self.text)

    @cached_property
    def code(self) -> str:
        """The language."""
        return language_of(self.text) or ENGLISH

    @cached_property
    def is_complete(self) -> bool | None:
        """Whether the request says that all papers are there, or that one is missing; None where it says neither."""
        language = tables_of(self.code)
        said = [(language.has("incomplete", clause), language.has("complete", clause)) for clause in self._clauses]
        if any(is_missing and not is_whole for is_missing, is_whole in said):
            return False
        return True if any(is_whole for _, is_whole in said) else None

    @cached_property
    def tells_time(self) -> bool:
        """Whether the request states a time, such as "two weeks"."""
        return bool(_TIMED.search(with_tokens(self.text)))

    @property
    def _clauses(self) -> list[str]:
        return [clause for text in _texts(self.text) for clause in grammar_of(self.code).clauses.split(text)]

    def _of_measure(self, condition: str) -> bool | None:
        """Returns whether a condition with a measure ("40 metres or longer", "a release older than 5.2") holds.

        The request must have figures of the same unit, or directly behind the noun in front of the comparison; None
        where it has none, or the condition has no such measure.
        """
        match = _MEASURED.search(condition) or _MEASURED_BEHIND.search(condition)
        if match is None or (match["unit"] or "").casefold() in MONTHS:
            return None
        said, limit = match.groupdict(), float(match["n"])
        how = next(name for name in ("more", "less", "least", "most") if said.get(name))
        if how == "more" and not said.get("unit") and "older" in match[0].casefold():  # of a version
            how = "less"
        unit, noun = (said.get("unit") or "").rstrip("s").replace("meter", "metre"), stem(said.get("noun") or "")
        for word, number_of, behind in _FIGURES.findall(self.text.casefold()):
            its_unit = _UNITS.get(behind, behind.rstrip("s")).replace("meter", "metre")
            if (unit and its_unit == unit) or (not unit and noun and stem(word) == noun):
                return _COMPARE[how](float(number_of), limit)
        return None

    def _of_completeness(self, condition: str, code: str) -> bool | None:
        """Returns whether a condition on missing or complete papers holds; None where it is of something else."""
        language = tables_of(code)
        wants = language.has("complete", condition)
        if self.is_complete is None or not (wants or language.has("incomplete", condition)):
            return None  # it is of something else
        if self.is_complete or wants:
            return wants == self.is_complete
        other = language.cues["papers"].sub(" ", language.cues["incomplete"].sub(" ", condition))
        return True if not _content(_CUE_OF_CONDITION.sub(" ", other), code) else None

    def holds(self, condition: str, rarity: Mapping[str, float], code: str = ENGLISH) -> bool | None:
        """Returns whether a condition, written in a language, holds for the request; None where it does not tell."""
        if (bound := grammar_of(code).bound(condition)) is not None:
            compare, limit = bound
            sides = {_COMPARE[compare](amount, limit) for amount in self.amounts}
            return sides.pop() if len(sides) == 1 else None
        if code == ENGLISH == self.code and (is_met := self._of_measure(condition)) is not None:
            return is_met
        if (is_met := self._of_completeness(condition, code)) is not None:
            return is_met
        if tables_of(code).has("incomplete", condition) and self.is_complete is None:
            return None  # that a drawing is missing is stated by no request that only has a drawing
        if _TIMED.search(with_tokens(condition)) and not self.tells_time:
            return None  # "a year after the delivery" holds for no request that tells no time
        inside = PARENTHESES.findall(condition)
        parts = [
            PARENTHESES.sub(" ", condition),
            *(part for text in inside for part in re.split(r"[,;]|\b(?:or|oder|of|ou|o)\b", text)),
        ]
        answers = [
            self._states_part(part, rarity, code, is_example=n > 0)
            for n, part in enumerate(parts)
            if _content(part, code)
        ]
        return True if True in answers else False if False in answers[:1] else None

    def _states_part(self, part: str, rarity: Mapping[str, float], code: str, is_example: bool) -> bool | None:
        usual = max(rarity.values(), default=1.0)
        is_foreign = code != self.code
        sentences = _sentences(self.text, self.code, is_foreign)
        wanted = {
            word: max(rarity.get(form, 0.0) for form in word) or usual for word in _content(part, code, is_foreign)
        }
        total = sum(wanted.values())
        if not total:
            return None
        if is_example:
            return self._has_example(wanted, is_foreign) or None
        rare = [word for word, weight in wanted.items() if weight >= NEARLY * max(wanted.values())]
        predicate = _content(match[1], code, is_foreign) if (match := _PREDICATE.search(part)) else ()
        denied = grammar_of(code).is_negative(part)
        of_negation = total / len(wanted) if denied else 0.0  # a "not" counts as a word
        total += of_negation
        best = None
        following = [words for words, _, _ in sentences[1:]]
        for (words, is_negative, clauses), after in zip(sentences, [*following, ()], strict=False):
            own = [denies for forms, denies in clauses if any(has_form(word, forms) for word in wanted)]
            negative = any(own) if own else is_negative
            near = (*words, *after)
            shared = sum(weight for word, weight in wanted.items() if has_form(word, near))
            share = (shared + of_negation * (negative and denied)) / total
            has_rarest = any(has_form(word, words) for word in rare)
            if has_rarest and negative != denied and share >= DENIED:
                return False
            opposites = {opposite for word in rare for form in word for opposite in _OPPOSITES.get(form, ())}
            against = [forms for forms, denies in clauses if not denies] if opposites else []
            if any(opposite in form for opposite in opposites for own in against for word in own for form in word):
                best = bool(denied and shared)  # "empty" states "not filled in"
            elif best is None and share >= (LEAST_STATED if has_rarest else SURELY_STATED):
                best = forms_within(predicate, near) or not predicate or None
        if best is None and (not predicate or forms_within(predicate, [w for words, *_ in sentences for w in words])):
            return _states_in_all(sentences, wanted, denied)
        return best

    def _has_example(self, wanted: Mapping[frozenset[str], float], is_foreign: bool) -> bool:
        """Tells whether a sentence has all words of an example of a condition, or half of them and something amiss.

        "Nothing is missing" and "nothing odd" deny that something is amiss.
        """
        language, total = tables_of(self.code), sum(wanted.values())
        sentences = _sentences(self.text, self.code, is_foreign)
        for text, (forms, negative, _) in zip(_texts(self.text), sentences, strict=True):
            is_amiss = negative != (language.has("odd", text) or language.has("incomplete", text))
            shared = sum(weight for word, weight in wanted.items() if has_form(word, forms))
            if shared >= (LEAST_EXAMPLE if is_amiss else NEARLY) * total:
                return True
        return False


_Clause = tuple[tuple[frozenset[str], ...], bool]
RequestSentence = tuple[tuple[frozenset[str], ...], bool, list[_Clause]]


@lru_cache(64)
def _sentences(request: str, code: str, is_translated: bool) -> list[RequestSentence]:
    """Returns the forms of the words of each sentence, whether it has a negation, and the same of its clauses."""
    grammar = grammar_of(code)

    def read(text: str) -> _Clause:
        return word_forms(text, code, is_translated), grammar.is_negative(text)

    return [(*read(text), [read(clause) for clause in grammar.clauses.split(text)]) for text in _texts(request)]


def _texts(request: str) -> list[str]:
    """Returns the sentences of a request, and the parts of one between semicolons."""
    sentences = (text for line in _WRAPPED.sub(" ", request).splitlines() for _, text in split_sentences(line))
    return [part for text in sentences for part in text.split("; ")]


def _states_in_all(
    sentences: Sequence[RequestSentence], wanted: Mapping[frozenset[str], float], denied: bool
) -> bool | None:
    """Returns True where the sentences without a negation together have nearly all words, else None."""
    words = [word for forms, negative, _ in sentences if negative == denied for word in forms]
    shared = sum(weight for word, weight in wanted.items() if has_form(word, words))
    return True if len(wanted) >= LEAST_SPREAD and shared >= STATED_IN_ALL * sum(wanted.values()) else None


def is_telling(condition: str, code: str) -> bool:
    """Returns whether a condition has enough words for a request to state it: "when nobody looks" has one."""
    return len(_content(condition, code)) >= LEAST_TELLING


def _content(text: str, code: str, is_translated: bool = True) -> tuple[frozenset[str], ...]:
    words = word_forms(text, code, is_translated)
    return tuple(word for word in words if not any(form in _LIGHT or form.isdigit() for form in word))
