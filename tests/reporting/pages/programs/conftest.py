"""An empty lake."""

from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    with lake.lock():
        lake.ensure_empty()
    return lake
