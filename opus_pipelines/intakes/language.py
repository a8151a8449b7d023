"""Detects the language of a text where it is certain: rules are read in English, and the encoder knows English only.

py3langid detects the language with a model inside its wheel. Short texts, lists of codes and rows of tables count as
undetected.
"""

import re
from functools import lru_cache
from typing import Any

from opus_pipelines.core.word_stems import EMPTY

READ = "en"
LEAST_WORDS = 6  # of a text whose language can be told
SURE = 0.99  # chance that it is not English from which the most likely other language is named
# of a text's words that are English function words, from which it is not taken for another language
ENGLISH_SHARE = 0.25
_WORD = re.compile(r"[^\W\d_]+")
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


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@lru_cache(maxsize=4096)
def foreign_language(text: str) -> str | None:
    """Returns the name of the language of a text that is certainly not English, else None."""
    words = _WORD.findall(text.casefold())
    if len(words) < LEAST_WORDS and sum(map(len, words)) < _LEAST_SIGNS:
        return None
    if sum(w in EMPTY for w in words) >= ENGLISH_SHARE * len(words):
        return None
    ranked = _identifier().rank(text)
    code, known = ranked[0][0], sum(float(chance) for name, chance in ranked if name in (READ, _NO_LANGUAGE))
    if known > 1 - SURE or (len(words) < LEAST_WORDS and code not in _UNSPACED):
        return None
    return _NAMES.get(code, f"the language {code!r}")
