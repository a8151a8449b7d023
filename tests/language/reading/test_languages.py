"""The tables of languages: which language a text is in, stems, cues and glosses."""

import pytest

from opus_pipelines.language.reading.languages import content_stems, gloss, language_of, languages, tables_of


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The clerk checks the form and signs it.", "en"),
        ("Der Innendienst sucht zuerst den Auftrag heraus.", "de"),
        ("Le comptable vérifie ensuite les justificatifs de la demande.", "fr"),
        ("De medewerker controleert de aanvraag en stuurt een bevestiging.", "nl"),
        ("El empleado comprueba la solicitud y envía una confirmación.", "es"),
        ("Заявка принята", ""),
        ("register_claim", "en"),
    ],
)
def test_the_words_without_meaning_tell_the_language(text: str, code: str) -> None:
    assert language_of(text) == code


def test_every_language_has_every_table_and_its_patterns_match_whole_words() -> None:
    for language in languages().values():
        assert set(language.cues) == set(tables_of("en").cues)
        assert len(language.unrelated) >= 70
    assert tables_of("en").has("negation", "You must not pay.")
    assert not tables_of("en").has("negation", "Take a note.")
    assert tables_of("xx") is tables_of("en")


@pytest.mark.parametrize(
    ("text", "code", "stems"),
    [
        ("The claims are validated", "en", ("claim", "valid")),
        ("Die Reklamationen werden geschlossen", "de", ("reklamation", "geschloss")),
        ("sendConfirmation_email", "en", ("send", "confirm", "email")),
    ],
)
def test_stems_of_the_words_that_carry_meaning(text: str, code: str, stems: tuple[str, ...]) -> None:
    assert content_stems(text, code) == stems


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("Le comptable vérifie les justificatifs.", "fr", {"check", "receipt"}),
        ("Die Kundenadresse wird geändert.", "de", {"address", "change", "customer"}),
        ("De factuur wordt betaald.", "nl", {"invoice", "pay"}),
        ("Se archiva el expediente.", "es", {"archive", "file"}),
    ],
)
def test_the_glossary_gives_english_process_words(text: str, code: str, words: set[str]) -> None:
    assert words <= set(gloss(text, code).split())
    assert gloss(text, "en") == ""
