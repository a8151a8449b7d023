"""From which cosine on a request is like history, learnt from requests that were held out."""

import numpy as np
import pytest

from opus_pipelines.generation.results.workflow_rows import conditional_steps, lacking_steps, unsaid_steps
from opus_pipelines.intakes.procedures.reading import ParsedProcedure, ProcedureStep
from opus_pipelines.lwm.interface import SimilarCase
from opus_pipelines.lwm.retrieval.completeness import LEAST_COSINE
from opus_pipelines.lwm.retrieval.intentions import HeldOutRequests, Likeness


def case(similarity: float) -> SimilarCase:
    return SimilarCase("i", similarity, 1.0, True, None, None, None, ("a",), ("a",), (None,), (None,), (None,))


@pytest.mark.parametrize(
    ("known", "unknown", "bound"),
    [
        (np.linspace(0.8, 1.0, 101), np.linspace(0.1, 0.6, 101), 0.59),  # what held-out industries reach
        (np.linspace(0.8, 1.0, 101), np.linspace(0.1, 0.3, 101), LEAST_COSINE),  # they may all be far away
        (np.linspace(0.4, 1.0, 101), np.linspace(0.1, 0.7, 101), 0.412),  # no more than 2 % of the known ones
        (np.linspace(0.8, 1.0, 101), np.zeros(0), LEAST_COSINE),  # one industry alone shows nothing
        (np.ones(3), np.zeros(3), LEAST_COSINE),
    ],
)
def test_the_bound_catches_held_out_industries_and_spares_the_known(
    known: np.ndarray, unknown: np.ndarray, bound: float
) -> None:
    assert HeldOutRequests(known, unknown).likeness.least_cosine == pytest.approx(bound)


def test_an_intake_below_the_bound_is_unlike_history() -> None:
    assert Likeness(0.5).reason([case(0.5), case(0.1)]) is None
    assert "0.49" in (Likeness(0.5).reason([case(0.49)]) or "")
    assert Likeness(0.5).reason([]) is None


PROCEDURE = "Check the certificate of the student. Collect the fee for the term.\n\nSend the card to the student."


def test_what_the_procedure_lists_and_the_workflow_lacks_is_named() -> None:
    read = ParsedProcedure("", (ProcedureStep("t", "collect_fee", "Collect the fee for the term.", 1.0),), 0.5)
    lacks = ["Check the certificate of the student.", "Send the card to the student."]
    assert lacking_steps(PROCEDURE, read, ["collect_fee"]) == lacks
    assert lacking_steps(PROCEDURE, None, ["Check certificate"])[1:] == ["Send the card to the student."]
    assert lacking_steps(PROCEDURE, read, ["send_card"])[1:] == ["Collect the fee for the term."]  # it left the plan


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("Collect the fee and inform the press.", ["inform the press"]),
        ("When it rains, collect the fee.", []),
        ("Never inform the press.", []),
        ("Collect the fee; otherwise send a reminder.", ["otherwise send a reminder."]),
        ("Step | Who\nCollect fee | clerk\nArchive the file | clerk", ["Archive the file"]),
        ("# Fees\n\n- Collect fee\n- Inform press", ["Inform press"]),
        ("One term is one fee. Most students are called freshmen.", []),  # facts
        ("Collect the fee before the card is printed.", []),  # the fee is collected; when, is no step
        ("Owner: the bursar. Collect the fee.", []),
    ],
)
def test_every_clause_that_no_step_stands_for_is_named(text: str, lacks: list[str]) -> None:
    assert lacking_steps(text, None, ["collect_fee"]) == lacks


@pytest.mark.parametrize(
    ("text", "known", "conditional"),
    [
        ("Collect the fee, if the student is new.", "A card, please.", ["collect_fee: if the student is new"]),
        ("Collect the fee, if the student is new.", "The student is new.", []),
        (
            "Collect the fee unless the student is new.",
            "The student is new.",
            ["collect_fee: unless the student is new"],
        ),
        ("Collect the fee. If he is late, collect the fee twice.", "", []),
    ],
)
def test_a_step_under_a_condition_that_the_client_does_not_state_is_named(
    text: str, known: str, conditional: list[str]
) -> None:
    read = ParsedProcedure("", (ProcedureStep("t", "collect_fee", "Collect the fee", 1.0),), 0.5)
    assert conditional_steps(text, read, ["collect_fee"], known) == conditional
    assert conditional_steps(text, read, ["send_card"], known) == []


TICKETS = "No | Step\n1 | Insert ticket\n2 | Resolve the ticket\n3 | Call the user back\n4 | The desk closes it"


@pytest.mark.parametrize(
    ("text", "rules", "lacks"),
    [
        (TICKETS, [], ["Insert ticket", "Call the user back"]),
        (TICKETS, ["Call the user back."], ["Insert ticket"]),  # what was read as a rule is told with its effect
        ("It must be finally approved by the supervisor. The receipt is scanned.", [], ["The receipt is scanned."]),
        ("", [], None),
        (" ".join(f"The clerk writes letter {n}." for n in range(21)), [], None),
    ],
)
def test_where_history_decides_what_neither_step_nor_rule_stands_for_is_named(
    text: str, rules: list[str], lacks: list[str] | None
) -> None:
    titles = ["Resolve ticket", "Closed", "Request FINAL_APPROVED by SUPERVISOR"]
    assert unsaid_steps(text, None, titles, rules) == lacks
