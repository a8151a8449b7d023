"""Exports in several languages: who, what and when, audit tables, footers, and what is known at the end alone."""

from itertools import islice

import pytest

from opus_pipelines.core.errors import InputError, UnclearColumn
from opus_pipelines.history.ingestion.onboarding.columns import find_columns
from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample, names_role

PEOPLE = ("Weiß, J.", "Krüger, P.", "Özdemir, L.", "Müller, A.")
STEPS = ("Receive the request", "Check it", "Ask for more", "Decide on it")


def rows(cases: int = 40) -> list[tuple[int, int, str, str]]:
    """Returns case, number of the step, its name, and its time. Every third case has a step more than the others."""
    return [
        (case, n, step, f"{case % 28 + 1:02d}.0{n + 1}.2024 09:{case:02d}")
        for case in range(cases)
        for n, step in enumerate(STEPS)
        if step != "Ask for more" or case % 3 == 0
    ]


def table(header: tuple[str, ...], *lines: tuple[str, ...]) -> TableSample:
    columns = zip(header, zip(*lines, strict=True), strict=True)
    return TableSample({name: Column(name, tuple(values)) for name, values in columns}, len(lines))


@pytest.mark.parametrize(
    "header",
    [
        ("Beleg-Nr.", "Vorgang", "Zeitpunkt", "Bearbeiter"),
        ("Vorgangs-Nr", "Vorgang", "Zeit", "Bearbeitet von"),
        ("Aktenzeichen", "Maßnahme", "Datum", "Schadensachbearbeiter"),
        ("N° dossier", "Étape", "Horodatage", "Traité par"),
        ("Zaaknummer", "Handeling", "Tijdstip", "Medewerker"),
        ("Nº de pedido", "Actuación", "Fecha y hora", "Asignado a"),
        ("Numero pratica", "Fase", "Data e ora", "Operatore"),
        ("Nº da multa", "Etapa", "Concluído em", "Responsável"),
        ("Fine no", "Step", "Completed on", "Processed by"),
        ("Ärendenr", "Aktivitet", "Tidpunkt", "Handläggare"),
        ("Belegnummer", "Transaktion", "Erfassungsdatum", "Benutzername"),
        ("Schein", "Tun", "TS", "Wer"),  # names that no list has: the values alone tell it
    ],
)
@pytest.mark.parametrize("is_constant", [True, False], ids=["one person a case", "several"])
def test_who_what_and_when_are_told_together(header: tuple[str, str, str, str], is_constant: bool) -> None:
    lines = [(f"X{c}", step, time, PEOPLE[(c if is_constant else c + 3 * n) % 4]) for c, n, step, time in rows()]
    found = find_columns(table(header, *lines))
    assert found.roles == dict(zip(("case", "activity", "time", "actor"), header, strict=True))


def test_the_person_of_the_step_comes_before_the_owner_of_the_case() -> None:
    lines = [(f"X{c}", step, time, PEOPLE[c % 4], PEOPLE[(c + n) % 4]) for c, n, step, time in rows()]
    header = ("Ticket", "Step", "Logged", "Owner", "Performed by")
    assert find_columns(table(header, *lines)).roles["actor"] == "Performed by"
    with pytest.raises(UnclearColumn) as unclear:
        find_columns(table(("Ticket", "Step", "Logged", "Agent", "Performed by"), *changed(lines)))
    assert (unclear.value.role, unclear.value.columns) == ("actor", ("Agent", "Performed by"))
    assert all(name in str(unclear.value) for name in ("Agent", "Performed by", "Weiß, J.", "--actor"))


def changed(lines: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Returns the lines with an owner who changes within the case."""
    return [(*line[:3], PEOPLE[number % 4], line[4]) for number, line in enumerate(lines)]


def test_the_customer_is_no_clerk_and_no_case() -> None:
    lines = [(f"X{c}", step, time, PEOPLE[c % 4], f"K{c % 9}") for c, _, step, time in rows()]
    found = find_columns(table(("Auftrag", "Schritt", "Datum", "Kunde", "Kundennr"), *lines))
    assert (found.roles, found.attributes) == (
        {"case": "Auftrag", "activity": "Schritt", "time": "Datum"},
        ("Kunde", "Kundennr"),
    )


AUDITS = [
    (("Ticket", "Created", "Field", "From", "To", "Changed by"), "Status", "Priority"),
    (("documentkey", "sys_created_on", "fieldname", "oldvalue", "newvalue", "user"), "state", "priority"),
    (("Fall", "Geändert am", "Feld", "Alter Wert", "Neuer Wert", "Geändert von"), "Bearbeitungsstatus", "Betrag"),
    (("Dossier", "Date", "Champ", "Ancienne valeur", "Nouvelle valeur", "Utilisateur"), "Statut", "Priorité"),
    (("Zaak", "Tijdstip", "Veld", "Oude waarde", "Nieuwe waarde", "Gewijzigd door"), "Status", "Afdeling"),
    (("Chamado", "Data/hora", "Campo", "Valor antigo", "Valor novo", "Alterado por"), "Situação", "Fila"),
]


def audit(header: tuple[str, ...], state: str, other: str, newest_first: bool = False) -> TableSample:
    lines = []
    for case, n, step, time in rows():
        before = STEPS[n - 1 if STEPS[n - 1] != "Ask for more" or case % 3 == 0 else n - 2] if n else ""
        lines.append((f"X{case}", time, state, before, step, PEOPLE[n]))
        if (case + n) % 3 == 0 and other:
            lines.append((f"X{case}", time, other, str(n), str(n + 1), PEOPLE[0]))
    return table(header, *(reversed(lines) if newest_first else lines))


@pytest.mark.parametrize(("header", "state", "other"), AUDITS)
@pytest.mark.parametrize("newest_first", [False, True])
def test_the_states_of_an_audit_table_are_its_activities(
    header: tuple[str, ...], state: str, other: str, newest_first: bool
) -> None:
    found = find_columns(audit(header, state, other, newest_first))
    assert [found.roles[role] for role in ("case", "activity", "time", "actor")] == [header[n] for n in (0, 4, 1, 5)]
    assert found.rows == {"only": {header[2]: [state]}}
    assert (other in found.left_out, state in found.left_out) == (True, True)
    alone = find_columns(audit(header, state, "", newest_first))
    assert (alone.roles["activity"], alone.rows) == (header[4], {})


def test_an_audit_table_whose_state_has_no_known_name_asks_for_it() -> None:
    header = ("Ticket", "Created", "Field", "Old value", "New value", "User")
    with pytest.raises(InputError, match=r"'Zug', 'Gewicht'; say it with --rows 'Field=FIELD'"):
        find_columns(audit(header, "Zug", "Gewicht"))
    stated = find_columns(audit(header, "Zug", "Gewicht"), {"activity": "New value"}, {"Field": ["Zug"]})
    assert (stated.rows, "Gewicht" in stated.left_out) == ({"only": {"Field": ["Zug"]}}, True)


@pytest.mark.parametrize(
    ("footers", "without"),
    [
        ([("Summe", "118 Zeilen", "", "")], {"Fall": ["Summe"]}),
        ([("", "Totaal", "", "118")], {"Schritt": ["Totaal"]}),
        ([("", "", "", ""), ("118 rows exported", "", "", "")], {"Fall": ["118 rows exported"]}),
        ([("X99", "Decide on it", "", "Weiß, J.")], {}),  # a step without a time
    ],
)
def test_footers_are_left_out(footers: list[tuple[str, ...]], without: dict[str, list[str]]) -> None:
    lines = [(f"X{c}", step, time, PEOPLE[n]) for c, n, step, time in rows()]
    found = find_columns(table(("Fall", "Schritt", "Datum", "Bearbeiter"), *lines, *footers))
    filled = {"filled": ["Fall"]} if not any(footers[0]) else {}
    assert found.rows == ({"without": without} if without else {}) | filled
    assert all(repr(value) in found.left_out for values in without.values() for value in values)


@pytest.mark.parametrize(
    ("name", "values", "is_later"),
    [
        ("Endstatus", ("ruht", "weg"), True),
        ("Situação", ("pago", "recusado"), True),
        ("Vermerk", ("bezahlt", "abgelehnt"), True),
        ("Vermerk", ("ja", "nein"), False),
        ("Region", ("Nord", "Süd"), False),
        ("Abgeschlossen am", ("01.06.2024", "02.06.2024"), True),
        ("Eingegangen am", ("01.06.2023", "02.06.2023"), False),
    ],
)
def test_what_is_known_at_the_end_is_no_attribute(name: str, values: tuple[str, str], is_later: bool) -> None:
    lines = [(f"X{c}", step, time, values[c % 2]) for c, _, step, time in rows()]
    found = find_columns(table(("Fall", "Schritt", "Datum", name), *lines))
    assert (name in found.later, name in found.attributes) == (is_later, not is_later)


def test_what_follows_from_the_last_activity_is_no_attribute() -> None:
    ends = [("Pay it", "Refuse it")[c % 2] if step == "Decide on it" else step for c, _, step, _ in rows()]
    lines = [(f"X{c}", end, time, "AB"[c % 2]) for end, (c, _, _, time) in zip(ends, rows(), strict=True)]
    found = find_columns(table(("Fall", "Schritt", "Datum", "Kz"), *lines))
    assert (tuple(found.later), found.attributes) == (("Kz",), ())


def test_ids_that_a_spreadsheet_has_rounded_are_refused() -> None:
    lines = [("4,50E+09" if c > 35 else f"45000000{c:02d}", step, time) for c, _, step, time in rows()]
    with pytest.raises(InputError, match=r"4,50E\+09.*spreadsheet"):
        find_columns(table(("Fall", "Schritt", "Datum"), *lines))


def test_names_of_columns() -> None:
    told = {
        name: [role for role in ("case", "activity", "actor", "owner", "cost", "state") if names_role(name, role)]
        for name in ("Nº da multa", "Created by", "Bearbeitet von", "Coût M.O. (€)", "Zugewiesen an", "Estado final")
    }
    assert list(islice(told.values(), 6)) == [["case"], ["owner"], ["actor"], ["cost"], ["owner"], ["state"]]


def test_the_name_of_a_step_comes_before_its_number() -> None:
    lines = [(f"X{c}", str(10 + n), step, time) for c, n, step, time in rows()]
    found = find_columns(table(("Vorgang", "Schritt-Nr", "Schritt", "Datum"), *lines))
    assert (found.roles["case"], found.roles["activity"]) == ("Vorgang", "Schritt")


def test_a_few_rows_are_enough_where_the_names_tell_it() -> None:
    lines = [(f"X{c}", step, time, PEOPLE[c]) for c, _, step, time in rows()[:7]]
    assert find_columns(table(("Antrag", "Tätigkeit", "Datum", "Sachbearbeiter"), *lines)).roles == {
        "case": "Antrag",
        "activity": "Tätigkeit",
        "time": "Datum",
        "actor": "Sachbearbeiter",
    }
