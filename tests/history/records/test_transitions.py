"""The words of a life cycle in several languages: executions, working time, rests and ends without success."""

from typing import Any

import pytest

from opus_pipelines.history.records.values import TransitionMeanings

HOUR = 3_600_000.0
HEADER = "case_id,activity,lifecycle,timestamp"


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("start", "end"),
        ("START", "COMPLETE"),
        ("started", "completed"),
        ("begin", "finish"),
        ("In Progress", "Done"),
        ("in_progress", "closed"),
        ("Open", "Resolved"),
        ("task_started", "task_finished"),
        ("Beginn", "Ende"),
        ("In Bearbeitung", "Erledigt"),
        ("Vorgang gestartet", "Vorgang abgeschlossen"),
        ("Début", "Fin"),
        ("En cours", "Terminé"),
        ("Gestart", "Voltooid"),
        ("In behandeling", "Afgerond"),
        ("Inicio", "Fin"),
        ("Iniciado", "Finalizado"),
        ("Inizio", "Fine"),
        ("In corso", "Completata"),
        ("Início", "Fim"),
        ("Em andamento", "Concluído"),
        ("check-in", "check-out"),
    ],
)
@pytest.mark.parametrize("padding", [0, pytest.param(3_000, marks=pytest.mark.long)])
def test_a_row_that_begins_and_one_that_ends_are_one_step(bench: Any, begin: str, end: str, padding: int) -> None:
    rows = [
        f"1,A,{begin},2024-03-01T09:00:00Z",
        f"1,A,{end},2024-03-01T10:00:00Z",
        f"1,B,{begin},2024-03-01T11:00:00Z",
        f"1,B,{end},2024-03-01T13:00:00Z",
    ]
    rows += [f"p{n},A,{word},2024-03-01T0{h}:00:00Z" for n in range(padding) for h, word in ((1, begin), (2, end))]
    case = bench.one("log.csv", "\n".join([HEADER, *rows, ""]))[0]["1"]
    assert [(t["task_key"], t["duration_ms"]) for t in case["tasks"]] == [("A", HOUR), ("B", 2 * HOUR)]


@pytest.mark.parametrize(
    ("pause", "go_on"), [("suspend", "resume"), ("On Hold", "In Progress"), ("pausiert", "fortgesetzt"), ("wait", "")]
)
def test_work_rests_between_a_pause_and_its_end(bench: Any, pause: str, go_on: str) -> None:
    rows = ["1,A,start,2024-03-01T09:00:00Z", f"1,A,{pause},2024-03-01T10:00:00Z"]
    rows += [f"1,A,{go_on},2024-03-04T09:00:00Z"] if go_on else []
    rows += ["1,A,complete,2024-03-04T09:30:00Z"]
    (task,) = bench.one("log.csv", "\n".join([HEADER, *rows, ""]))[0]["1"]["tasks"]
    assert task["duration_ms"] == (1.5 * HOUR if go_on else HOUR)
    assert (task["started_at"].isoformat()[:13], task["ended_at"].isoformat()[:16]) == (
        "2024-03-01T09",
        "2024-03-04T09:30",
    )


@pytest.mark.parametrize("word", ["ate_abort", "pi_abort", "withdraw", "Cancelled", "abgebrochen", "annulé", "failed"])
def test_work_that_is_given_up_ends_without_success_and_takes_no_later_end(bench: Any, word: str) -> None:
    rows = [
        "1,A,start,2024-03-01T09:00:00Z",
        f"1,A,{word},2024-03-01T10:00:00Z",
        "1,A,start,2024-03-02T09:00:00Z",
        "1,A,complete,2024-03-02T12:00:00Z",
    ]
    tasks = bench.one("log.csv", "\n".join([HEADER, *rows, ""]))[0]["1"]["tasks"]
    assert [(t["duration_ms"], t["success"]) for t in tasks] == [(HOUR, False), (3 * HOUR, None)]


def test_what_was_withdrawn_before_it_began_was_not_carried_out(bench: Any) -> None:
    rows = [f"1,A,{word},2024-03-01T0{n}:00:00Z" for n, word in enumerate(("schedule", "withdraw", "start", "end"))]
    case, _, state = bench.one("log.csv", "\n".join([HEADER, *rows, ""]))
    assert [t["duration_ms"] for t in case["1"]["tasks"]] == [HOUR]
    assert (state.files[0]["records_used"], state.files[0]["records_not_work"]) == (2, 2)


def test_an_unknown_word_beside_known_ones_makes_no_step(bench: Any) -> None:
    rows = [f"1,A,{word},2024-03-01T0{n}:00:00Z" for n, word in enumerate(("start", "xyz", "complete"))]
    case = bench.one("log.csv", "\n".join([HEADER, *rows, ""]))[0]["1"]
    assert [t["duration_ms"] for t in case["tasks"]] == [2 * HOUR]


def test_states_that_no_activity_opens_and_closes_are_no_life_cycle(bench: Any) -> None:
    rows = ["1,Accepted,In Progress,2024-03-01T01:00:00Z", "1,Accepted,Assigned,2024-03-01T02:00:00Z"]
    rows += ["1,Accepted,Wait - User,2024-03-01T03:00:00Z", "1,Completed,Closed,2024-03-01T04:00:00Z"]
    case = bench.one("log.csv", "\n".join([HEADER, *rows, ""]))[0]["1"]
    assert [t["task_key"] for t in case["tasks"]] == ["Accepted", "Accepted", "Accepted", "Completed"]


def test_the_settings_say_what_words_mean(bench: Any) -> None:
    content = f"{HEADER}\n1,A,S,2024-03-01T09:00:00Z\n1,A,x,2024-03-01T09:30:00Z\n1,A,E,2024-03-01T10:00:00Z\n"
    stated = '[transitions]\nstart = "S"\ncomplete = ["E"]\nother = "x"\n'
    assert [t["duration_ms"] for t in bench.one("log.csv", content, stated)[0]["1"]["tasks"]] == [HOUR]


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("not started", "unknown"),
        ("ready to start", "unknown"),
        ("  ", ""),
        ("Wait - User", "suspend"),
        ("STATUS_DONE", "complete"),
        ("taskStarted", "start"),
        ("In Call", "unknown"),
        ("Übersprungen", "schedule"),
    ],
)
def test_what_phrases_mean(word: str, meaning: str) -> None:
    assert TransitionMeanings()(word) == meaning
