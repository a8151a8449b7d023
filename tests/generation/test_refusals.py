"""What a procedure does not take, and within which time a request wants to be done."""

import pytest

from opus_pipelines.generation.binding import with_wanted_time
from opus_pipelines.generation.refusals import elsewhere, missing_data, wanted_hours
from opus_pipelines.intakes.elements import FOREIGN_REQUEST, Element
from opus_pipelines.lwm.retrieval.rule_constraints import RuleConstraints
from opus_pipelines.workflow.constraints import Constraints

LACKS = "A request that lacks the amount, the IBAN or the cost centre is not processed: the employee is asked for it."
NEITHER = "A letter that names neither the number of the notice nor the number plate cannot be assigned."
SCOPE = "Mortgages, business loans and overdraft limits are not covered: requests for them are passed on."
ABROAD = "Parkeervergunningen en evenementen vallen er niet onder; die worden doorgestuurd."
OTHERS = "Residents' permits and abandoned vehicles are dealt with by other offices."


def of(request: str | None, procedure: str, left_out: str | None = None) -> list[Element]:
    return [
        Element("e1", "contract", "document", "manual.md", "text/markdown", procedure, 1, "", None),
        Element("e2", "input", "document", "mail.txt", "text/plain", request, 1, "", left_out),
    ]


@pytest.mark.parametrize(
    ("request_text", "procedure", "missing"),
    [
        ("Please pay the caterer.", LACKS, "amount, IBAN, cost centre"),
        ("Please pay EUR 95.00, cost centre 4410-01.", LACKS, "IBAN"),
        ("Pay EUR 95.00 to NL91 ABNA 0417 1643 00, cost centre 4410-01.", LACKS, None),
        ("Mog, patient no. 20633", "No account is started without the patient number of the animal.", None),
        (
            "The dog that bites.",
            "No account is started without the patient number of the animal.",
            "patient number of the animal",
        ),
        ("Supper again!", "A claim without the number of the turn is not dealt with.", "number of the turn"),
        ("I got one of your fines last month!", NEITHER, "number of the notice, number plate"),
        ("I appeal against notice PCN-06650.", NEITHER, None),  # one of them is enough
        ("Nothing is said.", "Without legible receipts nothing is paid; the office asks.", None),  # who knows
        ("Nothing is said.", "Without the amount nothing is paid; the office asks.", "amount"),
        ("Please pay.", "A request that lacks the amount is a nuisance.", None),
        ("Please pay.", "If the amount is missing, the request is sent back.", "amount"),
        ("Please pay.", "Ohne Angabe des Betrags wird nichts ausgezahlt; die Verwaltung fragt zurück.", "Betrags"),
        ("EUR 86.20", "Ohne leserliche Belege und ohne Angabe des Betrags wird nichts ausgezahlt.", None),
        ("EUR 86.20", "Fehlt die IBAN, wird der Antrag zurückgeschickt.", "IBAN"),
        ("Please pay.", "Anträge, die keinen Betrag nennen, werden nicht bearbeitet.", "Betrag"),
        ("Please pay.", "Ontbreekt het bedrag, dan wordt de aanvraag teruggestuurd.", "bedrag"),
        ("Please pay.", "S'il manque le montant, la demande est renvoyée.", "montant"),
        ("Please pay.", "Si falta el importe, la solicitud no se tramita.", "importe"),
    ],
)
def test_data_that_the_procedure_asks_for_are_missing(request_text: str, procedure: str, missing: str | None) -> None:
    found = missing_data(of(request_text, procedure))
    assert (found or "").partition(" is missing")[0].partition(" are missing")[0] == (missing or "")
    assert found is None or procedure.split(":")[0] in found  # with the sentence that says so


def test_what_was_not_read_may_have_the_data() -> None:
    assert missing_data(of(None, LACKS, "1 page without a text layer")) is None
    assert missing_data(of("Merci de payer.", LACKS, FOREIGN_REQUEST.format(language="French"))) is None


@pytest.mark.parametrize(
    ("request_text", "procedure", "expected"),
    [
        ("Hello, we need a mortgage of about EUR 310,000.", SCOPE, ("Mortgages", True)),
        ("A car loan, please. We have no mortgage.", SCOPE, None),
        (
            "1. I appeal, please forward it.\n2. My residents' permit ends, please extend it.",
            OTHERS,
            ("Residents' permits", False),
        ),
        ("My residents' permit ends, please extend it.", OTHERS, ("Residents' permits", True)),
        ("The vehicle was abandoned by the driver.", OTHERS, None),
        ("Could you issue a second parking permit?", ABROAD, ("Parkeervergunningen", True)),
        ("Ik wil graag een parkeervergunning aanvragen.", ABROAD, ("Parkeervergunningen", True)),
        ("Ik vraag een omgevingsvergunning aan voor mijn dakkapel.", ABROAD, None),
        (
            "Ich möchte meine Auslandsreise nach Wien abrechnen.",
            "Auslandsreisen werden nach Richtlinie 14 abgerechnet.",
            ("Auslandsreisen", True),
        ),
        (
            "Je souhaite un prêt immobilier pour la maison.",
            "Les prêts immobiliers ne sont pas traités ici.",
            ("Les prêts immobiliers", True),
        ),
        (
            "Quisiera solicitar una hipoteca para la casa de mi madre.",
            "Las hipotecas no se tramitan aquí.",
            ("Las hipotecas", True),
        ),
        ("Please pay the fee.", "Loans are covered.", None),
        (
            "Please send a quotation for ten seats.",
            "Quotations are not tickets: Sales deals with them.",
            ("Quotations", True),
        ),
        (
            "It crashes, please repair it. Also please send a quotation.",
            "Quotations are not tickets: Sales deals with them.",
            ("Quotations", False),
        ),
        (
            "We need a mortgage.",
            "We have nothing to do with mortgages or with overdrafts; send them on.",
            ("mortgages", True),
        ),
    ],
)
def test_a_request_or_a_part_of_it_is_for_another_process(
    request_text: str, procedure: str, expected: tuple[str, bool] | None
) -> None:
    found = elsewhere(of(request_text, procedure))
    assert (found and (found.what, found.is_whole)) == expected
    assert found is None or found.sentence == procedure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We need this resolved within four hours.", 4.0),
        ("She must have our decision within 24 hours.", 24.0),
        ("Please answer within two days.", 48.0),
        ("I got it within two days.", None),
        ("Please answer.", None),
    ],
)
def test_a_request_says_within_which_time_it_wants_to_be_done(text: str, expected: float | None) -> None:
    found = wanted_hours(of(text, SCOPE))
    assert (found and found[0]) == expected
    rules = with_wanted_time(RuleConstraints(Constraints()), of(text, SCOPE))
    assert rules.constraints.max_lead_time_hours == expected
    assert [(rule.kind, rule.status) for rule in rules.rules] == [("max_lead_time_hours", "in force")] * (
        expected is not None
    )
    stated = with_wanted_time(RuleConstraints(Constraints(max_lead_time_hours=9)), of(text, SCOPE))
    assert stated.constraints.max_lead_time_hours == 9


NAMED = "A report must name the application that fails. If it does not, the reporter is asked, and nothing is done."


@pytest.mark.parametrize(
    ("text", "is_missing"),
    [
        ("Hi, it does not work again, please fix it.", True),
        ("Hi, it does not work: the PLM client hangs.", False),
        ("It does not work on PC-17.", False),
        ("The printer is jammed.", False),
    ],
)
def test_a_request_that_names_nothing_lacks_what_it_must_name(text: str, is_missing: bool) -> None:
    reason = missing_data(of(text, NAMED)) or ""
    assert ("the application is missing" in reason) == is_missing
    assert missing_data(of(text, "A report must name the application that fails.")) is None  # nothing waits for it
