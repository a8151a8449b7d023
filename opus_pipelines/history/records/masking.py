"""Masks private data in every free text column of a batch of implementations, once per distinct value."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opus_pipelines.history.records.arrow_arrays import array, booleans, numbers
from opus_pipelines.history.records.private_names import HARMLESS, is_number, meaning_of
from opus_pipelines.history.records.private_text import POSSIBLE, mask_text

Change = Callable[[pa.Array], pa.Array]
# amounts and times
_PLAIN = r"^(?:-?[1-9]\d{0,11}(?:\.\d*)?|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[\d:.]*(?: ?Z| ?[+-]\d\d:?\d\d)?)?)$"

_WORDS_AND_NUMBERS = r"^[A-Za-z0-9 _:;#]+$"
# Groups of digits, digits that touch a letter, and long numbers: which digits they are may decide.
_GROUPED = r"\d[ :;#]+\d|[A-Za-z;]\d|\d[A-Za-z#]|\d{9}"


def mask_texts(texts: pa.Array, names: bool = False) -> pa.Array:
    """Masks texts by the rules of `private_text`. Returns the same array if it contains nothing private.

    `names`: also names and addresses; then every text with a letter is looked at, not only those with numbers.
    """
    return map_distinct(texts, partial(mask_text, names=names), _with_letters if names else possible)


def _with_letters(values: pa.Array) -> pa.Array:
    return pc.match_substring_regex(values, r"\pL")


def possible(values: pa.Array) -> pa.Array:
    """Tells which values may contain private data. They are few, so the slower rules in Python cost little."""
    found = pc.and_not(pc.match_substring_regex(values, POSSIBLE), pc.match_substring_regex(values, _PLAIN))
    return pc.and_not(found, _harmless_ids(values, found))


def _harmless_ids(values: pa.Array, found: pa.Array) -> pa.Array:
    """Tells which values are words and short numbers such as `order 123456`, of a kind in which nothing is private.

    Logs have hundreds of thousands of them. What is masked of such a value depends on its letters and on where its
    digits stand, not on which digits they are: a number of up to eight digits without groups has no check digit, is no
    date and no telephone number, and is private only after a word that names its kind. So one value of a kind tells for
    all: those that are equal with every digit as a 0.
    """
    plain, odd = (pc.match_substring_regex(values, part) for part in (_WORDS_AND_NUMBERS, _GROUPED))
    places = pc.indices_nonzero(pc.and_(found, pc.and_not(plain, odd)))
    harmless = np.zeros(len(values), bool)
    if len(places):
        some = values.take(places)
        kinds = pc.replace_substring_regex(some, r"\d", "0").dictionary_encode()
        kind = numbers(kinds.indices, np.int32)
        _, first = np.unique(kind, return_index=True)  # a kind's code is its place among the kinds
        examples = some.take(array(first, pa.int64())).to_pylist()
        is_harmless = np.array([mask_text(text) == text for text in examples], bool)
        harmless[numbers(places, np.uint64)[is_harmless[kind]]] = True
    return booleans(harmless)


def map_distinct(texts: pa.Array, change: Callable[[str], str], concerned: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Applies `change` once to each distinct text that is `concerned`. NULL stays NULL."""
    coded = texts.dictionary_encode()
    values = coded.dictionary
    places = pc.indices_nonzero(concerned(values))
    if not len(places):
        return texts
    before = values.take(places).to_pylist()
    after = [change(text) for text in before]
    if after == before:
        return texts
    chosen = np.zeros(len(values), bool)
    chosen[places.to_numpy()] = True
    return pc.replace_with_mask(values, pa.array(chosen), pa.array(after, values.type)).take(coded.indices)


def mask_attributes(maps: pa.MapArray, names: bool = False) -> pa.MapArray:
    """Masks the names and values of attributes.

    Names and texts follow the rules for texts. Numbers are masked only if the attribute's name says that they are
    private; ids and amounts stay. If two names become equal, the first by name stays.
    """
    offsets = maps.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    keys, values = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    new_names, new_values = mask_texts(keys), _mask_named(keys, values, names)
    if new_names is keys and new_values is values:
        return maps
    masked = pa.MapArray.from_arrays(
        pc.subtract(offsets, first), new_names, new_values, type=maps.type, mask=maps.is_null()
    )
    return masked if new_names is keys else _without_doubles(masked)


def mask_lists(lists: pa.ListArray, change: Change) -> pa.ListArray:
    """Applies `change` to the elements of all lists. Returns the same array if nothing changes."""
    elements = lists.flatten()
    after = change(elements)
    if after is elements:
        return lists
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), after, type=lists.type, mask=lists.is_null())


def _mask_named(names: pa.Array, values: pa.Array, persons: bool) -> pa.Array:
    coded = names.dictionary_encode()
    meanings = [meaning_of(name) for name in coded.dictionary.to_pylist()]
    masked = mask_texts(values, persons)
    for meaning in sorted({m for m in meanings if m is not None}):
        concerned = booleans(np.array([m == meaning for m in meanings])).take(coded.indices)
        own = values.filter(concerned)
        if meaning == HARMLESS:
            if masked is values:
                continue
            digits = pc.match_substring_regex(own, r"^\d+$")
            after = pc.if_else(digits, own, masked.filter(concerned))
        else:
            after = map_distinct(masked.filter(concerned), partial(_as_number, meaning), _all_values)
        if not after.equals(masked.filter(concerned)):
            masked = pc.replace_with_mask(masked, concerned, after)
    return masked


def _as_number(token: str, text: str) -> str:
    return token if is_number(text) else text


def _all_values(values: pa.Array) -> pa.Array:
    return pa.array(np.ones(len(values), bool))


def _without_doubles(maps: pa.MapArray) -> pa.MapArray:
    rows = maps.to_pylist()
    return pa.array([None if row is None else sorted(dict(reversed(row)).items()) for row in rows], maps.type)
