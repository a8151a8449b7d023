"""Constrained decoding: only names of the catalogue can be written, each once."""

import pytest

from opus_pipelines.lwm.language_models.causal_model import TokenTrie, each_once

END, SEP = 0, 9
NAMES = {"pay": [1, SEP], "pay invoice": [1, 2, SEP], "check": [3, SEP]}


def trie_of(names: dict[str, list[int]]) -> TokenTrie:
    return TokenTrie(each_once(list(names)), names.__getitem__, END)


def test_only_names_can_be_written() -> None:
    trie = trie_of(NAMES)
    assert trie.allowed([]) == [1, 3], "not END: a workflow has a step"
    assert trie.allowed([1]) == [2, SEP]
    assert trie.allowed([1, 2]) == [SEP]
    assert trie.allowed([1, 2, SEP]) == [1, 3, END]
    assert trie.lines([1, 2, SEP, 3, SEP, END]) == ["pay invoice", "check"]


def test_a_name_is_written_once() -> None:
    trie = trie_of(NAMES)
    assert trie.allowed([3, SEP]) == [1, END]
    assert trie.allowed([1, SEP, 1]) == [2]
    assert trie.allowed([1, SEP, 1, 2, SEP, 3, SEP]) == [END]


def test_a_name_that_is_cut_off_does_not_count() -> None:
    assert trie_of(NAMES).lines([3, SEP, 1, 2]) == ["check"]


def test_names_with_the_same_tokens_are_written_one_after_the_other() -> None:
    trie = trie_of({"pay": [1, SEP], "Pay": [1, SEP]})
    assert trie.lines([1, SEP]) == ["pay"]
    assert trie.allowed([1, SEP]) == [1, END]
    assert trie.lines([1, SEP, 1, SEP]) == ["pay", "Pay"]
    assert trie.allowed([1, SEP, 1, SEP]) == [END]


def test_an_empty_catalogue_ends_at_once() -> None:
    assert trie_of({}).allowed([]) == [END]


@pytest.mark.long
def test_a_large_catalogue_is_walked_quickly_enough_to_be_used() -> None:
    names = {f"tool {n}": [1, 2 + n // 100, 200 + n % 100, SEP] for n in range(10_000)}
    trie = trie_of(names)
    assert len(trie.allowed([1])) == 100
    assert trie.lines([1, 2 + 77, 200 + 13, SEP]) == ["tool 7713"]
