import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.intakes.documents.natural_language import foreign_language
from opus_pipelines.intakes.elements import FOREIGN, Element, foreign_reason, read_elements
from opus_pipelines.intakes.requirements.intention import passages_of
from opus_pipelines.intakes.requirements.rules import rules_of

GERMAN = "Die Verwaltung muss die Reisekostenabrechnung prüfen, bevor der Vorgesetzte sie endgültig freigibt."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (GERMAN, "German"),
        ("La demande doit être approuvée par le responsable avant le paiement.", "French"),
        ("El pedido debe aprobarse siempre antes de que se realice el pago.", "Spanish"),
        ("Faktura musi zostać zatwierdzona przed dokonaniem płatności przez dział księgowości.", "Polish"),
        ("De factuur moet binnen tien werkdagen na ontvangst worden betaald.", "Dutch"),
        ("付款前必须由主管批准申请并且登记在册。", "Chinese"),
        ("The claim must be approved before it is paid.", None),
        ("1. Antrag prüfen\n2. Kunde anrufen\n3. Akte schließen", "German"),
        ("1. Aanvraag toetsen\n2. Klant bellen\n3. Dossier sluiten", "Dutch"),
        ("1. Inserir a encomenda\n2. Embalar a mercadoria\n3. Enviar o pacote", "Portuguese"),
        ("- Granska ansökan\n- Ring kunden", "Swedish"),
        ("Hola, el paquete llegó dañado: https://shop.example/order", "Spanish"),
        ("Zahlung", None),
        ("Verificare\nPagare", None),
        ("Jose Garcia Martinez, Sao Paulo", None),
        ("KYC\nAML screening\nPEP check", None),
        ("Pick\nPack\nShip", None),
        ("**Don Jayamaha** [http://linkedin.example/in/donjayamahajr](http://linkedin.example/in/donjayamahajr)", None),
        ("A12; B33; C44; D55; E66; F77", None),
        ("", None),
    ],
)
def test_a_language_is_named_where_it_is_sure(text: str, language: str | None) -> None:
    assert foreign_language(text) == language


@pytest.mark.parametrize("part", ["tuning", "heldout"])
def test_no_english_sentence_is_taken_for_another_language(part: str) -> None:
    lines = (Path(__file__).parent / "procedures" / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [s for s in (json.loads(line)["sentence"] for line in lines) if foreign_language(s)] == []


ITALIAN = "L'amministrazione deve controllare la nota spese prima che il responsabile la approvi definitivamente."


@pytest.mark.parametrize(("text", "language", "is_read"), [(GERMAN, "German", True), (ITALIAN, "Italian", False)])
def test_of_a_procedure_in_another_language_no_rule_is_read_and_that_is_said(
    text: str, language: str, is_read: bool, tmp_path: Path
) -> None:
    (tmp_path / "i" / "input").mkdir(parents=True)
    (tmp_path / "i" / "process").mkdir()
    (tmp_path / "i" / "input" / "mail.txt").write_text(
        "Bitte erstatten Sie mir die Kosten meiner Reise nach Wien.", encoding="utf-8"
    )
    (tmp_path / "i" / "process" / "sop.md").write_text(f"# Reisekosten\n\n{text}\n", encoding="utf-8")
    request, procedure = read_elements(tmp_path / "i", tmp_path / "none")
    assert request.text is not None
    assert "German" in (request.left_out or "")
    assert (procedure.text is not None) == is_read  # its steps can be told by the reader's tables
    assert language in (procedure.left_out or "")
    assert [[d.kind for d in rule.demands] for rule in rules_of([request, procedure])] == [["none"]] * is_read
    assert passages_of([procedure], 100) == []  # the encoder of Intentions knows English only


def test_a_sentence_in_another_language_among_english_ones_is_a_rule_that_is_not_applied(
    text_elements: Callable[..., Any],
) -> None:
    rules = rules_of(text_elements({"process": f"The file must be checked.\n\n{GERMAN}\n\nThe claim must be paid."}))
    reasons = [d.no_effect_reason for rule in rules for d in rule.demands]
    assert [reason and "German" in reason for reason in reasons] == [None, True, None]


@pytest.mark.parametrize(
    ("role", "text", "languages"),
    [
        ("input", "Hallo, das Paket kam beschädigt an.", ["German"]),
        ("input", "Bestellart: Haftpflicht\nKunde: Deutsche Telekom AG\nThe parcel is broken.", []),
        ("input", "Beschreibung: Mein Paket kam heute leider beschädigt bei mir an.", ["German"]),
        (
            "process",
            "# Claims\n\nThe clerk checks the claim.\n\n- Antrag prüfen\n- Kunde anrufen\n- Geld zahlen",
            ["German"],
        ),
        ("process", "The clerk checks the claim.\n\n- Open the file\n- Call Mr Müller", []),
    ],
)
def test_what_is_not_understood_stays_in_the_text_and_is_named(
    role: str, text: str, languages: list[str], tmp_path: Path
) -> None:
    (tmp_path / role).mkdir()
    (tmp_path / role / "a.md").write_text(text, encoding="utf-8")
    (element,) = read_elements(tmp_path, tmp_path / "none")
    assert element.text is not None
    assert [name for name in ("German", "Dutch", "Italian") if name in (element.left_out or "")] == languages
    assert (element.left_out is None) == (not languages)


def test_a_procedure_in_another_language_is_a_reason_against_a_clear_verdict() -> None:
    unread = FOREIGN.format(language="German")
    procedure = Element("e1", "process", "text", "ablauf.md", "text/markdown", None, 90, "", unread)
    letter = replace(procedure, role="input", name="brief.md", text="My claim.", left_out=None)
    read = replace(procedure, name="steps.md", text="Check the claim.", left_out="3 pages are pictures")
    assert foreign_reason([letter, read]) is None
    reason = foreign_reason([letter, read, procedure]) or ""
    assert [word in reason for word in ("ablauf.md", "German", "steps.md", "brief.md")] == [True, True, False, False]
