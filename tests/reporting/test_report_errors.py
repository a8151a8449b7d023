"""`opus report --errors` on a lake with the result of a contract: the page of errors beside that of the contract."""

import json
from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.lake.layout import Lake


def sample(place: int) -> str:
    scores = {"flowsim": 1.0 if place % 3 else 0.25}
    return json.dumps(
        {"id": f"s{place}", "request": f"When a record is {'created' if place % 2 else 'deleted'}", "scores": scores}
    )


@pytest.mark.long
def test_the_page_of_errors_is_linked_beside_the_contracts(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, out = tmp_path / "samples.jsonl", tmp_path / "report"
    samples.write_text("\n".join([*(sample(place) for place in range(30)), "{"]))
    assert main(["--lake", str(lake.root), "report", "--errors", str(samples), "--out", str(out)]) == 0
    assert "1 lines left out" in capsys.readouterr().err
    names = {path.name for path in out.iterdir()}
    assert {"errors.html", "index.html"} < names
    assert 'href="errors.html"' in (out / "index.html").read_text("utf-8")
    page = (out / "errors.html").read_text("utf-8")
    assert "samples.jsonl" in page
    assert "flowsim" in page


@pytest.mark.long
def test_samples_that_cannot_be_read_are_named(lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report"
    assert main(["--lake", str(lake.root), "report", "--errors", str(tmp_path / "none.jsonl"), "--out", str(out)]) == 1
    assert "none.jsonl" in capsys.readouterr().err
    assert not (out / "errors.html").exists()
