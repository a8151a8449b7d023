"""Words in other forms, words that oppose each other, words that history tells apart."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.wkg.task_matching.duplicate_detection import (
    WordContrasts,
    opposed,
    same_form,
    same_word_pairs,
    same_words,
    unmatched,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("order", "orders", True),
        ("approve", "approved", True),
        ("approve", "approving", True),
        ("notify", "notifies", True),
        ("goods", "goods", True),
        ("solicitud", "solicitudes", True),
        ("prufen", "prufung", False),
        ("employee", "employer", False),
        ("payer", "payee", False),
        ("lessor", "lessee", False),
        ("pay", "paid", False),
        ("form", "format", True),
        ("item1", "item2", False),
        ("import", "importance", False),
        ("登録", "登録", True),
        ("登録", "登録済", False),
    ],
)
def test_forms_of_one_word(one: str, other: str, same: bool) -> None:
    assert same_form(one, other) is same_form(other, one) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("goods ordered", "order goods", True),
        ("beoordelen aanvraag", "aanvraag beoordelen", True),
        ("customer informs supplier", "supplier informs customer", False),
        ("claim approved", "claim not approved", False),
        ("step 1", "step 2", False),
        ("check", "check check", False),
    ],
)
def test_the_same_words(one: str, other: str, same: bool) -> None:
    assert same_words(one.split(), other.split()) is same_words(other.split(), one.split()) is same


def test_what_is_left_of_two_names() -> None:
    assert unmatched(["approve", "the", "claims"], ["claim", "rejected"]) == (["approve", "the"], ["rejected"])


@pytest.mark.parametrize(
    ("one", "other", "against"),
    [
        ("lock", "unlock", True),
        ("increase", "decrease", True),
        ("goedkeuren", "afkeuren", True),
        ("encrypt", "decrypt", True),
        ("1", "2", True),
        ("t02", "check", True),
        ("a", "b", True),
        ("enable", "disable", True),
        ("price", "estimate", False),
        ("categorise", "assign", False),
    ],
)
def test_words_that_number_or_deny(one: str, other: str, against: bool) -> None:
    assert opposed([one], [other]) is opposed([other], [one]) is against


def test_history_tells_words_apart_that_one_person_used_side_by_side() -> None:
    contrasts = WordContrasts(
        [[["approve", "claim"], ["reject", "claim"], ["pay"]], [["send", "letter"], ["print", "form"]]]
    )
    assert contrasts.separates(["approved"], ["rejected"])
    assert not contrasts.separates(["send"], ["print"])
    assert not contrasts.separates(["approve"], ["approve"])
    assert not contrasts.separates(["approve"], ["pay"])


WORDS = st.sampled_from(
    ["order", "orders", "ordered", "notify", "notifies", "goods", "good", "pay", "pays", "item1", "item2", "登録", "x"]
)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=12))
def test_blocks_lose_no_pair_with_the_same_words(names: list[list[str]]) -> None:
    every = [(i, j) for i, j in combinations(range(len(names)), 2) if same_words(names[i], names[j])]
    assert sorted(same_word_pairs(dict(enumerate(names)))) == every


def test_names_of_other_blocks_are_not_compared() -> None:
    names = {7: ["send", "reminders"], 3: ["send", "reminder"], 5: ["pay", "reminder"], 9: ["reminder", "send"]}
    assert sorted(same_word_pairs(names)) == [(3, 7), (3, 9), (7, 9)]
