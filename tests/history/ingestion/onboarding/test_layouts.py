"""Exports with one row for each case, and exports of two tables, in the words of several countries."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
from opus_pipelines.history.ingestion.onboarding.report import Stated

STEPS = {
    "de": ("Vorgangsnr.", ["Eingang", "Prüfung", "Freigabe", "Versand"], ";", "%d.%m.%Y %H:%M"),
    "en": ("Order ID", ["Order received", "Credit checked", "Approved", "Shipped"], ",", "%Y-%m-%d %H:%M:%S"),
    "fr": ("N° dossier", ["Réception", "Contrôle", "Validation", "Clôture"], ";", "%d/%m/%Y %H:%M"),
    "nl": ("Zaaknummer", ["Ontvangen", "Beoordeeld", "Besluit", "Verzonden"], ",", "%d-%m-%Y %H:%M"),
    "es": ("Expediente", ["Recibido", "Revisado", "Aprobado", "Enviado"], "\t", "%d/%m/%Y %H:%M"),
    "it": ("Pratica", ["Ricevuta", "Verifica", "Approvazione", "Invio"], ";", "%d/%m/%Y %H:%M"),
    "pt": ("Processo n.º", ["Recebido", "Analisado", "Aprovado", "Enviado"], ";", "%d/%m/%Y %H:%M"),
}


def written(folder: Path, name: str, rows: list[list[Any]], delimiter: str = ",", above: str = "") -> Path:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    file = folder / name
    file.write_text(above + text.getvalue(), "utf-8")
    return file


def understood(*files: Path, **stated: Any) -> dict[str, Any]:
    """What `opus init --yes` would write: cases by client and id, with their steps in order, and the settings."""
    with propose_settings("s", files, Stated(**stated)) as proposal:
        assert proposal.trial.failed == []
        rows = [
            row for file in sorted(proposal.trial.folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()
        ]
        cases = {row["case_id"]: [t["title"] for t in row["tasks"]] for row in rows}
        attributes = {row["case_id"]: dict(row["attributes"]) for row in rows}
        minutes = {t["duration_ms"] and t["duration_ms"] / 60_000 for row in rows for t in row["tasks"]}
        return {
            "cases": cases,
            "attributes": attributes,
            "toml": proposal.toml,
            "files": proposal.trial.files,
            "minutes": minutes,
        }


def wide(language: str, empty: str = "") -> tuple[list[list[Any]], dict[str, list[str]], str]:
    from datetime import datetime, timedelta

    key, steps, delimiter, form = STEPS[language]
    rows: list[list[Any]] = [[key, "Region", *steps]]
    cases = {}
    for n in range(60):
        done = [place for place in range(4) if place == 0 or (n + place) % 3]
        moments = [datetime(2024, 1, 1 + n % 28, 8) + timedelta(hours=7 * place) for place in range(4)]
        rows.append(
            [f"K-{n}", "NS"[n % 2] + "ord", *(moments[p].strftime(form) if p in done else empty for p in range(4))]
        )
        cases[f"K-{n}"] = [steps[p] for p in done]
    return rows, cases, delimiter


@pytest.mark.parametrize("language", STEPS)
@pytest.mark.parametrize("empty", ["", "-", "n/a"])
def test_one_row_a_case(tmp_path: Path, language: str, empty: str) -> None:
    rows, cases, delimiter = wide(language, empty)
    found = understood(written(tmp_path, "a.csv", rows, delimiter))
    assert found["cases"] == cases
    assert "steps are empty" in found["toml"]


def test_one_row_a_case_below_a_title_and_in_a_workbook(tmp_path: Path) -> None:
    rows, cases, delimiter = wide("de")
    assert understood(written(tmp_path, "a.csv", rows, delimiter, "Auswertung\n\n"))["cases"] == cases
    book = openpyxl.Workbook()
    for row in [["Auswertung"], [], *rows]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert understood(tmp_path / "a.xlsx")["cases"] == cases


def test_a_row_without_an_id_is_a_case_of_its_own(tmp_path: Path) -> None:
    rows, cases, delimiter = wide("en")
    rows[3][0] = ""
    found = understood(written(tmp_path, "a.csv", rows, delimiter))
    assert found["cases"] == {name if name != "K-2" else "a.csv#4": steps for name, steps in cases.items()}


@pytest.mark.parametrize(
    "names",
    [
        ["Check start", "Check end", "Pay start", "Pay end"],
        ["Prüfung_von", "Prüfung_bis", "Zahlung_von", "Zahlung_bis"],
        ["Fin contrôle", "Début contrôle", "Fin paiement", "Début paiement"],
    ],
)
def test_begin_and_end_of_each_step_in_columns(tmp_path: Path, names: list[str]) -> None:
    hours = (11, 10, 13, 12) if names[0].startswith("Fin") else (10, 11, 12, 13)
    rows = [["ID", *names]]
    rows += [[f"c{n}", *(f"2024-01-{1 + n % 9:02} {h}:00" for h in hours)] for n in range(30)]
    rows[5][3:5] = "", ""
    found = understood(written(tmp_path, "a.csv", rows))
    check, pay = (re.sub("[ _]?(start|von|Fin)[ _]?", "", name) for name in names[::2])
    assert found["cases"]["c0"] == [check, pay]
    assert found["cases"]["c4"] == [check]
    assert found["minutes"] == {60.0}
    rows[0][1] = "Received"
    with pytest.raises(InputError, match="row for each case"):
        understood(written(tmp_path, "b.csv", rows))


def test_a_table_of_events_with_many_times_is_none(tmp_path: Path) -> None:
    rows = [["event_id", "case_id", "activity", "planned", "start_time", "end_time", "due"]]
    for n in range(60):
        times = [f"2024-01-{1 + n // 3:02} 1{n % 3 + h}:00" for h in range(4)]
        rows.append([str(n), f"c{n // 3}", "ABC"[n % 3], *times])
    found = understood(written(tmp_path, "a.csv", rows))
    assert set(map(tuple, found["cases"].values())) == {("A", "B", "C")}


TABLES = {
    "en": (["CASE_KEY", "ACTIVITY", "EVENTTIME", "USER"], ["CASE_KEY", "COUNTRY", "CHANNEL"]),
    "de": (["Vorgangsnummer", "Aktivität", "Zeitpunkt", "Bearbeiter"], ["Vorgangsnummer", "Land", "Kanal"]),
    "nl": (["Zaaknummer", "Activiteit", "Tijdstip", "Behandelaar"], ["Nummer", "Land", "Kanaal"]),
    "fr": (["Dossier", "Activité", "Horodatage", "Utilisateur"], ["Dossier", "Pays", "Canal"]),
    "es": (["Expediente", "Actividad", "Fecha", "Usuario"], ["Expediente", "País", "Canal"]),
}


def two(language: str) -> tuple[list[list[Any]], list[list[Any]]]:
    events, cases = TABLES[language]
    rows = [[f"c{n // 3}", "ABC"[n % 3], f"2024-03-{1 + n // 9:02} 1{n % 3}:00", f"u{n % 5}"] for n in range(90)]
    return [events, *rows], [cases, *([f"c{n}", ["SE", "IN", "PL"][n % 3], "mw"[n % 2]] for n in range(32))]


@pytest.mark.parametrize("language", TABLES)
@pytest.mark.parametrize("turned", [False, True])
def test_two_tables_are_joined_by_the_case(tmp_path: Path, language: str, turned: bool) -> None:
    events, cases = two(language)
    files = [written(tmp_path, "b.csv", events), written(tmp_path, "c.csv" if turned else "a.csv", cases, ";")]
    found = understood(*(files[::-1] if turned else files))
    assert set(map(tuple, found["cases"].values())) == {("A", "B", "C")}
    assert len(found["cases"]) == 30
    assert found["attributes"]["c4"] == dict(zip(cases[0][1:], ["IN", "m"], strict=True))
    counts = {row["path"]: (row["records"], row["records_used"], row["records_not_work"]) for row in found["files"]}
    assert counts == {"b.csv": (90, 90, 0), files[1].name: (32, 30, 2)}


def test_a_table_of_people_is_no_table_of_cases(tmp_path: Path) -> None:
    events, _ = two("en")
    files = [
        written(tmp_path, "a.csv", events),
        written(tmp_path, "b.csv", [["USER", "Team"], ["u1", "x"], ["u2", "y"]]),
    ]
    with pytest.raises((InputError, AssertionError)):
        understood(*files)


def test_parts_of_one_export_stay_parts(tmp_path: Path) -> None:
    events, _ = two("en")
    files = [written(tmp_path, "a.csv", events[:46]), written(tmp_path, "b.csv", [events[0], *events[46:]])]
    found = understood(*files)
    assert (len(found["cases"]), "[table]" in found["toml"]) == (30, False)
