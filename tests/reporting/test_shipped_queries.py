import pytest

from opus_pipelines.core.errors import InputError
from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.views import connect, run, shipped_queries


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(shipped_queries()))
def test_every_shipped_query_runs_and_says_what_it_answers(lake: Lake, name: str) -> None:
    query = shipped_queries()[name]
    assert query.about.endswith((".", ")."))
    assert query.example.startswith(f"opus query {name}")
    found = run(connect(lake), name)
    assert found is not None
    found.fetchall()


def test_what_the_queries_answer(lake: Lake) -> None:
    connection = connect(lake)

    def column(query: str, name: str) -> list[object]:
        found = run(connection, query)
        assert found is not None
        return [row[0] for row in found.project(name).fetchall()]

    assert column("best_workflows", "workflow_id") == ["fa1"]
    assert column("saving_against_history", "saving_usd") == [3.0]
    assert column("rejects_by_reason", "records") == [1]
    assert column("refused_intakes", "reason") == ["no input: ask the client"]
    assert column("cases_behind", "case_id") == ["M1"]
    assert column("undecided", "workflow_id") == ["fa1"]
    assert column("tasks_of_workflow", "task") == ["Start", "Check", "Pay"]


def test_a_variable_reaches_the_query(lake: Lake) -> None:
    found = run(connect(lake), "tasks_of_workflow", {"workflow": "fa2"})
    assert found is not None
    assert len(found.fetchall()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("best_workflow", "no shipped query 'best_workflow'; there are: .*best_workflows"),
        ("SELECT nothing FROM wkg_tasks", "the query failed: Binder Error"),
        ("SELEC 1", "the query failed: Parser Error"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(lake: Lake, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(connect(lake), text)


@pytest.mark.parametrize("name", ["files", "LAKE", "snapshot", "pointers"])
def test_the_variables_of_the_views_cannot_be_set(lake: Lake, name: str) -> None:
    with pytest.raises(InputError, match=f"--set {name.casefold()}"):
        run(connect(lake), "ranking", {name: "/etc"})


@pytest.mark.long
def test_every_shipped_query_runs_on_a_locked_connection(lake: Lake) -> None:
    connection = connect(lake)
    for name in shipped_queries():
        run(connection, name).fetchall()
    with pytest.raises(InputError, match="read_text"):
        run(connection, "FROM read_text('/etc/passwd')")
