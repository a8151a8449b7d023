"""Steps that are of one kind or about one thing, by the words of their names.

"has licence" and "get licence details" are about one thing: the first checks that there is a record, the second fetches
it. "get licence details" and "get vehicle details" are of one kind: the same is done with another thing. The rules are
this project's own.
"""

from collections.abc import Sequence

from opus_pipelines.embedding.text_parts import object_of, plain, verb_of
from opus_pipelines.lwm.listed_steps import READING_WORDS, RECORD_WORDS
from opus_pipelines.lwm.name_coverage import text_words, words

# words of a name that say that something is tested; the other READING_WORDS say that a record is read
CHECKING_WORDS = frozenset(
    {"available", "check", "confirm", "exist", "has", "have", "is", "valid", "validate", "verify"}
)
STATED_WORDS = 2  # least words of an object that a sentence states


def is_stated(name: str, sentence: str) -> bool:
    """Return whether the sentence has the object of a step that reads something, word for word.

    An object of a single word is too common to say that the step is meant.
    """
    name = plain(name)
    stated = object_of(name)
    return (
        verb_of(name) in READING_WORDS
        and len(stated.split()) >= STATED_WORDS
        and f" {stated} " in f" {plain(sentence)} "
    )


def records_of(check: str, names: Sequence[str]) -> list[str]:
    """Return the names of steps that read the record which the step `check` tests; none where it tests nothing."""
    if not CHECKING_WORDS.intersection(plain(check).split()):
        return []
    thing = _thing(check)
    return [
        name
        for name in names
        if verb_of(plain(name)) in READING_WORDS
        and not CHECKING_WORDS.intersection(plain(name).split())
        and thing
        and _thing(name) == thing
    ]


def counterparts(name: str, its_sentence: str, sentence: str, names: Sequence[str]) -> list[str]:
    """Return the steps of the same kind about the thing of another sentence.

    `its_sentence` asks for `name` and speaks of its thing, and `sentence` does not; it speaks of theirs instead.
    """
    thing, its_words, new_words = _thing(name), text_words(its_sentence), text_words(sentence)
    if not thing or not thing <= its_words or thing <= new_words:
        return []
    kind = words(name) - thing
    return [
        other
        for other in names
        if (of := _thing(other)) and of != thing and words(other) - of == kind and of <= new_words
    ]


def _thing(name: str) -> frozenset[str]:
    """Return the words of a name that say what the step is about."""
    return words(name) - RECORD_WORDS - READING_WORDS
