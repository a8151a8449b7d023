"""What the reader knows of languages: words without meaning, cue words, stems, and a glossary of process words.

The tables (`languages.toml`, `glossary.tsv`) are the project's own. A text in a language that has no table is read by
the characters of its words and by the vectors of the encoder alone.
"""

import csv
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.word_stems import same, stem, stems

ENGLISH, UNKNOWN = "en", ""
NO_TEXT = "(?!)"  # a pattern that no text has: of a cue that a language does not need
_NO_CUES = ("unrelated", "empty", "header", "lacking")  # tables of another form
_SNOWBALL = {"de": "german", "fr": "french", "nl": "dutch", "es": "spanish"}
_LEAST_HITS = 2  # words without meaning of a language that a text has, from which it may be in that language
_COMPOUND = 4  # letters of a word of the glossary that is looked for inside a German or Dutch compound
_COMPOUNDING = ("de", "nl")
_PARTICIPLE = re.compile(  # of a German or Dutch verb: "geprüft", "ausgeführt"
    r"(?P<prefix>ab|an|auf|aus|bei|ein|fest|frei|nach|vor|zu|zurück|um|af|aan|op|uit|in|vast|vrij|na|toe|terug|door)?"
    r"ge(?P<verb>\w{3,}(?:t|en|d))$"
)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Language:
    """The tables of one language: `cues` are patterns by the name of the cue, compiled without regard to case."""

    code: str
    empty: frozenset[str]
    unrelated: tuple[str, ...]
    cues: dict[str, re.Pattern[str]]
    header: re.Pattern[str]
    lacking: tuple[re.Pattern[str], ...]

    def has(self, cue: str, text: str) -> bool:
        """Tells whether a text has one of the cue words."""
        return bool(self.cues[cue].search(text))


@cache
def languages() -> dict[str, Language]:
    """Returns the languages that have tables, by ISO code."""
    tables = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
    return {code: _language(code, table) for code, table in tables.items()}


def _language(code: str, table: dict[str, str]) -> Language:
    items = {name: [" ".join(item.split()) for item in text.split(";")] for name, text in table.items()}
    return Language(
        code,
        frozenset(table["empty"].split()),
        tuple(item.casefold() for item in items["unrelated"]),
        {cue: re.compile(_any_of(words), re.IGNORECASE) for cue, words in items.items() if cue not in _NO_CUES},
        re.compile(rf"\s*>*\s*(?:{'|'.join(items['header'])})\s*:", re.IGNORECASE),
        tuple(re.compile(line.strip(), re.IGNORECASE) for line in table["lacking"].strip().split(";\n")),
    )


def _any_of(words: Sequence[str]) -> str:
    return rf"(?<!\w)(?:{'|'.join(words)})(?!\w)" if any(words) else NO_TEXT


@lru_cache(4096)
def language_of(text: str, default: str | None = None) -> str:
    """Returns the code of the language whose words without meaning a text has most of.

    Where it has too few, this is `default`, or else English for a text of ASCII characters and UNKNOWN for another.
    """
    counts = Counter(word for word in _WORD.findall(text.casefold()))
    hits = {code: sum(counts[w] for w in language.empty) for code, language in languages().items()}
    best = max(hits, key=lambda code: (hits[code], code == default))
    if hits[best] >= _LEAST_HITS:
        return best
    if default is not None:
        return default
    return ENGLISH if text.isascii() else UNKNOWN


def tables_of(code: str) -> Language:
    """Returns the tables of a language; those of English for a language without tables."""
    return languages().get(code, languages()[ENGLISH])


@lru_cache(1 << 16)
def stem_in(word: str, code: str) -> str:
    """Returns the stem of one word in lower case; the word itself in a language without a stemmer."""
    if code == ENGLISH:
        return stem(word)
    return str(_stemmer(code).stemWord(word)) if code in _SNOWBALL else word


@cache
def _stemmer(code: str) -> Any:
    from snowballstemmer import stemmer

    return stemmer(_SNOWBALL[code])


@lru_cache(1 << 14)
def content_stems(text: str, code: str) -> tuple[str, ...]:
    """Returns the stems of the words that carry meaning, in order."""
    empty = tables_of(code).empty
    return tuple(stem_in(word, code) for word in _WORD.findall(plain(text)) if word not in empty)


@cache
def _glossary(code: str) -> dict[str, frozenset[str]]:
    """Returns the English words by the stem of their translation."""
    found: dict[str, set[str]] = defaultdict(set)
    with files(__package__).joinpath("glossary.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            for word in row[code].split():
                found[stem_in(word.casefold(), code)].add(row[ENGLISH])
    return {key: frozenset(words) for key, words in found.items()}


@lru_cache(1 << 14)
def gloss(text: str, code: str) -> str:
    """Returns the English words of those process words of a text that the glossary has, separated by blanks."""
    if code not in _SNOWBALL:
        return ""
    return " ".join(word for own in _WORD.findall(text.casefold()) for word in sorted(_translations(own, code)))


def _translations(word: str, code: str) -> frozenset[str]:
    return frozenset[str]().union(*translated_parts(word, code))


@lru_cache(1 << 14)
def translated_parts(word: str, code: str) -> tuple[frozenset[str], ...]:
    """Returns the English words for each part of a word that the glossary has; a compound may have several parts."""
    entries, own = _glossary(code), stem_in(word, code)
    if own in entries:
        return (entries[own],)
    near = [key for key in entries if len(key) >= _COMPOUND and own.startswith(key)]
    if code in _COMPOUNDING:
        near += [key for key in entries if len(key) >= _COMPOUND and own.endswith(key)]
    elif not near and len(own) >= _COMPOUND:
        near = [key for key in entries if key.startswith(own)]
    return tuple(entries[key] for key in near)


@lru_cache(1 << 14)
def word_forms(text: str, code: str, is_translated: bool = True) -> tuple[frozenset[str], ...]:
    """Returns of each word that carries meaning its stem, and the stems of its English translations, in order.

    Texts of one language are best compared without translations: two compounds share the translation of a part.
    """
    if code not in _SNOWBALL:
        return tuple(frozenset((own,)) for own in stems(text))
    empty = tables_of(code).empty
    words = dict.fromkeys(word for word in _WORD.findall(plain(text)) if word not in empty)
    return tuple(_forms(word, code, is_translated) for word in words)


def has_form(forms: frozenset[str], words: Iterable[frozenset[str]]) -> bool:
    """Tells whether a word is among others in one of its forms."""
    return any(same(form, other) for form in forms for word in words for other in word)


def forms_within(name: Sequence[frozenset[str]], words: Sequence[frozenset[str]]) -> bool:
    """Tells whether every word of a name is among others."""
    return bool(name) and all(has_form(word, words) for word in name)


@lru_cache(1 << 14)
def _forms(word: str, code: str, is_translated: bool) -> frozenset[str]:
    translations = gloss(word, code).split() if is_translated else ()
    forms = {stem_in(word, code), *map(stem, translations)}
    if is_translated:
        forms.add(stem(word))  # names are English in many logs
    if code in _COMPOUNDING and (participle := _PARTICIPLE.match(word)):
        forms.add(stem_in((participle["prefix"] or "") + participle["verb"], code))
    return frozenset(forms)
