"""Procedures read: lessons from cases, the part that is asked for, the steps of its sentences, names where a sentence
is new.
"""

from typing import Any

import numpy as np
import pytest

from opus_pipelines.intakes.procedures.models import SentenceTaskModel, TaskCatalogue, old_requests_of, units_of
from opus_pipelines.intakes.procedures.names import NameCoverage, fit_probability, named_share, words
from opus_pipelines.intakes.procedures.reading import clauses, parse_procedure, texts_to_embed
from opus_pipelines.intakes.procedures.relevant_parts import RequestText
from opus_pipelines.language.embedding.texts import Part, Sentence, parts, plain

APPROVED, KNOWN, SMALL = (
    "The invoice is approved by the controller.",
    "The supplier stands in the ledger.",
    "The amount is small enough.",
)
HISTORY = f"""\
* pay_invoice:
- {APPROVED}
- {KNOWN}

* close_invoice:
- {APPROVED}

* approve_invoice
"""
TEXTS = HISTORY, SMALL, "refund invoice look up exchange rate for currency please approve ledger"
VOCABULARY = sorted({w for t in TEXTS for w in words(t)})
TITLES = {
    t: t for t in ("approve_invoice", "look_up_supplier", "pay_invoice", "close_invoice", "log_in", "get_exchange_rate")
}


def vector(text: str) -> np.ndarray:
    """A bag of words."""
    found = np.array([float(w in words(text)) for w in VOCABULARY])
    return found / max(np.linalg.norm(found), 1e-9)


def asked(text: str) -> RequestText:
    return RequestText(text, vector(text))


class Vectors(dict):
    def __missing__(self, text: str) -> Any:
        return vector(text)


def encode(texts: list[str]) -> Any:
    return np.stack([vector(t) for t in texts])


def named(name: str) -> Any:
    return next((t for t in TITLES if plain(t) == plain(name)), None)


def lessons(more: list[Any] | tuple[Any, ...] = ()) -> Any:
    pay, close, bare = parts(HISTORY)
    cases = [(pay, False, ("log_in", "approve_invoice", "look_up_supplier", "pay_invoice"))] * 6
    cases += [(close, False, ("log_in", "approve_invoice", "close_invoice"))] * 6
    cases += [(Part("pay_invoice", pay.sentences[1:]), False, ("look_up_supplier", "pay_invoice"))] * 6
    return SentenceTaskModel(
        units_of([*cases, *more]),
        [pay, close, bare],
        old_requests_of([("pay invoice", ["please pay"])]),
        Vectors(),
        TaskCatalogue(TITLES, named),
    )


def test_a_sentence_learns_what_was_done_because_of_it() -> None:
    found = lessons()
    asked = {
        (c, t)
        for n, c in enumerate(found.causes)
        for m, t in enumerate(found.tasks)
        if found.cause_weights[n, m] >= 0.5
    }
    assert asked == {(APPROVED, "approve_invoice"), (APPROVED, "log_in"), (KNOWN, "look_up_supplier")}


def test_tasks_that_end_cases_are_ends() -> None:
    found = lessons()
    assert dict(zip(found.tasks, found.is_intermediate.tolist(), strict=True)) == {
        "approve_invoice": True,
        "close_invoice": False,
        "log_in": True,
        "look_up_supplier": True,
        "pay_invoice": False,
    }


def test_an_end_may_be_a_step_where_its_first_word_is_mostly_that_of_steps() -> None:
    rate = Part("get_exchange_rate", (Sentence(APPROVED),))
    more = [(rate, False, ("log_in", "get_exchange_rate"))] * 6
    usable = lambda found: {t for t, may in zip(found.tasks, found.may_be_step.tolist(), strict=True) if may}
    steps = {"approve_invoice", "log_in", "look_up_supplier"}
    assert usable(lessons(more)) == steps  # nothing else that begins with "get" is a step
    TITLES["get_supplier"] = "get_supplier"
    part = Part("pay_invoice", (Sentence("The supplier is known."),))
    more.append((part, False, ("get_supplier", "pay_invoice")))
    try:
        assert usable(lessons(more)) == steps | {"get_supplier", "get_exchange_rate"}
    finally:
        del TITLES["get_supplier"]


def test_a_refused_case_counts_for_what_it_did_and_little_against_what_it_did_not() -> None:
    pay = parts(HISTORY)[0]
    refused = [(pay, True, ("log_in",))] * 20
    found = lessons(refused)
    assert found.cause_weights[found.causes.index(KNOWN), found.tasks.index("look_up_supplier")] > 0.5


def test_the_part_that_is_asked_for_gives_the_steps_in_historys_order() -> None:
    text = f"* pay_invoice:\n- {KNOWN}\n- {APPROVED}\n\n* close_invoice:\n- {APPROVED}\n"
    found = parse_procedure(asked("please pay the invoice"), parts(text), None, lessons(), encode)
    assert found.head == "pay_invoice"
    assert found.tasks == ("log_in", "approve_invoice", "look_up_supplier", "pay_invoice")
    assert [s.sentence for s in found.steps] == [APPROVED, APPROVED, KNOWN, None]
    assert found.explained_share == 1.0


def test_a_heading_that_nobody_did_is_a_new_step_at_the_end() -> None:
    text = f"* refund_invoice:\n- {KNOWN}\n\n* pay_invoice:\n- {KNOWN}\n"
    found = parse_procedure(asked("refund"), parts(text), "x", lessons(), encode)
    assert [(s.name, s.is_new) for s in found.steps] == [("look_up_supplier", False), ("refund_invoice", True)]
    assert found.steps[-1].task_id.startswith("t")
    assert found.steps[-1].instructions == (KNOWN,)


def test_a_new_sentence_asks_for_what_its_name_fits() -> None:
    text = "* pay_invoice:\n- Look up the exchange rate for the currency.\n\n* look_up_exchange_rate\n"
    found = parse_procedure(asked("pay invoice"), parts(text), None, lessons(), encode)
    assert [(s.name, s.is_new) for s in found.steps] == [("look_up_exchange_rate", True), ("pay_invoice", False)]


def test_of_an_either_group_the_sentence_that_adds_least_is_followed() -> None:
    text = f"* pay_invoice:\n- {KNOWN}\n- Any of these:\n  - {APPROVED}\n  - {KNOWN}\n"
    assert parse_procedure(asked("pay"), parts(text), None, lessons(), encode).tasks == (
        "look_up_supplier",
        "pay_invoice",
    )


def test_the_branch_of_an_either_group_is_chosen_by_the_value_that_each_request_states() -> None:
    text = f"""* pay_invoice:
- Either of these:
  - All of these:
  - The kind must be 'foreign'.
  - {APPROVED}
  - All of these:
  - The kind must not be 'foreign'.
  - {KNOWN}
"""
    model = lessons()  # one model, which keeps what it has read of the same parts
    for request_text, step in (("pay a foreign invoice", "approve_invoice"), ("pay at once", "look_up_supplier")):
        found = parse_procedure(asked(request_text), parts(text), None, model, encode)
        assert {"approve_invoice", "look_up_supplier"} & set(found.tasks) == {step}


def test_one_sentence_asks_for_two_steps_where_both_clauses_name_one() -> None:
    text = "* pay_invoice:\n- Look up the exchange rate for the currency and look up the supplier.\n\n"
    found = parse_procedure(asked("pay"), parts(text + "* look_up_exchange_rate\n"), None, lessons(), encode)
    assert {s.name for s in found.steps} == {"look_up_exchange_rate", "look_up_supplier", "pay_invoice"}


def test_a_sentence_has_clauses_only_where_it_has_several() -> None:
    assert clauses("Verify the identity and check the balance.") == ["Verify the identity", "check the balance."]
    assert clauses("Verify name and address of the customer.") == []


def test_a_heading_is_named_by_words_abbreviations_and_initials() -> None:
    names = ["change dl address", "change vehicle address", "get reg status"]
    shares = named_share("Please change the address of my driver's license", names).round(2).tolist()
    assert shares[0] == 1.0
    assert shares[1] < 1.0
    assert named_share("What is the status of the registration?", names).argmax() == 2


def test_a_step_with_a_part_of_its_own_brings_what_that_asks_for() -> None:
    text = f"* refund_invoice:\n- {APPROVED}\n\n* approve_invoice:\n- {KNOWN}\n"
    found = parse_procedure(asked("refund"), parts(text), None, lessons(), encode)
    assert {s.name for s in found.steps} == {"log_in", "approve_invoice", "look_up_supplier", "refund_invoice"}


def test_a_heading_among_headings_that_name_no_task_is_no_step() -> None:
    found = parse_procedure(
        asked("invoice refund"), parts(f"Refund of invoices:\n{APPROVED}\n"), None, lessons(), encode
    )
    assert [s.name for s in found.steps] == ["log_in", "approve_invoice"]
    assert not found.has_goal


@pytest.mark.parametrize("text", ["", "# A title\n\nNothing here says what to do about whales."])
def test_a_text_that_asks_for_nothing_is_no_reading(text: str) -> None:
    assert parse_procedure(asked("pay"), parts(text), None, lessons(), encode) is None


def test_every_text_that_is_asked_for_is_announced() -> None:
    found = parts(HISTORY)
    told = set(texts_to_embed(found))

    def strict(texts: list[str]) -> Any:
        assert set(texts) <= told
        return encode(texts)

    assert parse_procedure(asked("pay invoice"), found, None, lessons(), strict) is not None


def test_a_name_fits_by_the_rare_words_it_shares() -> None:
    sentences = [APPROVED, KNOWN, SMALL]
    naming = NameCoverage(sentences, encode(sentences))
    scores = naming.scores(
        [KNOWN], encode([KNOWN]), ["check ledger", "approve invoice"], encode(["check ledger", "approve invoice"])
    )[0]
    assert scores[0] > scores[1]
    assert fit_probability(np.array([0.3])) == pytest.approx(0.5)


def test_words_without_a_meaning_of_their_own_are_left_out() -> None:
    assert words("The policies of all users") == {"policy", "user"}


def test_a_unit_is_a_part_with_one_text() -> None:
    part = Part("a", (Sentence("One two three."),))
    (unit,) = units_of([(part, False, ("x", "y", "x")), (Part("a", (Sentence("One two three.", 0),)), True, ("x",))])
    assert (unit.done, unit.refused) == ([("x", "y")], [("x",)])
