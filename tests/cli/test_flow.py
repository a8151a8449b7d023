"""`opus flow`: convert, formats, diff and edit on files."""

import json
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main

LEADS = "leads = Retrieve_Lead()\nfor lead in leads:\n  mail = Send_Mail()\n"


@pytest.fixture
def leads(tmp_path: Path) -> Path:
    path = tmp_path / "leads.py"
    path.write_text(LEADS, "utf-8")
    return path


def test_a_flow_goes_to_bpmn_and_back(leads: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    drawn = leads.with_suffix(".bpmn")
    assert main(["flow", "convert", str(leads), "--to", "bpmn", "-o", str(drawn)]) == 0
    assert main(["flow", "convert", str(drawn), "--to", "python"]) == 0
    assert capfdbinary.readouterr().out.decode() == LEADS


def test_a_difference_is_applied_to_the_other_file(leads: Path, capfd: pytest.CaptureFixture[str]) -> None:
    after = leads.with_name("after.py")
    after.write_text(LEADS.replace("Send_Mail", "Send_Letter") + "task = user_task('look')\n", "utf-8")
    assert main(["flow", "diff", str(leads), str(after)]) == 0
    assert capfd.readouterr().out == ('replace s3: mail = Send_Letter()\ninsert after s2: task = user_task("look")\n')
    assert main(["flow", "diff", str(leads), str(after), "--json"]) == 0
    operations = leads.with_name("operations.json")
    operations.write_text(capfd.readouterr().out, "utf-8")
    assert len(json.loads(operations.read_text("utf-8"))) == 2
    assert main(["flow", "edit", str(leads), "--operations", str(operations), "-o", str(leads)]) == 0
    assert main(["flow", "diff", str(leads), str(after)]) == 0
    assert capfd.readouterr().out == ""


def test_a_difference_is_drawn_and_shown_on_a_page(leads: Path, capfd: pytest.CaptureFixture[str]) -> None:
    after, drawn, page = (leads.with_name(name) for name in ("after.py", "difference.svg", "page.html"))
    after.write_text(LEADS.replace("Send_Mail", "Send_Letter"), "utf-8")
    assert main(["flow", "diff", str(leads), str(after), "--svg", str(drawn)]) == 0
    assert drawn.read_text("utf-8").startswith("<svg")
    rows = leads.with_name("retrieved.json")
    rows.write_text('[{"activity": "Send_Letter", "score": 0.5}]', "utf-8")
    command = ["flow", "page", str(after), "--prior", str(leads), "--retrieved", str(rows), "-o", str(page)]
    assert main(command) == 0
    assert "<td>Send_Letter</td>" in page.read_text("utf-8")
    rows.write_text('[{"activity": "Send_Letter"}]', "utf-8")
    assert main(command) == 1
    assert "retrieved activity 1" in capfd.readouterr().err


def test_cyclic_variables_are_named(leads: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "check", str(leads)]) == 0
    leads.write_text("for x in x:\n  y = A()\nif z.a:\n  z = B()\n", "utf-8")
    assert main(["flow", "check", str(leads)]) == 1
    told = capfd.readouterr().err
    assert "step s1 reads x; step s3 reads z" in told


def test_losses_and_errors_are_told(leads: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parallel = leads.with_name("two.json")
    steps = [[{"call": "A", "variable": "x"}], [{"call": "B", "variable": "y"}]]
    parallel.write_text(json.dumps({"steps": [{"parallel": steps}]}), "utf-8")
    assert main(["flow", "convert", str(parallel), "--to", "python"]) == 0
    told = capfd.readouterr()
    assert told.out == "x = A()\ny = B()\n"
    assert "parallel" in told.err
    leads.write_text("x = A()\nimport os\n", "utf-8")
    assert main(["flow", "convert", str(leads), "--to", "json"]) == 1
    assert "line 2, column 1" in capfd.readouterr().err
    assert main(["flow", "convert", str(leads.with_suffix(".vsd")), "--to", "json"]) == 1
    assert main(["flow", "formats"]) == 0
    assert "python" in capfd.readouterr().out
