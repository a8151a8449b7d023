"""Rows of compared flows in the lake: the view and the shipped query read them, and the same flows are written once."""

from pathlib import Path

import pytest

from opus_pipelines.cli.main import main
from opus_pipelines.core.errors import InputError
from opus_pipelines.core.schemas import EVALUATION_FLOWS
from opus_pipelines.flows.enterprise.examples import world_catalogue, world_examples
from opus_pipelines.lake.layout import Lake
from opus_pipelines.quality.platform_flows import evaluation_of, flow_writers, written_flows
from opus_pipelines.quality.score_rows import publish


@pytest.mark.long
def test_the_view_and_the_query_read_what_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held_out = [e for e in world_examples() if e.part == "held out"][:3]
    writers = flow_writers(world_catalogue(), world_examples(), ["composer", "nearest"])
    flows = [one for writer in writers for one in written_flows(writer, held_out, world_catalogue())]
    lake = Lake(tmp_path / "lake")
    evaluation = evaluation_of(flows)
    for _ in range(2):
        publish(lake, EVALUATION_FLOWS, evaluation)
    assert evaluation_of(flows) == evaluation
    assert len(evaluation.rows) == 6
    assert main(["--lake", str(lake.root), "query", "flow_scores", "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[2:4] for line in lines[1:]] == [["composer", "3"], ["nearest requirement", "3"]]


def test_an_unknown_writer_is_an_error() -> None:
    with pytest.raises(InputError, match="composer"):
        flow_writers(world_catalogue(), world_examples(), ["oracle"])
    with pytest.raises(InputError, match="tune"):
        flow_writers(world_catalogue(), [], ["nearest"])
