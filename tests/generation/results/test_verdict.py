"""What takes "clear" away from an answer, and which success is shown."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opus_pipelines.core.settings import Settings
from opus_pipelines.generation.results.verdict import USUAL_PATH, ExpectedSuccess, Verdict, unread_documents
from opus_pipelines.intakes.documents.document import UNSURE
from opus_pipelines.intakes.elements import FOREIGN, FOREIGN_REQUEST, Element
from opus_pipelines.intakes.procedures.reading import ParsedProcedure
from opus_pipelines.lwm.retrieval.completeness import OUTCOMES, Completeness
from opus_pipelines.lwm.retrieval.similar_cases import StartOutcomes

SCAN = "1 page without a text layer: pictures of text need OCR, which is missing here; ask for the text"


def element(name: str, left_out: str | None = None, text: str | None = "Please pay.") -> Element:
    return Element(name, "input", "document", name, None, text, 1, "", left_out)


READ = element("mail.eml")


def result(
    elements: tuple[Element, ...] = (READ,),
    not_applied: int = 0,
    basis: str | None = "text",
    doubt: str | None = None,
    at_start: StartOutcomes | None = None,
    ranked: int = 3,
    procedure: ParsedProcedure | None = None,
) -> Any:
    return SimpleNamespace(
        evidence=SimpleNamespace(completeness=Completeness(OUTCOMES, doubt, basis=basis), procedure=procedure),
        request=SimpleNamespace(intake=SimpleNamespace(elements=list(elements))),
        context=SimpleNamespace(
            requirements=SimpleNamespace(rules=SimpleNamespace(not_applied=not_applied)), settings=Settings()
        ),
        at_start=at_start,
        ranked=[None] * ranked,
    )


def candidate(best_share: float = 0.9, risks: tuple[str, ...] = (), violations: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(
        risks=risks,
        violations=violations or risks,
        evaluation=SimpleNamespace(success_probability=0.99),
        confidence=SimpleNamespace(best_share=best_share),
    )


def verdict(best: Any = None, lacks: int = 0, **more: Any) -> tuple[str, tuple[str, ...]]:
    made = result(**more)
    found = Verdict.of(best or candidate(), made, lacks, ExpectedSuccess.of(0.99, made))
    return found.name, found.reasons


def test_a_first_workflow_that_is_surely_the_best_and_lacks_nothing_is_clear() -> None:
    assert verdict() == ("clear", ())
    assert verdict(candidate(best_share=0.8)) == ("clear", ())


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"elements": (READ, element("form.pdf", SCAN, None))}, "1 of 2 documents not read: form.pdf (scan)"),
        ({"not_applied": 5}, "5 rules of the documents not applied"),
        ({"procedure": ParsedProcedure("", (), 1.0, doubts=("2 of 9 sentences",))}, "2 of 9 sentences"),
        ({"lacks": 1}, "1 statement of the procedure without a step"),
        ({"doubt": "only 1.0 similar successes"}, "only 1.0 similar successes"),
        ({"best": candidate(best_share=0.79)}, "probability 0.79"),
        ({"ranked": 1}, "no other workflow"),
        ({"best": candidate(violations=("must_contain: 'Audit'",))}, "must_contain: 'Audit'"),
        (
            {"at_start": StartOutcomes(0.25, 400.0, "attributes")},
            "99.0%, and of the cases that are like it at the start 25.0%",
        ),
    ],
)
def test_one_doubt_takes_clear_away(more: dict[str, Any], reason: str) -> None:
    name, reasons = verdict(**more)
    assert (name, len(reasons), reason in reasons[0]) == ("undecided", 1, True)


def test_a_request_that_nothing_can_be_compared_with_is_not_answered() -> None:
    assert verdict(basis="all cases") == ("not answered", (USUAL_PATH,))


def test_a_demanded_step_that_will_be_late_is_a_rule_at_risk() -> None:
    late = "deadlines: 'Send' within 90 days of the start: kept with probability 0.077"
    assert verdict(candidate(risks=(late,))) == ("rule at risk", (late,))
    assert verdict(candidate(risks=(late,)), basis="all cases")[0] == "rule at risk"


def test_documents_that_were_not_read_are_named_with_the_reason() -> None:
    found = [
        READ,
        element("sop.docx", FOREIGN.format(language="Dutch"), None),
        element("brief.txt", FOREIGN_REQUEST.format(language="French")),
        element("scan.pdf", "page 3 without a text layer (no OCR)"),
        element("fax.tif", f"page 1 was {UNSURE} (0.81)"),
        element("plan.dwg", "nobody reads this format", None),
        element("mail.eml", "the HTML version of its text (the plain one was read)"),
    ]
    assert unread_documents(found) == [
        "sop.docx (Dutch)",
        "brief.txt (French)",
        "scan.pdf (scan)",
        "fax.tif (unsure scan)",
        "plan.dwg (not readable)",
    ]


@pytest.mark.parametrize(
    ("of_steps", "at_start", "expected"),
    [
        (0.9, None, (0.9, "steps")),
        (None, None, (None, None)),
        (0.995, StartOutcomes(0.25, 400.0, "attributes"), (0.25, "similar cases")),
        (0.9, StartOutcomes(0.85, 20.0, "text"), (0.9, "steps")),  # within the interval, .64 to .95
        (0.2, StartOutcomes(0.85, 400.0, "text"), (0.2, "steps")),  # the lower one
        (None, StartOutcomes(0.7, 900.0, "attributes"), (0.7, "similar cases")),
        (0.2, StartOutcomes(0.7, 900.0, "all cases"), (0.7, "cases of the process")),
    ],
)
def test_the_success_shown_is_held_against_what_happened(
    of_steps: float | None, at_start: StartOutcomes | None, expected: tuple[float | None, str | None]
) -> None:
    found = ExpectedSuccess.of(of_steps, result(at_start=at_start))
    assert (found.success, found.basis) == expected


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 1000))
def test_the_success_shown_is_never_above_the_interval_of_what_happened(p: float, rate: float, cases: float) -> None:
    at_start = StartOutcomes(rate, cases, "text")
    found = ExpectedSuccess.of(p, result(at_start=at_start))
    assert found.success is not None
    assert found.success <= max(at_start.interval[1], rate) + 1e-12
    assert found.success <= max(p, rate)
