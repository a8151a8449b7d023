"""Work steps, events and outcomes are told apart by evidence; what is not sure is a step."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.history.records.activity_kinds import (
    KINDS,
    Classified,
    Evidence,
    NameMeaning,
    classify,
    classify_source,
    merge_kinds,
    read_name,
    unknown_names,
)

WHOLE = Evidence(cases=100)
SEEN = Evidence(occurrences=30, executed=30, followed=30, named=30, dated=30, waited=30, cases=30)
TOTAL = Evidence(occurrences=500, executed=500, followed=400, named=480, dated=500, waited=400)


def kind(name: str, counts: Evidence = SEEN, total: Evidence = TOTAL, whole: Evidence = WHOLE) -> str:
    return classify(name, counts, total, whole).kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Permit REJECTED by SUPERVISOR", "outcome"),
        ("A_DECLINED", "outcome"),
        ("O_CANCELLED", "outcome"),
        ("Claim rejected", "outcome"),
        ("CODE NOK", "outcome"),
        ("Antrag abgelehnt", "outcome"),
        ("Bestelling geannuleerd", "outcome"),
        ("not approved", "outcome"),
        ("End trip", "event"),
        ("Start trip", "event"),
        ("Trip ended", "event"),
        ("Beginn der Reise", "event"),
        ("Offer expired", "event"),
        ("Wait", "event"),
        ("Queued", "event"),
        ("Waiting for customer", "event"),
        ("Permit SUBMITTED by EMPLOYEE", "step"),
        ("Declaration APPROVED by ADMINISTRATION", "step"),
        ("Payment Handled", "step"),
        ("Request Payment", "step"),
        ("Notify claim rejected", "step"),
        ("Handle rejected claim", "step"),
        ("Cancel order", "step"),
        ("Reject application", "step"),
        ("DELETE", "step"),
        ("Closed", "step"),
        ("Start", "step"),
        ("FIN", "step"),
        ("Start assessment", "step"),
        ("Send Reminder", "step"),
        ("", "step"),
        ("123", "step"),
        ("refused_items_report", "step"),
    ],
)
def test_names_that_the_logs_use(name: str, expected: str) -> None:
    assert kind(name) == expected


def test_a_bare_refusal_needs_two_observations() -> None:
    goes_back = replace(SEEN, repeat_follows=20)
    assert kind("STORNO", goes_back) == "step"  # in 30 of 100 cases: only one observation
    rare = replace(goes_back, cases=15)
    assert kind("STORNO", rare) == "outcome"
    reason = classify("STORNO", rare, TOTAL, WHOLE).reason
    assert ["'storno'" in reason, "66.7 %" in reason, "15.0 %" in reason] == [True, True, True]


def test_start_and_end_of_a_thing_that_no_list_knows() -> None:
    """Dates without a time of day, and nobody who did it: both are needed."""
    dates = replace(SEEN, whole_hour=30)
    assert kind("End expedition", dates) == "step"
    assert kind("End expedition", replace(dates, named=0), replace(TOTAL, named=450)) == "event"
    assert (
        kind("End expedition", replace(dates, named=0), replace(TOTAL, named=450, whole_hour=500)) == "step"
    )  # all times are dates


def test_a_marker_stands_at_the_edge_of_the_case() -> None:
    assert kind("START", replace(SEEN, first=30)) == "event"
    assert kind("End", replace(SEEN, last=28, followed=2)) == "event"
    assert kind("End", replace(SEEN, last=20, followed=10)) == "step"


def test_what_somebody_works_on_is_no_event() -> None:
    worked = replace(SEEN, timed=30, instant=3)
    found = classify("Wait for documents", worked, TOTAL, WHOLE)
    assert found.kind == "step"
    assert "90.0 %" in found.reasons[0]
    assert kind("Wait for documents", replace(SEEN, timed=30, instant=30)) == "event"


def test_a_refusal_that_successful_cases_contain_is_work() -> None:
    whole = Evidence(cases=100, cases_known=100, cases_succeeded=60)
    assert kind("Claim rejected", replace(SEEN, cases_known=30, cases_succeeded=2), TOTAL, whole) == "outcome"
    assert kind("Claim rejected", replace(SEEN, cases=50, cases_known=50, cases_succeeded=40), TOTAL, whole) == "step"


def test_tools_and_models_have_no_events() -> None:
    untimed = Evidence(occurrences=30, executed=30, last=30, cases=3)
    assert [kind(name, untimed) for name in ("wait", "start", "appliance_repair_cancellation", "reject")] == [
        "step"
    ] * 4
    assert [kind(name, Evidence(occurrences=30)) for name in ("Wait 5 minutes", "Rejected", "Start trip")] == [
        "step"
    ] * 3


def test_what_a_person_states_wins() -> None:
    evidence = {"Claim rejected": SEEN, "Check": SEEN}
    found = classify_source(evidence, WHOLE, {"Claim rejected": "step", "Check": "event"})
    assert {name: (c.kind, c.confidence, c.reason) for name, c in found.items()} == {
        "Claim rejected": ("step", 1.0, "stated in source.toml"),
        "Check": ("event", 1.0, "stated in source.toml"),
    }


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    (near,) = unknown_names({"End tripp": "event", "Check": "step"}, ["Check", "End trip", "Start trip"])
    assert near.startswith("[activities] event: 'End tripp' ")
    assert near.endswith(" nearest are 'End trip', 'Start trip'")
    (far,) = unknown_names({"zzz": "outcome"}, ["Check", "End trip"])
    assert far.startswith("[activities] outcome: 'zzz' ")
    assert far.endswith(" activities are 'Check', 'End trip'")


def test_merging_over_sources() -> None:
    event, step = Classified("event", 0.8, ("waits",)), Classified("step", 0.9, ("plain",))
    stated = Classified("outcome", 1.0, ("stated in source.toml",))
    assert merge_kinds([("a", "x", 5, event), ("b", "x", 9, step)]).kind == "step"
    both = Classified("event", 0.8, ("waits", "step by other evidence (5 of 14 occurrences)"))
    assert merge_kinds([("a", "x", 9, event), ("b", "x", 5, step)]) == both
    tie = merge_kinds([("a", "x", 5, event), ("b", "x", 5, step)])
    assert (tie.kind, tie.reason) == ("step", "its sources disagree: step 5 times, event 5 times")
    assert merge_kinds([("a", "x", 900, event), ("b", "x", 1, stated)]) == stated


COUNTS = st.builds(Evidence, **dict.fromkeys(Evidence.__dataclass_fields__, st.integers(0, 50)))
KIND = st.builds(
    Classified, st.sampled_from(KINDS), st.just(0.9), st.sampled_from([("r",), ("stated in source.toml",)])
)


@given(st.text(max_size=30), COUNTS, COUNTS, COUNTS)
def test_every_name_and_count_has_a_kind(name: str, counts: Evidence, rest: Evidence, whole: Evidence) -> None:
    found = classify(name, counts, counts + rest, whole)
    assert found.kind in KINDS
    assert 0 <= found.confidence <= 1
    assert found.kind == "step" or (found.confidence >= 0.75 and read_name(name) is not None)
    assert found.reason


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(1, 5), KIND), max_size=6),
    st.randoms(),
)
def test_the_order_of_sources_changes_nothing(rows: list[Any], random: Any) -> None:
    rows = list({row[:2]: row for row in rows}.values())
    shuffled = rows[:]
    random.shuffle(shuffled)
    assert merge_kinds(rows) == merge_kinds(shuffled)


def test_words_are_separated() -> None:
    assert read_name("claimRejected") == (NameMeaning.REFUSED, "rejected")
    assert read_name("claim_rejected_02") == (NameMeaning.REFUSED, "rejected")
    assert read_name("Urlaub beendet") == (NameMeaning.OUTSIDE, "urlaub")
