"""The asset of history: a source that cannot be read without loss fails a check by name, and the run goes on."""

from pathlib import Path

import dagster as dg
import pytest

from assets.history import history
from opus_pipelines.cli.runs import lines_of_failed_checks
from opus_pipelines.core.settings import Paths, Settings
from resources.lake import LakeRun
from resources.spark import SparkResource

LOG = "case_id,activity\n1,A\n2,A\n"


@pytest.mark.long
def test_a_typo_in_source_toml_fails_the_check_by_name_and_blocks_nothing(tmp_path: Path) -> None:
    for source in ("a", "b"):
        (tmp_path / "history" / source).mkdir(parents=True)
        (tmp_path / "history" / source / "log.csv").write_text(LOG)
    settings = Settings(paths=Paths(lake=tmp_path / "lake", history=tmp_path / "history"))

    def night() -> dg.ExecuteInProcessResult:
        return dg.materialize([history], resources={"run": LakeRun.of(settings), "spark": SparkResource.of(settings)})

    assert all(check.passed for check in night().get_asset_check_evaluations())
    (tmp_path / "history" / "a" / "source.toml").write_text('industri = "x"')
    result = night()
    assert result.success
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert [(check.check_name, check.severity, check.blocking) for check in failed] == [
        ("no_source_held_back", dg.AssetCheckSeverity.ERROR, False)
    ]
    (line,) = lines_of_failed_checks(result)  # what `opus rebuild` says before it ends with 1
    assert line.startswith("a: ")
    assert "(2 cases)" in line
    done = result.asset_materializations_for_node("read_history")
    made = {m.asset_key.to_user_string(): m.metadata["dagster/row_count"].value for m in done}
    assert made["history/implementations"] == 4
