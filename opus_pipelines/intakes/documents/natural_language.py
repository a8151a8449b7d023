"""Detects the language of a text where it is certain: rules are read in English, and the encoder knows English only.

py3langid detects the language with a model inside its wheel. Single words, names, addresses and lists
of codes count as undetected.
"""

import math
import re
from functools import lru_cache
from typing import Any

from opus_pipelines.language.word_stems import EMPTY

READ = "en"
# Natural log of how much likelier the text must be in the named language than in English. Names and product names of
# several words reach about 20; a list of three steps of two words each reaches about 40.
SURE = 25.0
_LEAST_WORDS = 2  # of a text whose language can be told
# of a text's words that are English function words, from which it is not taken for another language
ENGLISH_SHARE = 0.25
# A text has as many English function words, but all of them are the same one, as Portuguese and Italian have "a". It
# must be likelier by this.
SURE_OF_ONE_WORD = 45.0
LEAST_LINES = 2  # that belong together in a language of their own, in a document of which the rest is English
_WORD = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"https?://\S+|www\.\S+|\S+@\S+|`[^`\n]*`")  # and names of a program: in no language
_NAMES = {
    "ar": "Arabic",
    "bg": "Bulgarian",
    "ca": "Catalan",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "es": "Spanish",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "id": "Indonesian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "nb": "Norwegian",
    "nl": "Dutch",
    "nn": "Norwegian",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sk": "Slovak",
    "sl": "Slovene",
    "sr": "Serbian",
    "sv": "Swedish",
    "th": "Thai",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
_UNSPACED = {"zh", "ja", "th"}  # written without blanks between words
_NO_LANGUAGE = "zxx"  # codes and numbers
_LEAST_SIGNS = 12


_FIELD = re.compile(r"\s*[\w .()/-]{1,40}[:=]\s*(?P<value>.*)")
_LEAST_OF_FIELD = 6  # words of the value of a line `name: value` that is prose and no value of an attribute


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=False)


@lru_cache(maxsize=4096)
def foreign_language(text: str) -> str | None:
    """Returns the name of the language of a text that is certainly not English, else None."""
    text = _ADDRESS.sub(" ", text)
    words = _WORD.findall(text.casefold())
    if len(words) < _LEAST_WORDS and sum(map(len, words)) < _LEAST_SIGNS:
        return None
    english = [word for word in words if word in EMPTY]
    looks_english = len(english) >= ENGLISH_SHARE * len(words)
    if looks_english and len(set(english)) > 1:
        return None
    chances = {name: float(chance) for name, chance in _identifier().rank(text)}
    code = max((name for name in chances if name in _NAMES), key=lambda name: chances[name])
    surplus = chances[code] - max(chances[READ], chances.get(_NO_LANGUAGE, -math.inf))
    if surplus < (SURE_OF_ONE_WORD if looks_english else SURE) or (len(words) < _LEAST_WORDS and code not in _UNSPACED):
        return None
    return _NAMES[code]


def language_of_request(text: str) -> str | None:
    """Returns the name of the language of what a client writes, where it is certainly not English, else None.

    Attributes are compared in any language, so lines `name: value` with a short value are left out.
    """
    return foreign_language("\n".join(_prose(line) for line in text.split("\n")))


def steps_are_read(language: str) -> bool:
    """Tells whether the reader of procedures has tables of a language, by its name."""
    from opus_pipelines.language.reading.languages import (
        languages,  # it loads PyArrow, which most documents do not need
    )

    return any(_NAMES.get(code) == language for code in languages())


def languages_of_parts(text: str) -> list[str]:
    """Returns the names of the languages in which paragraphs and lists of a document are, if they are not English.

    Lines that no blank line separates belong together. Headings, which often are English in any list, count as lines.
    """
    parts = (part.strip() for part in re.split(r"\n\s*\n|^#.*$", text, flags=re.MULTILINE))
    named = (foreign_language(part) for part in parts if part.count("\n") + 1 >= LEAST_LINES)
    return list(dict.fromkeys(name for name in named if name is not None))


def _prose(line: str) -> str:
    field = _FIELD.fullmatch(line)
    if field is None:
        return line
    return field["value"] if len(_WORD.findall(field["value"])) >= _LEAST_OF_FIELD else ""
