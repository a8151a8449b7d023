"""Rules that name their steps, held against a request."""

import pytest

from opus_pipelines.intakes.elements import Element
from opus_pipelines.lwm.retrieval.conditions import RequestText
from opus_pipelines.lwm.retrieval.named_rules import NamedTasks, named_rules, requested_steps_of

TITLES = {
    "o": "Open package",
    "f": "Finish package",
    "b": "Bill package",
    "d": "Delete package",
    "r": "Reverse invoice",
    "c": "Chase missing documents",
    "a": "Approval by budget owner",
    "k": "Check by administration",
    "s": "Final approval by supervisor",
    "e": "Final approval by director",
    "w": "Wait",
    "x": "Send satisfaction survey",
    "t": "Take in charge ticket",
    "v": "Resolve ticket",
}


def element(text: str, role: str = "contract") -> Element:
    return Element("e1", role, "document", "manual.md", "text/markdown", text, 1, "", None)


def found(text: str, request: str) -> list[tuple[str, str, bool]]:
    rules = named_rules([element(text)], TITLES, request)
    return [(rule.kind, "".join(rule.tasks), rule.is_usual_only) for rule in rules]


MISSING = "If documents are missing, they are chased (Chase missing documents) before the assessment is concluded."


@pytest.mark.parametrize(
    ("text", "request_text", "expected"),
    [
        (MISSING, "Two documents are missing, as the branch says.", [("must_contain", "c", False)]),
        (MISSING, "Nothing is missing.", [("must_not_contain", "c", False)]),
        (MISSING, "The file is complete.", [("must_not_contain", "c", False)]),
        (MISSING, "A loan for a boat.", [("must_not_contain", "c", True)]),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 780.00",
            [("must_contain", "a", False)],
        ),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 95",
            [("must_not_contain", "a", False)],
        ),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 95 for the society, EUR 318 for the train",  # both are below
            [("must_not_contain", "a", False)],
        ),
        (
            "From EUR 400 on, the approval by the budget owner is obtained.",
            "EUR 95 and EUR 900",
            [("must_not_contain", "a", True)],
        ),
        (
            "The customer is told. The ticket is set to Wait where the customer tests.",
            "A bug.",
            [("must_not_contain", "w", True)],
        ),
        ("When the treatment is over, the package is finished (Finish package).", "A knee.", []),  # a moment
        (
            "Where the driver does not pay, the invoice is reversed (Reverse invoice).",
            "A fine.",
            [],
        ),  # it may well hold
        ("Finish package comes before Bill package.", "A knee.", [("before", "fb", False)]),
        ("A ticket is never resolved before an agent has taken it in charge.", "A bug.", [("before", "tv", False)]),
    ],
)
def test_a_condition_is_stated_denied_or_neither(
    text: str, request_text: str, expected: list[tuple[str, str, bool]]
) -> None:
    assert found(text, request_text) == expected


def test_a_paragraph_goes_on_under_the_condition_of_its_sentence() -> None:
    text = (
        "A package that was opened in error (patient did not come, opened twice) is deleted (Delete package). "
        "It is never finished or billed."
    )
    assert found(text, "Package opened on Tuesday, but she did not come.") == [
        ("must_contain", "d", False),
        ("must_not_contain", "f", False),
        ("must_not_contain", "b", False),
    ]
    assert found(text, "The knee visits are over.") == [("must_not_contain", "d", True)]


def test_one_step_takes_the_place_of_another() -> None:
    text = (
        "4. The supervisor gives the final approval. Requests above EUR 2,000 are passed on and then need the final "
        "approval by the director instead."
    )
    assert found(text, "EUR 2,640.00") == [("must_contain", "e", False), ("must_not_contain", "s", False)]
    assert found(text, "EUR 640.00") == [("must_not_contain", "e", False)]


def test_a_new_step_has_its_place_by_words() -> None:
    text = (
        "For customers with a premium contract, a survey is sent (Send satisfaction survey) after the ticket was "
        "resolved."
    )
    assert found(text, "We have a premium contract.") == [("must_contain", "x", False), ("before", "vx", False)]
    assert found(text, "We have a standard contract.") == [("must_not_contain", "x", True)]


def test_a_step_that_is_asked_for_in_any_case_is_left_out_by_no_unstated_condition() -> None:
    always = f"Missing documents are chased in any case (Chase missing documents).\n\n{MISSING}"
    assert found(always, "A loan for a boat.") == []
    assert found(always, "Nothing is missing.") == [("must_not_contain", "c", False)]


def test_a_request_lists_its_steps() -> None:
    listed = requested_steps_of([element("1. Open package\n2. Bill package\n3. Finish package\n", "input")], TITLES)
    assert [(rule.kind, "".join(rule.tasks)) for rule in listed] == [
        ("must_contain", "o"),
        ("must_contain", "b"),
        ("must_contain", "f"),
        ("before", "ob"),
        ("before", "bf"),
    ]
    assert (
        requested_steps_of(
            [element("Do not open. The package was billed in May. No Reverse invoice.", "input")], TITLES
        )
        == []
    )


def test_a_name_of_one_word_must_be_written_as_a_name() -> None:
    tasks = NamedTasks(TITLES)
    assert tasks.named("The ticket is set to Wait.") == ["w"]
    assert tasks.named("Wait for the customer, who may wait, too.") == []
    assert tasks.meant("the ticket was resolved") == "v"
    assert tasks.meant("final approval") is None


def test_what_a_request_states_is_told_by_its_sentences() -> None:
    rarity = {"comparison": 2.0, "site": 2.0, "applic": 1.0, "begin": 2.0}
    asked = RequestText("Channel: comparison site. Please plan the work for this application.")
    assert asked.holds("applications that were begun on a comparison site", rarity) is True
    assert RequestText("By telephone.").holds("applications that were begun on a comparison site", rarity) is None


GERMAN = {
    "p": "Rechnung prüfen",
    "f": "Freigabe durch Abteilungsleitung",
    "z": "Zahlung ausführen",
    "g": "Gutachten einholen",
    "m": "Mahnung versenden",
    "a": "Antrag ablehnen",
}
FRENCH = {
    "v": "Vérifier la facture",
    "a": "Accord de la direction",
    "p": "Payer le fournisseur",
    "e": "Demander une expertise",
    "r": "Envoyer une relance",
}
DUTCH = {
    "c": "Factuur controleren",
    "g": "Goedkeuring door directie",
    "b": "Betaling uitvoeren",
    "t": "Taxatie aanvragen",
    "h": "Herinnering versturen",
}
SPANISH = {
    "r": "Revisar factura",
    "a": "Aprobación de dirección",
    "p": "Pagar al proveedor",
    "t": "Solicitar tasación",
    "n": "Enviar recordatorio",
}
ENGLISH = {
    "p": "Check invoice",
    "f": "Approval by head of department",
    "z": "Carry out payment",
    "g": "Obtain expert report",
    "m": "Send reminder",
}


@pytest.mark.parametrize(
    ("titles", "text", "request_text", "expected"),
    [
        (
            GERMAN,
            "Ab einem Betrag von 5.000 EUR ist die Freigabe durch die Abteilungsleitung einzuholen.",
            "Rechnung über 7.200,00 EUR.",
            [("must_contain", "f")],
        ),
        (
            GERMAN,
            "Ab einem Betrag von 5.000 EUR ist die Freigabe durch die Abteilungsleitung einzuholen.",
            "Rechnung über 720,00 EUR.",
            [("must_not_contain", "f")],
        ),
        (
            GERMAN,
            "Wenn der Schaden im Ausland entstanden ist, wird ein Gutachten eingeholt (Gutachten einholen).",
            "Der Schaden ist im Ausland entstanden, in Wien.",
            [("must_contain", "g")],
        ),
        (
            GERMAN,
            "Die Zahlung wird erst ausgeführt, nachdem die Rechnung geprüft wurde.",
            "Rechnung.",
            [("before", "pz")],
        ),
        (
            GERMAN,
            "Übersteigt die Forderung 1.000 Euro, genehmigt zusätzlich die Leitung (Freigabe durch Abteilungsleitung).",
            "Es geht um 1.250 Euro.",
            [("must_contain", "f")],
        ),
        (
            GERMAN,
            "Bei Stammkunden entfällt die Mahnung (Mahnung versenden).",
            "Stammkunde Huber.",
            [("must_not_contain", "m")],
        ),
        (GERMAN, "Vor der Zahlung ist die Rechnung zu prüfen (Rechnung prüfen).", "Bitte zahlen.", [("before", "pz")]),
        (
            FRENCH,
            "À partir de 5 000 €, l'accord de la direction est requis.",
            "Facture de 7 200 €.",
            [("must_contain", "a")],
        ),
        (
            FRENCH,
            "Pour les montants supérieurs à 5 000 EUR, l'accord de la direction est requis.",
            "Facture de 320 EUR.",
            [("must_not_contain", "a")],
        ),
        (
            FRENCH,
            "Si le véhicule est étranger, on demande une expertise (Demander une expertise).",
            "Le véhicule est étranger, immatriculé en Suisse.",
            [("must_contain", "e")],
        ),
        (
            FRENCH,
            "Le fournisseur n'est jamais payé avant que la facture soit vérifiée (Payer le fournisseur).",
            "Facture.",
            [("before", "vp")],
        ),
        (
            DUTCH,
            "Vanaf € 5.000 is goedkeuring door de directie nodig.",
            "Factuur van € 7.200,00.",
            [("must_contain", "g")],
        ),
        (
            DUTCH,
            "Bij bedragen boven 5.000 euro volgt goedkeuring door de directie.",
            "Een factuur van 450 euro.",
            [("must_not_contain", "g")],
        ),
        (
            DUTCH,
            "Als de schade in het buitenland is ontstaan, wordt een taxatie aangevraagd (Taxatie aanvragen).",
            "De schade is in het buitenland ontstaan.",
            [("must_contain", "t")],
        ),
        (DUTCH, "De betaling wordt pas uitgevoerd nadat de factuur is gecontroleerd.", "Factuur.", [("before", "cb")]),
        (
            SPANISH,
            "Esto es de todos. A partir de 5.000 EUR se requiere la aprobación de dirección.",
            "Factura de 7.200 EUR.",
            [("must_contain", "a")],
        ),
        (
            SPANISH,
            "Si el vehículo es extranjero, se solicita una tasación (Solicitar tasación).",
            "El vehículo es extranjero, matriculado en Suiza.",
            [("must_contain", "t")],
        ),
        (
            SPANISH,
            "El proveedor no se paga antes de revisar la factura (Pagar al proveedor).",
            "Factura.",
            [("before", "rp")],
        ),
        (
            ENGLISH,
            "Ab 5.000 EUR ist die Genehmigung der Leitung nötig (Approval by head of department).",
            "Please pay EUR 9,100.00.",
            [("must_contain", "f")],
        ),
        (
            ENGLISH,
            "Liegt der Schaden im Ausland, so wird ein Gutachten eingeholt (Obtain expert report).",
            "The damage happened abroad, in Vienna.",
            [("must_contain", "g")],
        ),
        (
            ENGLISH,
            "Over EUR 5,000 the approval by the head of department is obtained. "
            "Otherwise a reminder is sent (Send reminder).",
            "EUR 200",
            [("must_not_contain", "f"), ("must_contain", "m")],
        ),
        (
            GERMAN,
            "Liegt der Betrag über 800 Euro, muss die Abteilungsleitung freigeben (Freigabe durch Abteilungsleitung).",
            "Summe: 950,00 Euro",
            [("must_contain", "f")],
        ),
        (
            GERMAN,
            "Fehlt die Unterschrift, wird der Antrag abgelehnt (Antrag ablehnen).",
            "Auf dem Antrag fehlt die Unterschrift.",
            [("must_contain", "a")],
        ),
        (
            GERMAN,
            "Ein Gutachten einholen ist nur bei Totalschaden nötig.",
            "Es ist ein Totalschaden.",
            [("must_contain", "g")],
        ),
        (
            GERMAN,
            "Erst nach Prüfung der Rechnung darf die Zahlung ausgeführt werden.",
            "Bitte zahlen.",
            [("before", "pz")],
        ),
        (
            GERMAN,
            "Für Beträge bis 200 EUR ist keine Freigabe durch die Abteilungsleitung nötig.",
            "Quittung 45,00 EUR",
            [("must_not_contain", "f")],
        ),
        (
            FRENCH,
            "Au-delà de 1 500 euros, la direction donne son accord (Accord de la direction).",
            "Devis de 2 300 euros.",
            [("must_contain", "a")],
        ),
        (
            FRENCH,
            "En cas de litige, une relance n'est pas envoyée (Envoyer une relance).",
            "Nous sommes en litige avec ce client.",
            [("must_not_contain", "r")],
        ),
        (
            FRENCH,
            "Une expertise est demandée uniquement pour les sinistres graves (Demander une expertise).",
            "Un sinistre grave a eu lieu.",
            [("must_contain", "e")],
        ),
        (
            FRENCH,
            "Après la vérification de la facture, on paie le fournisseur (Payer le fournisseur).",
            "Facture.",
            [("before", "vp")],
        ),
        (
            DUTCH,
            "Bedraagt de factuur meer dan 2.500 euro, dan is goedkeuring door de directie vereist.",
            "Factuur van 3.000 euro.",
            [("must_contain", "g")],
        ),
        (
            DUTCH,
            "Voor vaste klanten vervalt de herinnering (Herinnering versturen).",
            "Dit is een vaste klant.",
            [("must_not_contain", "h")],
        ),
        (
            DUTCH,
            "Vóór de betaling wordt de factuur gecontroleerd (Factuur controleren).",
            "Factuur.",
            [("before", "cb")],
        ),
        (
            SPANISH,
            "Si el importe supera los 3.000 euros, la dirección debe aprobarlo (Aprobación de dirección).",
            "Son 4.200 euros.",
            [("must_contain", "a")],
        ),
        (
            SPANISH,
            "Después de revisar la factura se paga al proveedor (Pagar al proveedor).",
            "Factura.",
            [("before", "rp")],
        ),
        (SPANISH, "No se envía recordatorio a clientes nuevos (Enviar recordatorio).", "Es un cliente nuevo.", []),
        (
            ENGLISH,
            "Bei Beträgen über 2.000 EUR wird zusätzlich die Genehmigung eingeholt (Approval by head of department).",
            "Invoice of EUR 150.00",
            [("must_not_contain", "f")],
        ),
    ],
)
def test_rules_in_other_languages_name_steps(
    titles: dict[str, str], text: str, request_text: str, expected: list[tuple[str, str]]
) -> None:
    rules = named_rules([element(text)], titles, request_text)
    assert [(rule.kind, "".join(rule.tasks)) for rule in rules] == expected


def test_a_title_is_named_by_its_code_and_a_step_by_this_step() -> None:
    titles = {"x": "T11 Create document X", "y": "T12 Check document X", "n": "T21 Send fee notice"}
    text = (
        "Blijkt dat de bouw al is begonnen, dan wordt document X opgesteld (T11) en gecontroleerd (T12). "
        "Bij aanvragen op papier wordt de legesnota verzonden (T21 Send fee notice). "
        "Bij aanvragen via internet vervalt deze stap."
    )
    assert [(r.kind, r.tasks) for r in named_rules([element(text)], titles, "Handed in on paper, an application.")] == [
        ("must_not_contain", ("x",)),
        ("must_not_contain", ("y",)),
        ("must_contain", ("n",)),
    ]


WAY = (
    "## Course\n\n1. The package is opened (Open package).\n2. If documents are missing, they are chased (Chase "
    "missing documents).\n3. It is finished (Finish package).\n4. It is billed (Bill package).\n"
)
IN_ORDER = [("before", "oc"), ("before", "cf"), ("before", "of"), ("before", "fb")]
FRAUD = "If anything smells of error (wrong patient, borrowed card), the package is deleted (Delete package)."


@pytest.mark.parametrize(
    ("text", "request_text", "expected"),
    [
        (WAY, "A knee.", {*IN_ORDER, ("must_not_contain", "c")}),
        (
            WAY.replace("1. ", "2.1 ").replace("3. ", "\n2.2 "),
            "A knee.",
            {*IN_ORDER, ("must_not_contain", "c")},
        ),
        (
            WAY.replace("3. It is", "3. If it is over, it is"),
            "A knee.",
            {("must_not_contain", "c")},
        ),  # two steps are none
        (FRAUD, "The card isn't his.", {("must_contain", "d")}),
        (FRAUD, "Card and bill are enclosed, nothing is missing.", {("must_not_contain", "d")}),
        (FRAUD, "Wrong patient, sorry.", {("must_contain", "d")}),
        (
            "From EUR 400 on, the approval by budget owner is obtained. If the approval by budget owner is enclosed, "
            "this approval is not asked for a second time.",
            "EUR 500. The approval by budget owner is enclosed.",
            {("must_not_contain", "a")},
        ),
        (
            "Every ticket about Press gets a survey (Send satisfaction survey).",
            "A ticket about Press.",
            {("must_contain", "x")},
        ),
        (
            "Every ticket about Press gets a survey (Send satisfaction survey).",
            "Ink fails.",
            {("must_not_contain", "x")},
        ),
        (
            "What the desk can solve while he waits ends there (Resolve ticket).",
            "A visit.",
            {("must_not_contain", "v")},
        ),
        (
            "A form that is not filled in completely is chased (Chase missing documents). Forms of a counter are not "
            "chased in this way.",
            "Our form, taken at the counter.",
            {("must_not_contain", "c")},
        ),
        (
            "Note: for credits below 4,000 the package is billed (Bill package) before the package is finished.",
            "A credit of 3,500.",
            {("must_contain", "b"), ("before", "bf")},
        ),
        (
            "From: Dora\nDate: 1 May\nA package that is not paid is finished (Finish package) before the invoice is "
            "reversed (Reverse invoice).",
            "A package that is not paid.",
            {("must_contain", "f"), ("must_contain", "r"), ("before", "fr")},
        ),
        (  # a table whose first column has the cases
            "| Case | Step | Note |\n| --- | --- | --- |\n| The package was opened by mistake | Delete package | - |\n",
            "This package was opened by mistake.",
            {("must_contain", "d")},
        ),
        (  # a row with its step in a cell of its own
            "| 3 | For claims of more than R 200 the owner consents. Others go on. | Check by administration |\n",
            "A taxi, R 342.60",
            {("must_contain", "k")},
        ),
        (
            "**Q: The doctor's letter is not there.**\nA: Then we chase it (Chase missing documents).",
            "Nothing outstanding, every paper is in the envelope.",
            {("must_not_contain", "c")},
        ),
        (
            "From 300 pounds on, the owner is asked (Approval by budget owner). Then there is no check (Check by "
            "administration).",
            "amount_gbp: 3900",
            {("must_contain", "a"), ("must_not_contain", "k")},
        ),
        (
            "For royalties the budget owner is not asked, whatever the amount.",
            "Royalties of the autumn run.",
            {("must_not_contain", "a")},
        ),
        (
            "Structures of 40 metres or longer: if they are of 40 metres or longer, the package is deleted (Delete "
            "package).",
            "Overall length 46 m.",
            {("must_contain", "d")},
        ),
        (
            "If the robot runs a release older than 5.2, the package is deleted (Delete package).",
            "The robot, release 5.4, is slow.",
            {("must_not_contain", "d")},
        ),
        (  # a date is no measure
            "If the package comes from 2 January on, it is deleted (Delete package).",
            "A knee, 13 January.",
            {("must_not_contain", "d")},
        ),
        ("No package is finished without being opened.", "A knee.", {("before", "of")}),
        (
            "Nothing is billed without a bill package check. The package is billed (Bill package) by two different "
            "clerks from EUR 500 on.",
            "EUR 20",
            set(),
        ),
        ("A driver may wait at once. The wait is recorded.", "Nobody did wait.", set()),  # one may wait later
        ("If they say yes, the package is billed (Bill package).", "A knee.", set()),  # nobody knows it at the start
    ],
)
def test_the_usual_way_cases_of_a_kind_and_exceptions(
    text: str, request_text: str, expected: set[tuple[str, str]]
) -> None:
    assert {(kind, tasks) for kind, tasks, _ in found(text, request_text)} == expected
