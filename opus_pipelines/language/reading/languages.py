"""What the reader knows of languages: words without meaning, cue words, stems, and a glossary of process words.

The tables (`languages.toml`, `glossary.tsv`) are the project's own. A text in a language that has no table is read by
the characters of its words and by the vectors of the encoder alone.
"""

import csv
import re
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from opus_pipelines.language.embedding.texts import plain
from opus_pipelines.language.word_stems import stem

ENGLISH, UNKNOWN = "en", ""
CUES = ("negation", "condition", "order", "guard", "demand", "idle", "background", "cases")
_SNOWBALL = {"de": "german", "fr": "french", "nl": "dutch", "es": "spanish"}
_LEAST_HITS = 2  # words without meaning of a language that a text has, from which it may be in that language
_COMPOUND = 4  # letters of a word of the glossary that is looked for inside a German or Dutch compound
_COMPOUNDING = ("de", "nl")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Language:
    """The tables of one language: `cues` are compiled patterns by the name of the cue."""

    code: str
    empty: frozenset[str]
    unrelated: tuple[str, ...]
    cues: dict[str, re.Pattern[str]]
    header: re.Pattern[str]

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
        {cue: re.compile(rf"(?<!\w)(?:{'|'.join(items[cue])})(?!\w)", re.IGNORECASE) for cue in CUES},
        re.compile(rf"\s*>*\s*(?:{'|'.join(items['header'])})\s*:", re.IGNORECASE),
    )


@lru_cache(4096)
def language_of(text: str) -> str:
    """Returns the code of the language whose words without meaning a text has most of; UNKNOWN where it has none."""
    counts = Counter(word for word in _WORD.findall(text.casefold()))
    hits = {code: sum(counts[w] for w in language.empty) for code, language in languages().items()}
    best = max(hits, key=lambda code: hits[code])
    if hits[best] >= _LEAST_HITS:
        return best
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


@lru_cache(1 << 14)
def _translations(word: str, code: str) -> frozenset[str]:
    entries, own = _glossary(code), stem_in(word, code)
    if own in entries:
        return entries[own]
    near = [key for key in entries if len(key) >= _COMPOUND and own.startswith(key)]
    if code in _COMPOUNDING:
        near += [key for key in entries if len(key) >= _COMPOUND and own.endswith(key)]
    elif not near and len(own) >= _COMPOUND:
        near = [key for key in entries if key.startswith(own)]
    return frozenset[str]().union(*(entries[key] for key in near))
