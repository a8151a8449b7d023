"""Similar cases without text: attributes count, unknown ones do not, and where nothing is known the scope as a whole
counts.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.schemas import CASES
from opus_pipelines.intakes.elements import Element
from opus_pipelines.intakes.intake import Intake
from opus_pipelines.language.embedding.index import RowSearch
from opus_pipelines.lwm.retrieval.similar_cases import (
    Features,
    IndustryCases,
    Proximity,
    StartOutcomes,
    amounts_in,
    is_amount_name,
)

BEGAN = datetime(2024, 1, 1, tzinfo=UTC)


def case(number: int, tasks: str, attributes: dict[str, Any] | tuple[Any, ...] = (), **other: Any) -> Any:
    row = dict.fromkeys(CASES.schema.names)
    return (
        row
        | {
            "implementation_id": f"i{number:04d}",
            "source": "s",
            "industry": "travel",
            "weight": 1,
            "tasks": list(tasks),
            "task_keys": list(tasks),
            "attributes": list(dict(attributes).items()),
            "started_at": BEGAN + timedelta(hours=number),
            "p_ended": 1.0,
        }
        | other
    )


TITLES = {"c": "Create fine", "p": "Add penalty", "a": "Send appeal to the prefecture"}


def scope(rows: list[dict[str, Any]], vectors: dict[str, Any] | None = None) -> Any:
    told = [n for n, row in enumerate(rows) if row["implementation_id"] in (vectors or {})]
    matrix = [(vectors or {})[rows[n]["implementation_id"]] for n in told] or np.zeros((0, 3))
    search = RowSearch(np.array(matrix, np.float32), np.array(told, np.int64), len(rows))
    return IndustryCases(pa.Table.from_pylist(rows, schema=CASES.schema), search, np.arange(len(rows)), TITLES)


def intake(text: str = "", **attributes: Any) -> Any:
    element = Element("e", "input", "document", "request.json", "application/json", text, 0, "", None)
    return Intake("i", "f", None, [element], "travel", attributes=attributes)


def by_amount(n: int = 200) -> Any:
    """Claims above 1,000 go to the director, all others to the supervisor; the country says nothing."""
    return [
        case(n, "sdp" if amount > 1_000 else "sup", {"amount": str(amount), "country": "nl" if n % 3 else "de"})
        for n in range(n)
        for amount in [100 + (n * 37) % 2_000]
    ]


@pytest.mark.parametrize(("amount", "tasks"), [("1800", ("s", "d", "p")), ("250.5", ("s", "u", "p"))])
def test_cases_with_a_like_amount_tell_what_is_done(amount: str, tasks: tuple[str, ...]) -> None:
    found = scope(by_amount()).similar(intake(amount=amount), np.zeros(3))
    assert (found.basis, found.consensus.tasks) == ("attributes", tasks)
    assert found.consensus.support[tasks[1]] > 0.95


def test_attributes_are_read_from_the_clients_documents_and_stated_ones_win() -> None:
    history = scope(by_amount())
    assert history.attributes_of(intake("Amount: 1800\ncountry: nl\ncolour: red")) == {
        "amount": "1800",
        "country": "nl",
    }
    assert history.attributes_of(intake("amount: 1800", Amount="250")) == {"amount": "250"}
    assert history.attributes_of(intake("the amount is unknown")) == {}
    assert history.attributes_of(intake("(case)_Amount: 7\ncase:country: de")) == {"amount": "7", "country": "de"}


def test_a_name_with_a_colon_is_found() -> None:
    rows = [case(n, "ab" if n % 2 else "cd", {"org:role": "boss" if n % 2 else "clerk"}) for n in range(100)]
    found = scope(rows).similar(intake("org:role: boss"), np.zeros(3))
    assert found.consensus.tasks == ("a", "b")


def test_the_end_of_a_path_in_a_record_states_its_attribute_where_no_other_ends_alike() -> None:
    rows = [
        case(n, "ab", {"claim.facts.severity": "high" if n % 2 else "low", "a.id": str(n % 3), "b.id": str(n % 4)})
        for n in range(60)
    ]
    history = scope(rows)
    assert history.attributes_of(intake("severity: high\nid: 2")) == {"claim.facts.severity": "high"}
    assert history.states_attributes(intake("severity: high"))
    assert not history.states_attributes(intake("it is severe"))


def test_an_attribute_decides_among_many_cases_with_like_texts() -> None:
    """Two hundred cases have nearly the text; those of the nearest sixty are all of the other class."""
    rows = [case(n, "aeb" if n % 4 == 0 else "ab", {"risk": "B" if n % 4 == 0 else "A"}) for n in range(200)]
    cosines = [0.99 - (0.02 if n % 4 == 0 else 0.0) for n in range(200)]
    vectors = {f"i{n:04d}": np.array([c, np.sqrt(1 - c * c)]) for n, c in enumerate(cosines)}
    found = scope(rows, vectors).similar(intake("risk: B"), np.array([1.0, 0.0]))
    assert (found.basis, found.consensus.tasks) == ("text and attributes", ("a", "e", "b"))
    assert found.consensus.support["e"] > 0.9


def test_with_neither_text_nor_attributes_all_cases_count() -> None:
    found = scope([case(n, "ab", started_at=None) for n in range(8)]).similar(intake("a case"), np.zeros(3))
    assert (found.basis, found.consensus.tasks, found.consensus.cases) == ("all cases", ("a", "b"), 8.0)


def test_text_decides_where_history_has_texts() -> None:
    rows = [case(1, "ab"), case(2, "cd")]
    found = scope(rows, {"i0001": np.array([1.0, 0.0]), "i0002": np.array([0.0, 1.0])}).similar(
        intake("x"), np.array([0.0, 1.0])
    )
    assert (found.basis, found.nearest, found.consensus.tasks) == ("text", 1.0, ("c", "d"))


def test_a_case_that_was_still_running_counts_with_its_expected_rest() -> None:
    rows = [case(n, "a", p_ended=0.0, expected_rest=["b"], started_at=None) for n in range(4)] + [
        case(9, "x", started_at=None)
    ]
    found = scope(rows).similar(intake(), np.zeros(3))
    assert found.consensus.support == {"a": pytest.approx(0.8), "b": pytest.approx(0.8), "x": pytest.approx(0.2)}


def test_failed_and_empty_cases_are_not_followed() -> None:
    assert scope([case(1, "ab", success=False), case(2, "")]).similar(intake(), np.zeros(3)) is None
    assert scope([case(1, "ab", success=False), case(2, "cd", success=None)]).similar(
        intake(), np.zeros(3)
    ).consensus.tasks == ("c", "d")


def fines() -> list[dict[str, Any]]:
    return [case(n, "ca" if n < 3 else "cp", started_at=None) for n in range(100)]


@pytest.mark.parametrize(
    ("request_", "basis", "tasks"),
    [
        ("He wants to appeal to the prefecture.", "named steps", ("c", "a")),
        ("A driver parked in front of the school.", "all cases", ("c", "p")),
        ("The driver must not appeal to the prefecture.", "all cases", ("c", "p")),
        ("article: appeal to the prefecture", "all cases", ("c", "p")),
    ],
    ids=["named", "names nothing", "forbidden", "an attribute"],
)
def test_without_texts_a_request_finds_the_cases_by_the_steps_that_it_names(
    request_: str, basis: str, tasks: tuple[str, ...]
) -> None:
    rows = [row | {"attributes": [("article", "7")]} for row in fines()]
    found = scope(rows).similar(intake(request_), np.zeros(3))
    assert (found.basis, found.consensus.tasks) == (basis, tasks)


def test_where_history_has_texts_these_decide_and_not_the_names_of_steps() -> None:
    found = scope(fines(), {"i0099": np.array([1.0, 0.0])}).similar(
        intake("He wants to appeal to the prefecture."), np.array([1.0, 0.0])
    )
    assert (found.basis, found.consensus.tasks) == ("text", ("c", "p"))


def test_outcomes_are_compared_over_all_cases_and_only_what_did_not_fail_is_followed() -> None:
    rows = [case(n, "ab", success=n % 2 == 0, started_at=None) for n in range(8)]
    found = scope(rows).similar(intake(), np.zeros(3))
    assert (found.rows.tolist(), found.compared.tolist()) == ([0, 2, 4, 6], [0, 1, 2, 3, 4, 5, 6, 7])
    assert found.compared_weights.tolist() == [1.0] * 8


def test_attributes_of_every_odd_shape_become_finite_numbers() -> None:
    history = [
        {
            "amount": str(n),
            "when": f"2024-01-{n + 1:02d}T10:00:00+01:00",
            "until": f"2024-02-{n + 1:02d}",
            "kind": "a" if n % 2 else "b",
        }
        for n in range(20)
    ]
    made = Features.of(history)
    assert made.known == {"amount", "when", "until", "kind"}
    odd = [
        {},
        {"amount": "NaN"},
        {"amount": "inf"},
        {"amount": "nine"},
        {"when": "yesterday"},
        {"kind": "never seen"},
        {"amount": "1e999"},
    ]
    assert np.isfinite(made.of_cases(odd, [None] * len(odd))).all()
    assert Features.of([{"same": "x"}] * 5).known == frozenset()


def test_a_history_whose_cases_all_do_the_same_gives_weights_and_no_warning() -> None:
    history = [{"amount": str(n)} for n in range(20)]
    found = Proximity(history, [None] * 20, [frozenset(("a",))] * 20, Features.of(history))
    assert found.weights({"amount": "3"}, None).sum() == pytest.approx(1)


def test_where_the_latest_cases_still_run_what_they_are_expected_to_do_is_no_change_of_the_work() -> None:
    """300 cases went a, b or a, c; the last 100 still run and are guessed to go a, d. The forest must not find a
    change there.
    """
    ended = [case(n, "ab" if n % 2 else "ac") for n in range(300)]
    running = [case(300 + n, "a", p_ended=0.1, expected_rest=["d"]) for n in range(100)]
    found = scope([*ended, *running]).similar(intake(), np.zeros(2, np.float32)).consensus
    assert found.support["b"] == pytest.approx(found.support["c"], abs=0.1)
    assert (
        found.support["b"] > 0.15
    )  # with the guesses as a change of the work it is 0: the latest cases alone would count


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("She would like to borrow EUR 12,000 over 60 months.", [12_000.0]),
        ("über 71,25 EUR (Bewirtung), 8. November", [71.25]),
        ("Fine of 36.00, noted on 30 March 2009 at 14:05.", [36.0]),
        ("Montant : 36,00", [36.0]),
        ("EUR 95.00 for the society and EUR 318 for the train.", [95.0, 318.0]),
        ("version 3.10.2 of 12.04.2013, at 10.30 Uhr", []),
    ],
)
def test_amounts_of_money_are_read_from_prose(text: str, amounts: list[float]) -> None:
    assert amounts_in(text) == amounts


@pytest.mark.parametrize(
    ("name", "is_amount"),
    [("Betrag EUR", True), ("RequestedAmount", True), ("case amount_usd", True), ("Article", False), ("Unit", False)],
)
def test_the_name_of_an_attribute_says_whether_it_is_an_amount(name: str, is_amount: bool) -> None:
    assert is_amount_name(name) is is_amount


def test_an_amount_of_the_prose_is_an_attribute_where_one_attribute_and_one_amount_are_meant() -> None:
    history = scope(by_amount())
    assert history.attributes_of(intake("Please pay EUR 1,800.00 to the hotel.")) == {"amount": "1800.0"}
    assert history.attributes_of(intake("amount: EUR 1,800.00")) == {"amount": "1800.0"}
    assert history.attributes_of(intake("EUR 95.00 for the fee, EUR 318 for the train.")) == {}
    few = scope([case(n, "cp" if n % 2 else "c", {"Amount": "36.00" if n % 2 else "74.00"}) for n in range(40)])
    assert few.attributes_of(intake("Fine of 36.00, nothing was paid.")) == {"Amount": "36.00"}


def test_numbers_with_a_decimal_comma_are_numbers() -> None:
    made = Features.of([{"Betrag": f"{n},{n % 10}5"} for n in range(1, 40)] + [{"Betrag": "1.430,63"}])
    assert made.numbers == ["Betrag"]


def test_what_happened_in_cases_like_it_at_the_start_is_no_matter_of_the_steps_that_they_did() -> None:
    rows = [
        case(n, "sp" if n % 4 == 0 else "s", {"amount": str(100 + n)}, success=n % 4 == 0, started_at=None)
        for n in range(200)
    ]
    by_steps = scope(rows).similar(intake("Please pay the send appeal to the prefecture."), np.zeros(3)).at_start
    assert by_steps == StartOutcomes(0.25, pytest.approx(200.0), "all cases")
    like = scope(rows).similar(intake(amount="150"), np.zeros(3)).at_start
    assert (like.basis, 0.1 < like.success < 0.4, 10 < like.cases < 200) == ("attributes", True, True)
    low, high = by_steps.interval
    assert (round(low, 3), round(high, 3)) == (0.195, 0.314)
    assert StartOutcomes.of([None, True], [1.0, 0.0], "text") is None


@given(st.lists(st.tuples(st.sampled_from([True, False, None]), st.floats(0.01, 5)), min_size=1, max_size=30))
def test_the_share_at_the_start_is_counted_over_known_outcomes(cases: list[tuple[bool | None, float]]) -> None:
    outcomes, weights = [success for success, _ in cases], [weight for _, weight in cases]
    found = StartOutcomes.of(outcomes, weights, "text")
    known = [(success, weight) for success, weight in cases if success is not None]
    if found is None:
        assert known == []
        return
    right = sum(weight for success, weight in known if success)
    assert found.success == pytest.approx(right / sum(weight for _, weight in known))
    assert 0 < found.cases <= len(known) + 1e-6
