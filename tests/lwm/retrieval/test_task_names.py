"""Which names of tasks the sentences of a request name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.lwm.retrieval.task_names import named_in

FINES = ["Create Fine", "Send Fine", "Payment", "Add penalty", "Send Appeal to Prefecture", "Appeal to Judge"]
PERMITS = ["Confirmation of receipt", "T02 Check confirmation of receipt", "T03 Adjust confirmation of receipt"]
CLAIMS = ["Request Payment", "APPROVED by BUDGET OWNER", "REJECTED by BUDGET OWNER", "Final_approved by DIRECTOR"]


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("The driver wants to appeal to the prefecture.", FINES, ["Send Appeal to Prefecture"]),
        ("The driver has not paid, so a penalty has to be added.", FINES, ["Add penalty"]),
        ("The payment of the fine is late.", FINES, []),  # a name of one word must begin a sentence
        ("Payment of a fine", FINES, ["Payment"]),
        ("Adjust the confirmation of receipt.", PERMITS, ["T03 Adjust confirmation of receipt"]),
        ("The budget owner must approve it.", CLAIMS, ["APPROVED by BUDGET OWNER"]),
        ("It needs the final approval of the director.", CLAIMS, ["Final_approved by DIRECTOR"]),
        ("", FINES, []),
        ("A driver parked on the pavement.", FINES, []),
    ],
)
def test_the_most_specific_name_that_a_sentence_has_is_found(text: str, names: list[str], found: list[str]) -> None:
    assert [names[place] for place in named_in([text], names)] == found


def test_two_neighbouring_sentences_may_name_a_task_together() -> None:
    names = ["Tell reasons to hold request", "Print report"]
    assert named_in(["We must hold this request.", "Tell him why."], names) == [0]
    assert named_in(["We must hold it.", "It came by post.", "Tell him why."], names) == []


@given(st.lists(st.text(max_size=40), max_size=4), st.lists(st.text(max_size=20), max_size=6))
def test_every_place_is_one_of_a_name_and_comes_once(text: list[str], names: list[str]) -> None:
    found = named_in(text, names)
    assert found == sorted(set(found))
    assert all(0 <= place < len(names) for place in found)
