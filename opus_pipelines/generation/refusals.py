"""Requests that the procedure itself does not take: data are missing that it asks for, or they are for another process.

Each reason quotes the sentence of the procedure on which it rests. A part of a request (an item of its list) that is
for another process is told, and the rest is planned. The rules are this project's own, for the languages that
`language.reading` has tables of.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from opus_pipelines.intakes.elements import PROCEDURAL, Element, foreign_reason
from opus_pipelines.intakes.requirements.rules import Sentence, sentences_of, split_sentences
from opus_pipelines.language.grammar.figures import MONTHS, figure_of, hours, with_tokens
from opus_pipelines.language.reading.languages import (
    ENGLISH,
    Language,
    forms_within,
    gloss,
    has_form,
    language_of,
    tables_of,
    translated_parts,
    word_forms,
)
from opus_pipelines.language.word_stems import stem
from opus_pipelines.lwm.retrieval.similar_cases import amounts_in

_LEADING = re.compile(
    r"^(?:without|the|any|its|an?|der|die|das|den|dem|eine?[nrms]?|ohne|angabe de[rs]|le|la|les|l.|une?|sans|het|de|"
    r"een|zonder|el|los|las|una?|sin)\s+",
    re.I,
)
_RELATIVE = re.compile(r",|\s(?:that|which|who|der|die|das|qui|que|dat|die)\s", re.I)
_WITH = re.compile(r"^\s*(?:with|mit|avec|met|con)\s+", re.I)
_WANTS = re.compile(
    r"\b(?:must|needs?|has to|have to|please|should|want(?:s|ed)?|expect\w*|require\w*|unless|deadline|settled|due)\b",
    re.I,
)
_WANTED_WITHIN = re.compile(
    rf"{_WANTS.pattern}.*?\b(?:within (?P<within>[\w ,.-]+)|(?P<from_now>(?:\w+ ){{1,3}}hours?) from now)", re.I
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_NTH = r"(?:st|nd|rd|th)?"
_DAY = re.compile(rf"(?P<day>\d{{1,2}}){_NTH} (?:of )?(?P<month>(?:{_MONTH})[a-z]*)", re.I)
_BY = re.compile(
    rf"\b(?:by|until|before|not later than) (?:the |this )?(?:\d{{1,2}}{_NTH} (?:of )?(?:{_MONTH})[a-z]*|"
    rf"end of (?:the|this) (?:day|week|month)|(?:coming |next )?{_WEEKDAY}|tomorrow|today|tonight|noon|midnight|"
    r"\d{1,2}[:.]\d{2})",
    re.I,
)
_MOST_HOURS = tuple(
    (re.compile(cue, re.I), 24.0 * days)
    for cue, days in (
        ("month", 31),
        ("week", 7),
        (_WEEKDAY, 7),
        ("tomorrow", 2),
        (r"today|tonight|noon|midnight|day$|\d[:.]\d{2}", 1),
    )
)
_DATE = re.compile(
    rf"\b(?P<y>20\d\d)-(?P<m>\d\d)-(?P<d>\d\d)|"
    rf"\b(?P<d2>\d{{1,2}}){_NTH} (?P<month>{_MONTH})[a-z]* (?P<y2>20\d\d)",
    re.I,
)
_ITEM = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+\S")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b")
_NUMBERED = re.compile(r"\b(?:number|plate|code|reference|account|centre|center|id)\b", re.I)
_ASKS_WHICH = re.compile(r"(?:where|who|what|which)\b", re.I)
_LETTER = re.compile(r"\b(?:letter|e-?mail)\b", re.I)
_FIRST_PERSON = re.compile(r"\b(?:I|we|my|our|me|us)\b", re.I)
_OF = re.compile(r"\s(?:of|des|der|von|du|de|del|van)\s", re.I)
SIGNATURE = 3  # words of a greeting or a signature
ASKED_WITHIN = 5  # words behind an asking word in which a topic of one word is asked for
LONG_TOPIC, MOST_OF_TOPIC = 3, 0.7  # words of a long topic; share of them that a request has which asks for it
MOST_WORDS = 12  # of the topics that a sentence leaves to another process
_PLAIN_STEMS = frozenset(("number", "name", "date", "refer", "valid"))  # of a datum, which any request has


@dataclass(frozen=True)
class Elsewhere:
    """What of a request is for another process.

    Attributes:
        what: its name in the procedure.
        sentence: the sentence of the procedure that excludes it.
        place: where that stands.
        is_whole: whether it is the whole request.
    """

    what: str
    sentence: str
    place: str
    is_whole: bool

    @property
    def text(self) -> str:
        """The same for a person."""
        which = "the request is" if self.is_whole else "a part of the request is"
        return f"{which} for another process: {self.what}, by {self.place}: “{self.sentence}”"


def missing_data(elements: Sequence[Element]) -> str | None:
    """Returns which data the request lacks that the procedure asks for, with its sentence; None where it lacks none.

    Where a document of the request was not read or is in another language, the data may stand there.
    """
    inputs = [e for e in elements if e.role == "input"]
    text = "\n".join(e.text or "" for e in inputs)
    if not text.strip() or any(e.text is None for e in inputs) or foreign_reason(inputs):
        return None
    for element, sentence, following in _with_next(elements):
        language = tables_of(language_of(element.text or ""))
        found = _lacking(sentence, following, text, language)
        if found:
            verb, asked = ("is", "it") if len(found) == 1 else ("are", "them")
            said = f"{element.role}/{element.name}, {sentence.place}: “{sentence.text}”"
            return f"{', '.join(found)} {verb} missing in the request, ask for {asked}; {said}"
    return None


def _lacking(sentence: Sentence, following: Sentence | None, request: str, language: Language) -> list[str]:
    """Returns the data that a sentence asks for and a request lacks, where nothing is done without them.

    What a request must name ("the application that fails") is missing where it names nothing, and tells of a fault
    without a subject ("it does not work").
    """
    for pattern in language.lacking:
        match = pattern.search(sentence.text)
        if match is not None and (missing := _missing_of(match, request, language)):
            return missing
    named = language.cues["named"].search(sentence.text)
    behind = f"{sentence.text[named.end() :]} {following.text if following else ''}" if named else ""
    if named is None or not language.has("stops", behind):
        return []
    if unstated := _unstated(_data_in(named["what"], language), request, language):
        return unstated
    if _names_something(request):
        return []
    return [_RELATIVE.split(named["what"])[0].strip()]


def _missing_of(match: re.Match[str], request: str, language: Language) -> list[str]:
    """Returns the data that a clause asks for and a request lacks, where nothing is done without them."""
    said = match.groupdict()
    if _LETTER.search(match.string[: match.start("what")]) and not _FIRST_PERSON.search(request):
        return []  # a report or a form is no letter
    if not said.get("stop") and not language.has("stops", match.string[match.end("what") :]):
        return []
    if _ASKS_WHICH.match(match["what"]):
        return [match["what"].strip()] if _tells_none(match["what"], request, language) else []
    wanted = _data_in(match["what"], language)
    missing = _unstated(wanted, request, language)
    is_either = any(word in (said.get("how") or "").lower() for word in ("neither", "weder"))
    return missing if not is_either or len(missing) == len(wanted) else []


def _data_in(phrase: str, language: Language) -> list[str]:
    """Returns the data that a phrase lists, without articles."""
    return [item for part in _items(phrase, language) if (item := _without_leading(part.strip()))]


def _unstated(data: Iterable[str], request: str, language: Language) -> list[str]:
    return [datum for datum in data if not _is_stated(datum, request, language.code)]


def _names_something(request: str) -> bool:
    """Tells whether a request has a name, or does not only say that it does not work."""
    language = tables_of(language_of(request))
    lines = _without_header(request, language)
    return not language.has("vague", "\n".join(lines)) or _has_name(lines, language)


def _tells_none(wanted: str, request: str, language: Language) -> bool:
    """Tells whether a request has no name, and none of the things that a question "where (room or floor)" lists."""
    of_request = tables_of(language_of(request))
    present = word_forms(request, of_request.code)
    listed = [word for item in _items(wanted, language) for word in word_forms(item, language.code)]
    return not _has_name(_without_header(request, of_request), of_request) and not any(
        has_form(word, present) for word in listed
    )


def _without_header(request: str, language: Language) -> list[str]:
    """Returns the lines of a request without those at the head of a mail."""
    return [line for line in request.splitlines() if not language.header.match(line)]


def _has_name(lines: Iterable[str], language: Language) -> bool:
    """Tells whether a sentence of more than a few words has a name: a word with a digit, or with a capital inside."""
    for _, sentence in (pair for line in lines for pair in split_sentences(line)):
        words = re.findall(r"[\w-]+", sentence)
        if len(words) <= SIGNATURE:
            continue
        if any(re.search(r"\d", word) for word in words):
            return True
        if any(w[0].isupper() and len(w) > 1 and w.casefold() not in language.empty for w in words[1:]):
            return True
    return False


def _items(text: str, language: Language) -> list[str]:
    """Returns the items of a list within a sentence."""
    between = language.cues["listing"].pattern
    return re.split(rf",\s*(?:{between}\s)?\s*|\s+{between}\s+", text, flags=re.I)


def _without_leading(datum: str) -> str:
    while (match := _LEADING.match(datum)) is not None:
        datum = datum[match.end() :]
    return datum


def _is_stated(datum: str, text: str, code: str) -> bool:
    """Tells whether a text states a datum: an amount or an account by its form, a number by its words beside a figure.

    Of anything else, such as an enclosure, a text does not tell: it counts as stated. `code` is the language of the
    datum.
    """
    said = f"{datum} {gloss(datum, code)}".lower()
    if "iban" in said:
        return bool(_IBAN.search(text))
    if re.search(r"\b(?:amount|sum|price|value)\b", said):
        return bool(amounts_in(text))
    if not _NUMBERED.search(said):
        return True
    telling = ([w for w in word_forms(part, code) if not w & _PLAIN_STEMS] for part in (_OF.split(datum)[0], datum))
    words = next(filter(None, telling), None) or word_forms(datum, code)
    lines = [s for line in text.splitlines() for _, s in split_sentences(line) if re.search(r"\d", s)]
    of_text = language_of(text) or ENGLISH
    return any(forms_within(words, word_forms(line, of_text)) for line in lines)


def elsewhere(elements: Sequence[Element]) -> Elsewhere | None:
    """Returns what of the request the procedure leaves to another process, None where it takes all of it."""
    inputs = "\n".join(e.text or "" for e in elements if e.role == "input")
    lines = [line for line in inputs.splitlines() if line.strip()]
    of_request = tables_of(language_of(inputs))
    items = [line for line in lines if _ITEM.match(line)]
    asking = list(_asking(lines, of_request))
    lead = ""
    for element, sentence, following in _with_next(elements):
        language = tables_of(language_of(element.text or ""))
        what = _left_out(sentence, following, language) or _of_excluded_section(sentence, lead, language)
        lead = sentence.text if sentence.text.endswith(":") else lead if sentence.shape == "item" else ""
        if not what or len(what.split()) > MOST_WORDS:
            continue
        for topic in (_WITH.sub("", item) for item in _items(what, language)):
            own = [text for text in asking if _asks_for(topic, language, text, of_request, inputs)]
            if own:
                is_whole = (
                    all(_asks_for(topic, language, item, of_request) for item in items)
                    if len(items) > 1
                    else (not any(of_request.has("besides", text) for text in own))
                )
                place = f"{element.role}/{element.name}, {sentence.place}"
                return Elsewhere(topic.strip(), sentence.text, place, is_whole)
    return None


def _left_out(sentence: Sentence, following: Sentence | None, language: Language) -> str:
    """Returns what a sentence leaves to another process: its subject, or what stands behind "nothing to do with".

    The sentence behind it in its paragraph may say that nothing is recorded for it.
    """
    if sentence.shape == "row" and language.has("not_opened", sentence.text):
        return language.cues["wanting"].sub("", sentence.text.split(" | ")[0]).strip()
    text = f"{sentence.text} {following.text}" if following else sentence.text
    match = language.cues["elsewhere"].search(text)
    if match is not None and match.start() < len(sentence.text):
        return text[: match.start()].strip()
    match = language.cues["elsewhere_behind"].search(sentence.text)
    if match:
        return re.split(r"[.;:,]", sentence.text[match.end() :])[0].strip()
    match = language.cues["asked_and_denied"].search(text)
    return match["what"].strip() if match else ""


def _of_excluded_section(sentence: Sentence, lead: str, language: Language) -> str:
    """Returns the subject of a sentence below a heading, or in a list behind words, that say what is not covered."""
    is_excluded = any(language.has("excludes", text) for text in (sentence.heading or "", lead))
    return re.split(r"[.:]", sentence.text)[0].strip() if is_excluded else ""


def _asking(lines: Iterable[str], language: Language) -> Iterator[str]:
    for line in lines:
        yield from (text for text in re.split(r"(?<=[.!?])\s", line) if language.has("asking", text))


def _asks_for(topic: str, language: Language, text: str, of_request: Language, whole: str = "") -> bool:
    """Tells whether a sentence asks for a topic: for one of one word directly, for a longer one with all its words.

    The parts of a German or Dutch compound count as words in a text of another language.
    """
    is_foreign = language is not of_request
    words, present = word_forms(topic, language.code, is_foreign), word_forms(text, of_request.code, is_foreign)
    if not words:
        return False
    if is_foreign:
        parts = [part for word in topic.casefold().split() for part in translated_parts(word, language.code)]
        stemmed = [frozenset(stem(english) for english in part) for part in parts]
        return len(stemmed) > 1 and len(stemmed) >= len(words) and forms_within(stemmed, present)
    if len(words) > LONG_TOPIC:  # what it is about may stand in another sentence
        everywhere = word_forms(whole, of_request.code, False)
        most = sum(has_form(word, everywhere) for word in words) >= MOST_OF_TOPIC * len(words)
        return has_form(words[0], present) and most
    if len(words) > 1:
        return forms_within(words, present)
    behind = (text[match.end() :].split()[:ASKED_WITHIN] for match in of_request.cues["asking"].finditer(text))
    return any(forms_within(words, word_forms(" ".join(asked), of_request.code, False)) for asked in behind)


def wanted_hours(elements: Sequence[Element]) -> tuple[float, Sentence, str] | None:
    """Returns the time in hours within which a request wants to be done, with its sentence and document.

    Of a day without an hour it is the latest moment that can be meant: "by Friday" is at most a week.
    """
    for element in elements:
        if element.role != "input" or not element.text:
            continue
        written = _first_date(element.text)
        for sentence in sentences_of(element):
            match = _WANTED_WITHIN.search(sentence.text)
            said = (match["within"] or match["from_now"]) if match else None
            tokens = re.findall(r"⟦[^⟧]*⟧", with_tokens(said.casefold())) if said else []
            figure = figure_of(tokens[0]) if tokens else None
            if figure is not None and (value := hours(figure)) > 0:
                return value, sentence, f"input/{element.name}"
            if (latest := _latest_hours(sentence.text, written)) is not None:
                return latest, sentence, f"input/{element.name}"
    return None


def _latest_hours(text: str, written: date | None) -> float | None:
    """Returns how many hours a sentence leaves that wants something "by tomorrow" or "by 31 January", at most."""
    if not _WANTS.search(text) or (match := _BY.search(text)) is None:
        return None
    named = next((most for cue, most in _MOST_HOURS if cue.search(match[0])), None)
    day = _DAY.search(match[0])
    if named is None and day is not None and written is not None:
        month = _month(day["month"])
        due = date(written.year + (month < written.month), month, min(int(day["day"]), 28 if month == 2 else 30))
        named = 24.0 * ((due - written).days + 1) if due >= written else None
    return named


def _month(name: str) -> int:
    """Returns the number of a month by its name or the first letters of it."""
    return next(n for n, month in enumerate(MONTHS, start=1) if month.startswith(name[:3].casefold()))


def _first_date(text: str) -> date | None:
    """Returns the first date with a year of a text, None where it has none: when a request was written."""
    for match in _DATE.finditer(text):
        month = match["m"] or _month(match["month"])
        with contextlib.suppress(ValueError):
            return date(int(match["y"] or match["y2"]), int(month), int(match["d"] or match["d2"]))
    return None


def _with_next(elements: Iterable[Element]) -> Iterator[tuple[Element, Sentence, Sentence | None]]:
    """Yields the sentences of the procedures, each with the one behind it in its paragraph."""
    found = list(_sentences(elements))
    for (element, sentence), after in zip(found, [*(s for _, s in found[1:]), None], strict=False):
        yield element, sentence, after if after is not None and after.block == sentence.block else None


def _sentences(elements: Iterable[Element]) -> Iterator[tuple[Element, Sentence]]:
    for element in elements:
        if element.role in PROCEDURAL and element.text:
            yield from ((element, sentence) for sentence in sentences_of(element) if sentence.shape != "heading")
