"""Which column tells that steps begin and end, in tables of several languages, and which words are refused."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.history.ingestion.onboarding.columns import find_columns
from opus_pipelines.history.ingestion.onboarding.life_cycles import Words, refuse_unknown_words, transitions_in
from opus_pipelines.history.ingestion.onboarding.table_sample import Column, TableSample
from opus_pipelines.history.ingestion.onboarding.trial import findings_of


def table(header: str, *words: str, cases: int = 20) -> TableSample:
    """Two steps a case, with a row for each word. The header names the case, step, word, time and person."""
    rows = [
        (f"C-{case}", step, word, f"2024-03-{case % 28 + 1:02d} {number * 4 + place:02d}:00:00", f"u{case % 3}")
        for case in range(cases)
        for number, step in enumerate(("Check claim", "Pay claim"))
        for place, word in enumerate(words)
    ]
    names = header.split(",")
    columns = {name: Column(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    return TableSample(columns, len(rows))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("Issue key,Work item,Status change,Logged at,Agent", ("In Progress", "Done")),
        ("Vorgangsnr,Arbeitsschritt,Ereignisart,Zeitpunkt,Bearbeiter", ("Beginn", "Ende")),
        ("Vorgangsnr,Tätigkeit,Status,Zeitpunkt,Bearbeiter", ("In Bearbeitung", "Unterbrochen", "Erledigt")),
        ("N° dossier,Opération,Phase,Horodatage,Opérateur", ("Début", "Fin")),
        ("Zaaknummer,Activiteit,Soort,Tijdstip,Medewerker", ("Gestart", "Afgerond")),
        ("Expediente,Actividad,Estado,Fecha,Usuario", ("Iniciado", "Terminado")),
        ("Pratica,Attività,Stato,Data,Utente", ("In corso", "Completata")),
        ("Processo,Atividade,Situação,Data,Usuário", ("Início", "Fim")),
        ("Case ID,Step,State,When,Who", ("assigned", "started", "completed")),
    ],
)
def test_the_column_that_tells_begin_and_end(header: str, words: tuple[str, ...]) -> None:
    case, step, word, *_ = header.split(",")
    found = find_columns(table(header, *words), {"case": case})
    assert (found.roles["activity"], found.roles["transition"], found.meanings) == (step, word, {})


@pytest.mark.parametrize("words", [("S", "E"), ("1", "2"), ("auf", "zu"), ("Anmeldung", "Abmeldung")])
def test_of_unknown_words_the_one_that_always_follows_ends(words: tuple[str, str]) -> None:
    found = find_columns(table("Case,Activity,Kind,Time,User", *words))
    assert (found.roles["transition"], found.meanings) == ("Kind", {"start": [words[0]], "complete": [words[1]]})


def test_the_states_of_a_ticket_are_its_activities() -> None:
    states = ("Open", "In Progress", "Done")
    rows = [
        (f"T{n}", state, f"2024-03-{n % 28 + 1:02d} 0{k}:00:00", f"u{n % 3}")
        for n in range(20)
        for k, state in enumerate(states)
    ]
    names = ("Ticket", "Status", "Time", "Owner")
    columns = {name: Column(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    found = find_columns(TableSample(columns, len(rows)), {"activity": "Status"})
    assert "transition" not in found.roles


@pytest.mark.parametrize(
    ("words", "is_refused"),
    [
        (("start", "xyz", "complete"), True),
        (("Q", "R", "X"), True),
        (("start", "complete"), False),
        (("Begun by", "Wait - User"), False),
    ],
)
def test_words_that_nobody_knows_are_refused(words: tuple[str, ...], is_refused: bool) -> None:
    header = "case,activity,lifecycle,time,user"
    roles = {"transition": "lifecycle", "case": "case", "activity": "activity"}
    found = transitions_in(Path("log.csv"), "csv", table(header, *words), roles)
    if not is_refused:
        refuse_unknown_words(found, {})
        return
    with pytest.raises(InputError, match=words[1]):
        refuse_unknown_words(found, {})
    refuse_unknown_words(found, {"schedule": list(words)})


def test_states_without_begin_and_end_are_no_error() -> None:
    refuse_unknown_words(Words(Counter({"In Call": 3, "Assigned": 5}), False), {})


def test_what_init_says_of_a_word_is_read(bench: Any) -> None:
    from opus_pipelines.history.ingestion.onboarding.propose import propose_settings
    from opus_pipelines.history.ingestion.onboarding.report import Stated

    rows = [f"{n},A,{word},2024-03-0{n + 1}T0{k}:00:00Z" for n in range(5) for k, word in enumerate(("Q", "R", "X"))]
    file = bench.put("s/log.csv", "case,activity,lifecycle,time\n" + "\n".join(rows) + "\n")
    with (
        pytest.raises(InputError, match="--transition"),
        propose_settings("s", [file], Stated()),
    ):
        pass
    stated = {"other": ["Q"], "start": ["R"], "complete": ["X"]}
    with propose_settings("s", [file], Stated(transitions=stated)) as proposal:
        found = findings_of(proposal.trial)
        assert (found.cases, found.tasks, found.timed) == (5, 5, 5)
