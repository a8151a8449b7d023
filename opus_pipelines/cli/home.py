"""Dagster's home inside the lake: one dagster.yaml, copied there, and the variable that points to it. Dagster itself
is not loaded here.
"""

import os
from pathlib import Path

from opus_pipelines.core.errors import LakeError
from opus_pipelines.core.settings import Settings
from opus_pipelines.lake.layout import Lake, write_atomically

ROOT = (
    Path(__file__).resolve().parents[2]
)  # dagster.yaml and workspace.yaml lie there in a checkout and in an editable install


def prepare(settings: Settings) -> Path:
    """Make `<lake>/.dagster` and point Dagster to it; returns it."""
    home = Lake(settings.paths.lake).dagster_home
    if not (ROOT / "dagster.yaml").is_file():
        raise LakeError(f"{ROOT / 'dagster.yaml'} is missing: run opus from a checkout installed with `make`")
    text = (ROOT / "dagster.yaml").read_bytes()
    if not (home / "dagster.yaml").is_file() or (home / "dagster.yaml").read_bytes() != text:
        write_atomically(home / "dagster.yaml", lambda path: path.write_bytes(text))
    os.environ["DAGSTER_HOME"] = str(home)
    return home
