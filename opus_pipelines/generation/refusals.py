"""Requests that the procedure itself does not take: data are missing that it asks for, or they are for another process.

Each reason quotes the sentence of the procedure on which it rests. A part of a request (an item of its list) that is
for another process is told, and the rest is planned. The rules are this project's own, for English.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from opus_pipelines.intakes.elements import PROCEDURAL, Element, foreign_reason
from opus_pipelines.intakes.requirements.rules import Sentence, sentences_of
from opus_pipelines.language.grammar.figures import figure_of, hours, with_tokens
from opus_pipelines.language.word_stems import stems, within
from opus_pipelines.lwm.retrieval.similar_cases import amounts_in

_LACKS = re.compile(
    r"\b(?:that|which|who) "
    r"(?P<how>lacks?|names? neither|states? neither|has neither|has no|does not (?:state|name|have))\s+"
    r"(?P<what>[^:;.]+?)\s+(?:is|are|cannot|can not|will)\b(?P<then>.*)",
    re.I,
)
_WITHOUT = re.compile(r"^without (?P<what>[^:;.]+?),? (?P<then>(?:nothing|no)\b.*)", re.I)
_STOPS = re.compile(
    r"\b(?:not (?:processed|handled|accepted|recorded)|cannot be|nothing is|asked|returned|sent back)\b", re.I
)
_ELSEWHERE = re.compile(
    r"^(?P<what>.+?) (?:(?:is|are) (?:not (?:covered|handled|treated|entered|requested|processed|dealt with)|"
    r"no tickets?|dealt with by (?:another|other)|outside|out of scope|declared with|passed to)|"
    r"(?:do|does) not (?:fall|belong)|belongs? to (?:another|other))\b",
    re.I,
)
_LIST = re.compile(r",\s*(?:and|or|nor)?\s*|\s+(?:and|or|nor)\s+", re.I)
_ASKS = r"\b(?:needs?|wants?|wish(?:es)?|like|apply|applying|request(?:s|ing)?|issue|extend|renew|open|order|please)\b"
_WANTED_WITHIN = re.compile(
    r"\b(?:must|needs?|has to|have to|please|should|want|expect|require)\b.*\bwithin (?P<time>[\w ,.-]+)", re.I
)
_ITEM = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+\S")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b")
_NUMBERED = re.compile(r"\b(?:number|plate|code|reference|account|centre|center|id)\b", re.I)
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
        match = _LACKS.search(sentence.text) or _WITHOUT.search(sentence.text)
        if match is None or not _STOPS.search(sentence.text[match.end("what") :]):
            continue
        wanted = [re.sub(r"^(?:the|an?|any|its) ", "", item.strip(), flags=re.I) for item in _LIST.split(match["what"])]
        wanted = [item for item in wanted if item]
        missing = [item for item in wanted if not _is_stated(item, text)]
        is_either = "neither" in match.groupdict().get("how", "").lower()
        if missing and (not is_either or len(missing) == len(wanted)):
            verb, asked = ("is", "it") if len(missing) == 1 else ("are", "them")
            said = f"{element.role}/{element.name}, {sentence.place}: “{sentence.text}”"
            return f"{', '.join(missing)} {verb} missing in the request, ask for {asked}; {said}"
    return None


def _is_stated(datum: str, text: str) -> bool:
    """Tells whether a text states a datum: an amount or an account by its form, a number by its words beside a figure.

    Of anything else, such as an enclosure, a text does not tell: it counts as stated.
    """
    if "iban" in datum.lower():
        return bool(_IBAN.search(text))
    if re.search(r"\b(?:amount|sum|price)\b", datum, re.I):
        return bool(amounts_in(text))
    if not _NUMBERED.search(datum):
        return True
    words = tuple(word for word in stems(datum) if word not in _PLAIN_STEMS) or stems(datum)
    return any(within(words, stems(line)) and re.search(r"\d", line) for line in re.split(r"\n|(?<=[.!?])\s", text))


def elsewhere(elements: Sequence[Element]) -> Elsewhere | None:
    """Returns what of the request the procedure leaves to another process, None where it takes all of it."""
    lines = [line for e in elements if e.role == "input" for line in (e.text or "").splitlines() if line.strip()]
    items = [line for line in lines if _ITEM.match(line)]
    for element, sentence in _sentences(elements):
        match = _ELSEWHERE.search(sentence.text)
        if match is None or len(match["what"].split()) > 12:
            continue
        for topic in _LIST.split(match["what"]):
            asked = [line for line in _asking(lines) if _asks_for(topic, line)]
            if asked:
                is_whole = len(items) < 2 or all(_asks_for(topic, item) for item in items)
                place = f"{element.role}/{element.name}, {sentence.place}"
                return Elsewhere(topic.strip(), sentence.text, place, is_whole)
    return None


def _asking(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        for text in re.split(r"(?<=[.!?])\s", line):
            if re.search(_ASKS, text, re.I):
                yield text


def _asks_for(topic: str, text: str) -> bool:
    """Tells whether a sentence asks for a topic: for one of one word directly, for a longer one with all its words."""
    words = stems(topic)
    if not words or not within(words, stems(text)):
        return False
    one = re.escape(topic.strip().rstrip("s"))
    return len(words) > 1 or bool(re.search(rf"{_ASKS}(?:\s+\w+){{0,4}}?\s+{one}", text, re.I))


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
