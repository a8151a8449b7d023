"""Requests that the procedure itself does not take: data are missing that it asks for, or they are for another process.

Each reason quotes the sentence of the procedure on which it rests. A part of a request (an item of its list) that is
for another process is told, and the rest is planned. The rules are this project's own, for the languages that
`language.reading` has tables of.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from opus_pipelines.intakes.elements import PROCEDURAL, Element, foreign_reason
from opus_pipelines.intakes.requirements.rules import Sentence, sentences_of
from opus_pipelines.language.grammar.figures import figure_of, hours, with_tokens
from opus_pipelines.language.reading.languages import (
    ENGLISH,
    Language,
    forms_within,
    gloss,
    language_of,
    tables_of,
    translated_parts,
    word_forms,
)
from opus_pipelines.language.word_stems import stem
from opus_pipelines.lwm.retrieval.similar_cases import amounts_in

_LEADING = re.compile(
    r"^(?:the|any|its|an?|der|die|das|den|dem|eine?[nrms]?|ohne|angabe de[rs]|le|la|les|l.|une?|sans|het|de|een|zonder|"
    r"el|los|las|una?|sin)\s+",
    re.I,
)
_WANTED_WITHIN = re.compile(
    r"\b(?:must|needs?|has to|have to|please|should|want|expect|require)\b.*\bwithin (?P<time>[\w ,.-]+)", re.I
)
_ITEM = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+\S")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b")
_NUMBERED = re.compile(r"\b(?:number|plate|code|reference|account|centre|center|id)\b", re.I)
ASKED_WITHIN = 5  # words behind an asking word in which a topic of one word is asked for
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
    for element, sentence in _sentences(elements):
        language = tables_of(language_of(element.text or ""))
        match = next((m for pattern in language.lacking if (m := pattern.search(sentence.text))), None)
        if match is None or not language.has("stops", sentence.text[match.end("what") :]):
            continue
        wanted = [_without_leading(item.strip()) for item in _items(match["what"], language)]
        wanted = [item for item in wanted if item]
        missing = [item for item in wanted if not _is_stated(item, text, language.code)]
        is_either = any(word in match.groupdict().get("how", "").lower() for word in ("neither", "weder"))
        if missing and (not is_either or len(missing) == len(wanted)):
            verb, asked = ("is", "it") if len(missing) == 1 else ("are", "them")
            said = f"{element.role}/{element.name}, {sentence.place}: “{sentence.text}”"
            return f"{', '.join(missing)} {verb} missing in the request, ask for {asked}; {said}"
    return None


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
    if re.search(r"\b(?:amount|sum|price)\b", said):
        return bool(amounts_in(text))
    if not _NUMBERED.search(said):
        return True
    words = word_forms(datum, code)
    words = tuple(word for word in words if not word & _PLAIN_STEMS) or words
    lines = [line for line in re.split(r"\n|(?<=[.!?])\s", text) if re.search(r"\d", line)]
    of_text = language_of(text) or ENGLISH
    return any(forms_within(words, word_forms(line, of_text)) for line in lines)


def elsewhere(elements: Sequence[Element]) -> Elsewhere | None:
    """Returns what of the request the procedure leaves to another process, None where it takes all of it."""
    inputs = "\n".join(e.text or "" for e in elements if e.role == "input")
    lines = [line for line in inputs.splitlines() if line.strip()]
    of_request = tables_of(language_of(inputs))
    items = [line for line in lines if _ITEM.match(line)]
    for element, sentence in _sentences(elements):
        language = tables_of(language_of(element.text or ""))
        match = language.cues["elsewhere"].search(sentence.text)
        what = sentence.text[: match.start()].strip() if match else ""
        if not what or len(what.split()) > MOST_WORDS:
            continue
        for topic in _items(what, language):
            if any(_asks_for(topic, language, line, of_request) for line in _asking(lines, of_request)):
                is_whole = len(items) < 2 or all(_asks_for(topic, language, item, of_request) for item in items)
                place = f"{element.role}/{element.name}, {sentence.place}"
                return Elsewhere(topic.strip(), sentence.text, place, is_whole)
    return None


def _asking(lines: Iterable[str], language: Language) -> Iterator[str]:
    for line in lines:
        yield from (text for text in re.split(r"(?<=[.!?])\s", line) if language.has("asking", text))


def _asks_for(topic: str, language: Language, text: str, of_request: Language) -> bool:
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
    if len(words) > 1:
        return forms_within(words, present)
    behind = (text[match.end() :].split()[:ASKED_WITHIN] for match in of_request.cues["asking"].finditer(text))
    return any(forms_within(words, word_forms(" ".join(asked), of_request.code, False)) for asked in behind)


def wanted_hours(elements: Sequence[Element]) -> tuple[float, Sentence, str] | None:
    """Returns the time in hours within which a request wants to be done, with its sentence and document."""
    for element in elements:
        if element.role != "input" or not element.text:
            continue
        for sentence in sentences_of(element):
            match = _WANTED_WITHIN.search(sentence.text)
            tokens = re.findall(r"⟦[^⟧]*⟧", with_tokens(match["time"].casefold())) if match else []
            figure = figure_of(tokens[0]) if tokens else None
            if figure is not None and (value := hours(figure)) > 0:
                return value, sentence, f"input/{element.name}"
    return None


def _sentences(elements: Iterable[Element]) -> Iterator[tuple[Element, Sentence]]:
    for element in elements:
        if element.role in PROCEDURAL and element.text:
            yield from ((element, sentence) for sentence in sentences_of(element) if sentence.shape != "heading")
